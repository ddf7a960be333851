//! Reporting on the session: statistics, observer calls, log lines.

pub(crate) mod histogram;
pub(crate) mod level;
pub(crate) mod log_limit;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
pub(crate) mod observe;
pub(crate) mod stats;
