//! Until when the servers are sure to keep the session, and whether anything relies on it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use zk_proto::Time;

/// Until when the servers are sure to keep the session; written by the driver, read by any task.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// By the replies of the connected server.
    answered: AtomicU64,
    /// By the replies that the lease mode requires.
    confirmed: AtomicU64,
    keepers: AtomicUsize,
}

impl Lease {
    pub(crate) fn publish(&self, answered: Option<Time>, confirmed: Option<Time>) {
        for (lease, until) in [(&self.answered, answered), (&self.confirmed, confirmed)] {
            let nanos = until.map_or(0, |until| until.since_epoch().as_nanos());
            lease.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Release);
        }
    }

    /// Whether anything is held in the session.
    pub(crate) fn is_kept(&self) -> bool {
        self.keepers.load(Ordering::Acquire) > 0
    }

    pub(super) fn until(&self) -> Duration {
        let lease = if self.is_kept() { &self.confirmed } else { &self.answered };
        Duration::from_nanos(lease.load(Ordering::Acquire))
    }
}

/// Has the session's lease [confirmed](crate::ConnectOptions::lease) for as long as this value exists: see
/// [`Client::keep_lease`](crate::Client::keep_lease). Does not keep the session alive.
#[derive(Debug)]
#[must_use = "dropping it is not to rely on the session any more"]
pub struct LeaseKeeper(Arc<Lease>);

impl LeaseKeeper {
    pub(crate) fn new(lease: &Arc<Lease>) -> Self {
        lease.keepers.fetch_add(1, Ordering::AcqRel);
        Self(lease.clone())
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.0.keepers.fetch_sub(1, Ordering::AcqRel);
    }
}
