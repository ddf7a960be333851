//! Reporting on the session: statistics, observer calls, log lines.

pub(crate) mod histogram;
pub(crate) mod log_limit;
pub(crate) mod observe;
pub(crate) mod stats;
