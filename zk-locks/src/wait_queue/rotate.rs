//! Recreating a path before its sequence numbers end.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, timeout_at};
use zk_client::{
    Acl, AclList, ChildNames, CreateMode, Id, MultiError, OwnedNode, ReadError, Rejection, Stat,
    WriteError, Zxid,
};

use super::WaitQueue;
use crate::{
    entry::{Entry, SEQUENCE_MAX},
    error::{AcquireError, nothing_written},
};

/// How long a session's attempts wait for a path to become empty.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long after the first of them has begun to, no attempt does so again: where the path does not become empty, not
/// each of them is to be late.
const RESPITE: Duration = Duration::from_secs(600);

/// How an attempt joins a queue whose path is to be made anew.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace<'a> {
    /// It may wait for the path instead of the lock.
    MayWait,
    /// It waits for nothing.
    AtOnce,
    /// The same beside a node of this name, which is not waited for and keeps the path.
    Beside(&'a str),
}

impl<'a> Pace<'a> {
    pub(super) const fn besides(self) -> Option<&'a str> {
        match self {
            Self::Beside(name) => Some(name),
            Self::MayWait | Self::AtOnce => None,
        }
    }
}

/// A place that is given up for one under a new path.
#[derive(Debug)]
pub(super) struct Renewal {
    own: Entry,
    /// The zxid with which the place was taken: a path with a later one is another.
    joined: Zxid,
    /// How long to wait for the path to become empty; `None` if it has to be already.
    until: Option<Instant>,
    /// Whether that is still to be decided.
    is_open: bool,
}

/// What attempts of a session know of each (absolute) path.
#[derive(Debug, Default)]
struct Renewals(Mutex<HashMap<String, Renewing>>);

#[derive(Clone, Copy, Debug)]
struct Renewing {
    /// When the first of them has begun to wait for it to become empty.
    since: Instant,
    /// Whether servers have refused to delete it.
    is_refused: bool,
}

impl Renewals {
    /// How long an attempt waits that begins now; `None` if that has been in vain of late.
    fn until(&self, path: &str) -> Option<Instant> {
        let since = self.begun().entry(path.to_owned()).or_insert_with(Renewing::now).since;
        Some(since + PATIENCE).filter(|until| *until > Instant::now())
    }

    /// Whether an attempt would only meet the same refusal again.
    fn is_refused(&self, path: &str) -> bool {
        self.begun().get(path).is_some_and(|renewing| renewing.is_refused)
    }

    /// Those that are not to be forgotten yet.
    fn begun(&self) -> MutexGuard<'_, HashMap<String, Renewing>> {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|_, renewing| renewing.since.elapsed() < RESPITE);
        begun
    }
}

impl Renewing {
    fn now() -> Self {
        Self { since: Instant::now(), is_refused: false }
    }
}

impl WaitQueue {
    /// Whether a node's number is so large (or has wrapped) that the path should be recreated. Never for a path that
    /// may not be created.
    pub(super) fn is_near_overflow(&self, node: &OwnedNode) -> bool {
        self.may_create(&self.path)
            && node.sequence().is_some_and(|number| number < 0 || number >= self.settings.rotate_at)
    }

    /// Whether any of these nodes has such a number.
    pub(super) fn are_near_overflow(wait_queues: &[&Self], nodes: &[OwnedNode]) -> bool {
        wait_queues.iter().zip(nodes).any(|(wait_queue, node)| wait_queue.is_near_overflow(node))
    }

    /// Decides from the listing behind a new node whether to give its place up: if its number is large, and the path is
    /// empty but for it, or worth a wait.
    pub(super) fn renewal(
        &self,
        node: &OwnedNode,
        listed: &Result<(ChildNames, Stat), ReadError>,
        pace: Pace<'_>,
    ) -> Option<Renewal> {
        if !self.is_near_overflow(node) || pace.besides().is_some() {
            return None;
        }
        let own = self.settings.filter.parse(node.name().to_owned()).ok()?;
        if is_usable(&own) && self.renewals().is_refused(&self.client.absolute(&self.path)) {
            return None;
        }
        let names = listed.iter().flat_map(|(names, _)| names.iter());
        let others: Vec<_> = names.filter(|name| *name != own.name).collect();
        let is_blocked = |entry: &Entry<&str>| entry.blocks(&own);
        let until = match pace {
            Pace::MayWait if self.is_worth_a_wait(&own, &others, is_blocked) => self.until(&own),
            _ => None,
        };
        // Then the listing behind the delete decides.
        let is_open = matches!(pace, Pace::MayWait) && listed.is_err();
        let joined = node.stat().czxid;
        (others.is_empty() || until.is_some()).then_some(Renewal { own, joined, until, is_open })
    }

    /// Whether to wait for these children to go: not for those without a place in a queue, which may stay for ever, nor
    /// where the lock can be had without a wait, unless the number is none.
    fn is_worth_a_wait<N: AsRef<str>>(
        &self,
        own: &Entry,
        names: &[N],
        is_in_the_way: impl Fn(&Entry<&str>) -> bool,
    ) -> bool {
        let filter = &self.settings.filter;
        let mut is_needed = !is_usable(own);
        for name in names {
            match filter.read(name.as_ref()) {
                Ok(entry) => is_needed |= is_in_the_way(&entry),
                Err(name) if filter.is_foreign(name) => return false,
                Err(_) => {}
            }
        }
        is_needed
    }

    fn until(&self, own: &Entry) -> Option<Instant> {
        if !is_usable(own) {
            return Some(Instant::now() + PATIENCE);
        }
        self.renewals().until(&self.client.absolute(&self.path))
    }

    fn renewals(&self) -> Arc<Renewals> {
        self.client.extension()
    }

    /// Leaves the queue, waits until all others have, and deletes the path, if that happens in time.
    ///
    /// Only an empty path can be deleted, so no contender in the old queue is ever missed by one in the new. A
    /// contender that stays keeps the path, and is served before.
    pub(super) async fn rotate(
        &self,
        node: OwnedNode,
        renewal: &Renewal,
    ) -> Result<(), AcquireError> {
        node.delete().await?;
        // Rare, and large.
        Box::pin(self.renew(renewal)).await
    }

    /// As [`rotate`](Self::rotate), for those of several queues that have a renewal. All queues are left first: a
    /// contender that stayed in one while it waits for another to become empty could deadlock with one that does the
    /// opposite.
    pub(super) async fn rotate_all(
        wait_queues: &[&Self],
        nodes: Vec<OwnedNode>,
        renewals: &[Option<Renewal>],
    ) -> Result<(), AcquireError> {
        let left: Vec<_> = nodes.into_iter().map(OwnedNode::delete).collect();
        for left in left {
            left.await?;
        }
        for (wait_queue, renewal) in wait_queues.iter().zip(renewals) {
            if let Some(renewal) = renewal {
                Box::pin(wait_queue.renew(renewal)).await?;
            }
        }
        Ok(())
    }

    /// Waits until all contenders have left the queue, as long as that is worth a wait, and deletes the path. One that
    /// servers refuse to delete is used as it is.
    async fn renew(&self, renewal: &Renewal) -> Result<(), AcquireError> {
        let Renewal { own, joined, until, is_open } = renewal;
        let (mut until, mut is_open) = (*until, *is_open);
        tracing::info!(path = self.path, "making the path anew");
        if self.settings.lock_delay.is_some() {
            self.ensure_release_record().await?;
        }
        loop {
            let ((names, stat), changed) = match self.client.children(&self.path).watch().await {
                Err(ReadError::Rejected(Rejection::NoNode)) => break,
                children => children?,
            };
            if stat.czxid > *joined {
                // Another contender was faster, and has perhaps joined the new queue.
                break;
            }
            if !names.is_empty() {
                // Our node has left: whatever is there now is ahead of the next one.
                let is_worth_it = self.is_worth_a_wait(own, &names, |entry| entry.excludes(own));
                if is_worth_it && std::mem::take(&mut is_open) {
                    until = self.until(own);
                }
                let Some(until) = until.filter(|_| is_worth_it) else { return Ok(()) };
                let Ok(event) = timeout_at(until, changed).await else {
                    tracing::warn!(path = self.path, "the path does not get empty");
                    return Ok(());
                };
                event.map_err(AcquireError::SessionEnded)?;
                continue;
            }
            match self.replace_path().await {
                Ok(()) | Err(WriteError::Rejected(Rejection::NoNode)) => break,
                // A contender has joined, the data were written, or the outcome is unknown: look again.
                Err(
                    WriteError::Rejected(Rejection::NotEmpty | Rejection::BadVersion)
                    | WriteError::InDoubt { .. },
                ) => {}
                Err(WriteError::Rejected(rejection)) => {
                    tracing::warn!(path = self.path, %rejection, "cannot make the path anew");
                    let refused = Renewing { is_refused: true, ..Renewing::now() };
                    let path = self.client.absolute(&self.path).into_owned();
                    self.renewals().begun().insert(path, refused);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.renewals().begun().remove(&*self.client.absolute(&self.path));
        Ok(())
    }

    /// Deletes the path, if it is empty. It is made again by the next attempt; but at once, with what it had, if others have
    /// made it otherwise than an attempt does: with data, or for others than all who may use the lock.
    async fn replace_path(&self) -> Result<(), WriteError> {
        let cork = self.client.cork();
        let (data, acl) = (cork.get(&self.path).submit(), cork.acl(&self.path).submit());
        drop(cork);
        let (data, stat) = data.await.map_err(nothing_written)?;
        let (acl, _) = acl.await.map_err(nothing_written)?;
        if data.is_empty() && is_shown_as(&self.settings.acl, &acl) {
            return self.client.delete(&self.path).version(stat.version).await;
        }
        if acl.iter().any(|acl| acl.id.is_masked()) {
            // Nobody would be meant by it.
            return Err(WriteError::Rejected(Rejection::NoAuth));
        }
        let again = self.client.multi().delete_version(&self.path, stat.version);
        let again = again.create_with_acl(&self.path, &data, CreateMode::Persistent, &acl);
        match again.await? {
            Ok(_) => Ok(()),
            Err(MultiError { rejection, .. }) => Err(WriteError::Rejected(rejection)),
        }
    }
}

/// Whether servers show our list like this: those who may not change it see no hashes of passwords, and where it names the
/// creator they show who that was.
fn is_shown_as(ours: &AclList, shown: &AclList) -> bool {
    let user = |acl: &Acl| acl.id.id.lossy().split(':').next().map(str::to_owned);
    let is_same = |ours: &Acl, shown: &Acl| {
        let is_like = ours.perms == shown.perms && ours.id.scheme == shown.id.scheme;
        let is_creator = ours.id == Id::creator() && shown.id != Id::anyone();
        ours == shown
            || shown.id.is_masked() && is_like && user(ours) == user(shown)
            || is_creator && ours.perms == shown.perms
    };
    let (ours, shown): (Vec<_>, Vec<_>) = (ours.iter().collect(), shown.iter().collect());
    ours.iter().all(|ours| shown.iter().any(|shown| is_same(ours, shown)))
        && shown.iter().all(|shown| ours.iter().any(|ours| is_same(ours, shown)))
}

/// Whether a place has a number: without one it is none.
fn is_usable(own: &Entry) -> bool {
    (0..=SEQUENCE_MAX).contains(&own.sequence)
}

#[cfg(test)]
mod tests {
    use zk_client::Perms;

    use super::*;

    #[test]
    fn lists_are_what_servers_make_of_them() {
        let list = |entries: Vec<Acl>| AclList::from_iter(entries);
        let ann = || Id::digest("ann", "qJ7HQqzpyLxCuC/lYhQGu1yzMK0=").may(Perms::ALL);
        let masked = || Id::digest("ann", "x").may(Perms::ALL);
        let anyone = || Id::anyone().may(Perms::ALL);
        let both = || list(vec![ann(), anyone()]);
        for (ours, shown, is_same) in [
            (list(vec![ann()]), list(vec![ann()]), true),
            (list(vec![ann()]), list(vec![masked()]), true),
            (list(vec![Acl::creator_all()]), list(vec![ann()]), true),
            // The identities of one session.
            (
                list(vec![Acl::creator_all()]),
                list(vec![ann(), Id::x509("CN=ann").may(Perms::ALL)]),
                true,
            ),
            (
                list(vec![Acl::creator_all()]),
                list(vec![Id::digest("ann", "x").may(Perms::READ)]),
                false,
            ),
            (list(vec![Acl::creator_all()]), list(vec![anyone()]), false),
            (list(vec![Acl::creator_all()]), both(), false),
            (list(vec![anyone()]), list(vec![ann()]), false),
            (list(vec![anyone()]), both(), false),
        ] {
            assert_eq!(is_shown_as(&ours, &shown), is_same, "{ours:?} as {shown:?}");
        }
    }
}
