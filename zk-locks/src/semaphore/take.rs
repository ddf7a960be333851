//! From a place in the queue to permits.

use zk_client::{CreateMode, MultiError, OwnedNode, Pending, Rejection, WriteError};

use super::{Semaphore, permits::Look};
use crate::{
    error::{AcquireError, Lost},
    guard::Guard,
    layout::Role,
    wait_queue::{DetachedPosition, Pace, Position, WaitQueue},
};

/// A transaction that trades a place for permits.
type Trade = Pending<Result<Vec<OwnedNode>, MultiError>, WriteError>;

/// The outcome of a trade.
enum Outcome {
    Granted(Vec<Guard>),
    /// Something has changed meanwhile. The place is still there.
    Changed(Box<Position>),
}

impl Semaphore {
    /// Gets this many permits; `None` if there are too few and `waits` is not set.
    pub(super) async fn granted(
        &self,
        wanted: usize,
        waits: bool,
    ) -> Result<Option<Vec<Guard>>, AcquireError> {
        if wanted == 0 {
            return Ok(Some(Vec::new()));
        }
        self.leases.check_name(Role::Lease)?;
        let pace = if waits { Pace::MayWait } else { Pace::AtOnce };
        let data = self.mutex.settings.description.as_bytes();
        let join = self.mutex.join_and(Role::Lock, pace, data, |cork| self.ask(cork));
        let (mut position, asked) = join.await?;
        // Asked behind the listing of the queue: it shows what contenders that have left the queue have done.
        let mut first = match position.ahead() {
            Some(0) => Some(self.answered(asked).await?),
            _ => None,
        };
        loop {
            // Costs nothing while the state is known, however often something changes.
            if waits {
                self.mutex.wait(&mut position).await?;
            } else if self.mutex.look(&mut position).await?.ahead() > 0 {
                return Ok(None);
            }
            let (look, watches) = match first.take() {
                Some(look) => (look, None),
                None => {
                    let (look, watches) = self.look_and_watch().await?;
                    (look, Some(watches))
                }
            };
            if !self.is_of_one_connection(&position) {
                position.forget();
                continue;
            }
            if look.has_room(wanted) {
                match self.take(wanted, position, &look).await? {
                    Outcome::Granted(guards) => return Ok(Some(guards)),
                    Outcome::Changed(back) => position = *back,
                }
            } else if !waits {
                return Ok(None);
            } else if let Some(watches) = watches {
                tokio::select! {
                    biased;
                    changed = self.changed(watches) => changed?,
                    stayed = self.mutex.stay(&mut position) => stayed?,
                }
            }
        }
    }

    /// Whether the latest state of the leases came over the connection over which we learned that no contender is ahead
    /// of us. Another server may not show yet what contenders that have left the queue have taken.
    ///
    /// Nor need that server be as far as the events we have received: those do not count for what a server has to show.
    fn is_of_one_connection(&self, position: &Position) -> bool {
        position.epoch() == Some(self.mutex.client.session().epoch())
    }

    /// Trades the place at the head of the queue for permits, in one transaction: so a contender that has lost its
    /// place gets nothing, and a lost reply leaves both or neither.
    async fn take(
        &self,
        wanted: usize,
        position: Position,
        look: &Look,
    ) -> Result<Outcome, AcquireError> {
        let WaitQueue { client, settings, .. } = &*self.leases;
        let paths = (0..wanted).map(|_| self.leases.node_path(Role::Lease));
        let paths = paths.collect::<Result<Vec<_>, _>>()?;
        let (node, rest) = position.lend();
        let own = rest.read_version().map(|version| (node.path().to_owned(), version));
        let creates = paths.iter().map(|path| {
            let create = self.leases.create(client, path, settings.description.as_bytes());
            create.mode(CreateMode::EphemeralSequential).protected_by_its_name()
        });
        let mut create = client.create_all_protected(creates).replacing(node);
        if look.taken.is_none() {
            create = create.parents_first();
        }
        if let (Some(path), Some(version)) = (&self.count, look.version) {
            create = create.check_version(path, version);
        }
        // A request for the place is one for the permits, too, and would go with its node.
        let own_index = wanted + usize::from(look.version.is_some());
        if let Some((own, version)) = &own {
            create = create.check_version(own, *version);
        }
        let mut nodes = create.submit();
        let failed = match (&mut nodes).await {
            Ok(Ok(nodes)) => {
                let revoked = rest.is_revoked();
                let guards = nodes
                    .into_iter()
                    .map(|node| Guard::of_node(&self.leases, node, (None, revoked)).checked())
                    .collect::<Result<Vec<_>, Lost>>()?;
                let waited = rest.traded();
                let guards = guards.into_iter().map(|guard| guard.granted(&self.leases, waited));
                return Ok(Outcome::Granted(guards.collect()));
            }
            Ok(Err(failed)) => failed,
            Err(error) => return Err(self.leases.refused(error)),
        };
        match failed.rejection {
            // The path of the leases is gone.
            Rejection::NoNode if failed.index < wanted => changed(nodes, rest),
            Rejection::BadVersion if own.is_some() && failed.index == own_index => {
                let mut position = back(nodes, rest)?;
                position.read_own(client).await?;
                Ok(Outcome::Changed(Box::new(position)))
            }
            // The number of permits has changed, or its node is gone.
            Rejection::BadVersion => changed(nodes, rest),
            Rejection::NoNode if look.version.is_some() && failed.index == wanted => {
                changed(nodes, rest)
            }
            Rejection::NoNode => Err(AcquireError::NodeDeleted),
            rejection => Err(AcquireError::Rejected(rejection)),
        }
    }
}

/// Restores the place after a failed trade. Whether it is still there is to be looked at again: with the path of the leases
/// its own may have gone, which no trade without the former finds out.
fn changed(nodes: Trade, rest: DetachedPosition) -> Result<Outcome, AcquireError> {
    Ok(Outcome::Changed(Box::new(back(nodes, rest)?)))
}

fn back(mut nodes: Trade, rest: DetachedPosition) -> Result<Position, AcquireError> {
    let node = nodes.take_back().ok_or(AcquireError::NodeDeleted)?;
    let mut position = rest.back(node);
    position.forget();
    Ok(position)
}
