//! Until when the servers are sure to keep the session, and whether anything relies on it.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use zk_proto::Time;

use crate::error::SessionEnd;

/// Until when the servers are sure to keep the session; written by the driver, read by any task.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// By the replies of the connected server.
    answered: AtomicU64,
    /// By the replies that the lease mode requires.
    confirmed: AtomicU64,
    /// How the session has ended, which its state tells only behind the answers to all that waits.
    over: OnceLock<SessionEnd>,
    keepers: AtomicUsize,
}

impl Lease {
    pub(crate) fn publish(
        &self,
        answered: Option<Time>,
        confirmed: Option<Time>,
        over: Option<SessionEnd>,
    ) {
        if let Some(over) = over {
            // First: a lease of 0 before that would look as if it had run out.
            let _ = self.over.set(over);
        }
        for (lease, until) in [(&self.answered, answered), (&self.confirmed, confirmed)] {
            let nanos = until.map_or(0, |until| until.since_epoch().as_nanos());
            lease.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Release);
        }
    }

    pub(super) fn over(&self) -> Option<SessionEnd> {
        self.over.get().copied()
    }

    /// Whether anything is held in the session.
    pub(crate) fn is_kept(&self) -> bool {
        self.keepers.load(Ordering::Acquire) > 0
    }

    /// Returns whether nothing was held before.
    pub(super) fn keep(&self) -> bool {
        self.keepers.fetch_add(1, Ordering::AcqRel) == 0
    }

    pub(super) fn let_go(&self) {
        self.keepers.fetch_sub(1, Ordering::AcqRel);
    }

    pub(super) fn until(&self) -> Duration {
        let lease = if self.is_kept() { &self.confirmed } else { &self.answered };
        Duration::from_nanos(lease.load(Ordering::Acquire))
    }
}
