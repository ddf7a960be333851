//! All creates under way.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use tokio::sync::watch;
use zk_proto::{
    SessionId, planted,
    session::{Outcome, Outgoing},
};

use super::{
    one::{Attempt, AttemptId, Next, Progress, Step},
    protected::{Concluded, ProtectedCreate},
    wanted::Found,
};
use crate::{
    carry::{
        lease::{Lease, LeaseKeeper},
        level::Level,
        node::{Disowned, OwnedNode},
        published::Published,
        sweep::Sweeper,
    },
    error::{MultiError, Rejection, WriteError},
    queue::Cost,
    watch::Listener,
};

/// All creates under way.
#[derive(Debug)]
pub(crate) struct Attempts {
    running: BTreeMap<u64, Attempt>,
    next: u64,
    /// For the nodes that come of it. Weak, or the driver would keep itself alive.
    sweeper: Weak<dyn Sweeper>,
    level: Arc<Level>,
    published: watch::Receiver<Published>,
    /// The room that the last one to end took up.
    freed: Option<Cost>,
    lease: Arc<Lease>,
}

impl Attempts {
    pub(crate) const fn new(
        sweeper: Weak<dyn Sweeper>,
        level: Arc<Level>,
        published: watch::Receiver<Published>,
        lease: Arc<Lease>,
    ) -> Self {
        let running = BTreeMap::new();
        Self { running, next: 0, sweeper, level, published, lease, freed: None }
    }

    /// Whether all have come to their end.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn start(
        &mut self,
        create: ProtectedCreate,
        cost: Option<Cost>,
    ) -> Outgoing<AttemptId, Listener> {
        let id = self.next;
        self.next += 1;
        let mut attempt = Attempt {
            create,
            cost,
            step: Step::Create,
            missing: 1,
            outcomes: Vec::new(),
            legacy: false,
            unread: 0,
            level: self.level.clone(),
        };
        let request = attempt.create_request(id);
        self.running.insert(id, attempt);
        request
    }

    /// A server was not able to resolve the doubt when it was asked; ask again.
    pub(crate) fn retry(&mut self, AttemptId(id): AttemptId) -> Vec<Next> {
        match self.running.get_mut(&id) {
            Some(attempt) => attempt.search(id),
            None => Vec::new(),
        }
    }

    /// One of an attempt's requests has come to its end.
    pub(crate) fn advance(
        &mut self,
        AttemptId(id): AttemptId,
        session: SessionId,
        outcome: Outcome,
    ) -> Vec<Next> {
        let Some(mut attempt) = self.running.remove(&id) else { return Vec::new() };
        match attempt.heard(id, session, outcome) {
            Progress::Go(next) => {
                self.running.insert(id, attempt);
                next
            }
            Progress::Done(result) => {
                self.freed = attempt.cost;
                self.finish(attempt.create, result, true);
                Vec::new()
            }
            Progress::Incomplete { index, left } => {
                // As if the creates had been too late: whoever tries again asks for new names. But they have
                // happened, and the node that they replaced is gone.
                attempt.create.replaced = None;
                self.freed = attempt.cost;
                let missing = MultiError { index, rejection: Rejection::NoNode };
                self.finish(attempt.create, Ok(Err(missing)), false);
                left
            }
        }
    }

    /// The room that has become free, once.
    pub(crate) const fn take_freed(&mut self) -> Option<Cost> {
        self.freed.take()
    }

    fn finish(
        &self,
        create: ProtectedCreate,
        result: Result<Result<Vec<Found>, MultiError>, WriteError>,
        may_lack_parents: bool,
    ) {
        let ProtectedCreate { nodes: wanted, replaced, chroot, done, .. } = create;
        // Without a client the session is being closed, and takes the nodes along.
        let Some(sweeper) = self.sweeper.upgrade() else { return };
        let own = |Disowned { absolute, stat, sequence, is_shared }| OwnedNode {
            absolute,
            stat,
            sequence,
            is_shared,
            chroot: chroot.clone(),
            sweeper: Some(sweeper.clone()),
            published: self.published.clone(),
            _lease: LeaseKeeper::new(&self.lease),
        };
        let creates = if may_lack_parents { wanted.len() } else { 0 };
        let created = matches!(result, Ok(Ok(_)));
        let nodes = result.map(|found| {
            let pairs = found.map(|found| wanted.into_iter().zip(found));
            pairs.map(|pairs| pairs.map(|(wanted, found)| own(found.of(&wanted))).collect())
        });
        let kept = replaced.filter(|_| !created).map(own);
        // If nobody waits any more, the nodes delete themselves in being dropped.
        let unwanted = done.send(Concluded { nodes, kept, creates });
        if planted!(CancelLeavesNode) {
            std::mem::forget(unwanted);
        }
    }
}
