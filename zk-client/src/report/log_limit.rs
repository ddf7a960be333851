//! Limits what is logged: a session in trouble must not fill the log.

use std::time::Duration;

use zk_proto::Time;

use crate::error::LinkError;

/// Time between two log lines about failed attempts, and period in which changes of state are counted.
const APART: Duration = Duration::from_secs(1);

/// Changes of state that are logged per period: disconnected, and connected again.
const CHANGES_MAX: u32 = 2;

/// Failed connection attempts and short-lived connections. With five servers that refuse there are twenty attempts
/// within the first second, and a server that resets what it has accepted is dialed ten times a second by a short
/// session: too many to log each.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    /// When a failed attempt was last logged.
    last: Option<Time>,
    /// Failed attempts since.
    unmentioned: u32,
    /// When the first of the changes was.
    since: Option<Time>,
    changes: u32,
}

impl LogLimit {
    /// Logs a failed connection attempt, or counts it.
    pub(crate) fn failed(&mut self, now: Time, server: &str, error: &LinkError) {
        let Self { last, unmentioned, .. } = self;
        if last.is_none_or(|last| now.since(last) >= APART) {
            tracing::warn!(server, %error, unmentioned, "connection attempt failed");
            (*last, *unmentioned) = (Some(now), 0);
        } else {
            tracing::debug!(server, %error, "connection attempt failed");
            *unmentioned = unmentioned.saturating_add(1);
        }
    }

    /// Records that the session has connected or disconnected. Returns whether to log it.
    pub(crate) fn changed(&mut self, now: Time) -> bool {
        if self.since.is_none_or(|since| now.since(since) >= APART) {
            (self.since, self.changes) = (Some(now), 0);
        }
        self.changes = self.changes.saturating_add(1);
        if self.changes == CHANGES_MAX + 1 {
            tracing::info!("connections come and go; not shown for a second");
        }
        self.changes <= CHANGES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_a_few_times_a_second() {
        let mut log_limit = LogLimit::default();
        let mut shown = |millis| log_limit.changed(Time::new(Duration::from_millis(millis)));
        for millis in [100, 200] {
            assert!(shown(millis));
        }
        assert!(!shown(500));
        assert!(!shown(1_099));
        assert!(shown(1_100));
    }
}
