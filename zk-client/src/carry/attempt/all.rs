//! All creates in progress.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use tokio::sync::watch;
use zk_proto::{
    SessionId,
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

/// All creates in progress.
#[derive(Debug)]
pub(crate) struct Attempts {
    running: BTreeMap<u64, Attempt>,
    next: u64,
    /// Deletes unneeded nodes. Weak, or the driver would keep itself alive.
    sweeper: Weak<dyn Sweeper>,
    level: Arc<Level>,
    published: watch::Receiver<Published>,
    /// The permit of the last create to end.
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

    /// Whether no create is in progress.
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

    /// Searches again, after a server was unable to resolve the doubt.
    pub(crate) fn retry(&mut self, AttemptId(id): AttemptId) -> Vec<Next> {
        match self.running.get_mut(&id) {
            Some(attempt) => attempt.search(id),
            None => Vec::new(),
        }
    }

    /// Processes the outcome of one of an attempt's requests.
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
                // Reported as if the creates had been too late: a caller that retries asks for new names. But they were
                // applied, and the node they replaced is gone.
                attempt.create.replaced = None;
                self.freed = attempt.cost;
                let missing = MultiError { index, rejection: Rejection::NoNode };
                self.finish(attempt.create, Ok(Err(missing)), false);
                left
            }
        }
    }

    /// Returns the freed permit, once.
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
        // Without a client the session is being closed, and its nodes go with it.
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
        // If no caller waits any more, dropping the nodes deletes them.
        let _ = done.send(Concluded { nodes, kept, creates });
    }
}
