//! What a log is told of servers that cannot be had.

use std::time::Duration;

use zk_proto::{Time, session::LinkError};

/// Time between two lines that a log shows by default.
const APART: Duration = Duration::from_secs(1);

/// Failed attempts to connect. With five servers that refuse there are twenty within the first second: too
/// many to be lines.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    /// When a line was written last.
    last: Option<Time>,
    /// Failed attempts since.
    unmentioned: u32,
}

impl Complaints {
    pub(crate) fn failed(&mut self, now: Time, server: &str, error: &LinkError) {
        let Self { last, unmentioned } = self;
        if last.is_none_or(|last| now.since(last) >= APART) {
            tracing::warn!(server, %error, unmentioned, "connection attempt failed");
            (*last, *unmentioned) = (Some(now), 0);
        } else {
            tracing::debug!(server, %error, "connection attempt failed");
            *unmentioned = unmentioned.saturating_add(1);
        }
    }
}
