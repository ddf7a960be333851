//! What is told of the session: numbers, calls, lines in a log.

pub(crate) mod complaints;
pub(crate) mod histogram;
pub(crate) mod observe;
pub(crate) mod stats;
