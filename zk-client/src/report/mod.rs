//! Reporting on the session: statistics, observer calls, log lines.

pub(crate) mod complaints;
pub(crate) mod histogram;
pub(crate) mod observe;
pub(crate) mod stats;
