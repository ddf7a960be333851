//! A participant of a double barrier, from when it has entered until all have left.

use std::{collections::BTreeSet, fmt, ops::Deref, sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::{
    ReadError, Rejection, WriteError, Zxid,
    path::{join, name},
};

use crate::{
    error::AcquireError,
    guard::Guard,
    quorum,
    wait_queue::{IN_PLACE, WaitQueue},
};

/// The node that marks a complete round. Persistent; created by the first participant that sees all others.
pub(super) const READY: &str = "ready";

/// A participant that has entered a [`DoubleBarrier`](crate::DoubleBarrier). It dereferences to [`Guard`]: it counts as there as long as its
/// node exists, and reports the loss of that.
///
/// Dropping it leaves the barrier without waiting for the others.
#[must_use = "dropping it is leaving without waiting for the others"]
pub struct Participation {
    pub(super) guard: Guard,
    pub(super) wait_queue: Arc<WaitQueue>,
    /// That of a connection whose server knew of all participants, if it is still the same.
    pub(super) epoch: u64,
}

impl Deref for Participation {
    type Target = Guard;
    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl fmt::Debug for Participation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Participation").field(&self.guard).finish()
    }
}

impl Participation {
    /// Leaves, and waits until all others have left or are lost. Does not wait for participants of the next round.
    ///
    /// At most one listing and one read for each of the others, and five requests besides; three more behind a lost
    /// connection.
    ///
    /// Dropping the future leaves the barrier without waiting.
    ///
    /// # Errors
    /// [`AcquireError`]: above all, if the session ends. This one has left in any case, or will have when the
    /// servers notice; unless they refuse to delete its node. That is [`AcquireError::Orphan`], at once: the session
    /// [counts](crate::Session::orphans) the node, and others wait until it is over or is permitted to.
    pub async fn leave(self) -> Result<(), AcquireError> {
        let Self { guard, wait_queue, epoch } = self;
        let WaitQueue { client, path, .. } = &*wait_queue;
        let own = name(guard.path()).to_owned();
        let mut staying = Some(guard);
        let Some((names, until)) = present_round(&wait_queue, epoch).await? else { return Ok(()) };
        // The participants at the moment we began to leave. (The others remove `ready` as soon as they begin to leave;
        // later arrivals cannot be recognized then.)
        let mut there: BTreeSet<String> = names.iter().cloned().collect();
        let mut names = Some(names);
        loop {
            let names = match names.take() {
                Some(names) => names,
                None => match quorum::answer(client, || present(&wait_queue)).await? {
                    Some(names) => names,
                    None => return Ok(()),
                },
            };
            let mut others: BTreeSet<String> =
                names.into_iter().filter(|name| *name != READY && *name != own).collect();
            others.retain(|name| there.contains(name));
            // The first one stays until all others have gone, and they wait for that one.
            let stays = staying.is_some() && others.first().is_some_and(|first| own < *first);
            let next = if stays { others.last() } else { others.first() };
            if !stays {
                if let Some(guard) = staying.take() {
                    let path = guard.path().to_owned();
                    // It does not matter if the node is gone already. Without the permission there is no wait for the
                    // others, which wait for this one.
                    guard.release().await.map_err(|error| error.of_node(path))?;
                }
            }
            let Some(next) = next else {
                return unsay(&wait_queue, until).await;
            };
            match client.get(&join(path, next)).watch().await {
                // Of the next round.
                Ok(((_, stat), _)) if stat.czxid > until => drop(there.remove(next)),
                Ok((_, watch)) => drop(watch.await.map_err(AcquireError::SessionEnded)?),
                Err(ReadError::Rejected(Rejection::NoNode)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// As [`leave`](Participation::leave), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once. This one has left as far as it may; others may still be
    /// there.
    pub async fn leave_timeout(self, time: Duration) -> Result<(), AcquireError> {
        timeout(time, self.leave()).await.unwrap_or(Err(AcquireError::TimedOut))
    }
}

/// As `round`, as late as what was heard over the connection of this epoch: events do not count for what
/// another server has to show, which need not know of a participant with whom one has entered.
async fn present_round(
    wait_queue: &WaitQueue,
    mut epoch: u64,
) -> Result<Option<(Vec<String>, Zxid)>, AcquireError> {
    let WaitQueue { client, path, .. } = wait_queue;
    loop {
        let round = quorum::answer(client, || round(wait_queue)).await?;
        let now = client.session().epoch();
        if now == epoch {
            return Ok(round);
        }
        match client.sync(path).await {
            Ok(()) => epoch = now,
            Err(ReadError::Rejected(Rejection::ReadOnly)) => quorum::regained(client).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The participants at the moment one begins to leave, and when the round was complete; `None` if there are none.
async fn round(wait_queue: &WaitQueue) -> Result<Option<(Vec<String>, Zxid)>, AcquireError> {
    let WaitQueue { client, path, .. } = wait_queue;
    let ready = join(path, READY);
    // Before the listing: after it, the node may belong to another round.
    let sign = client.with(IN_PLACE).exists(&ready).submit();
    let names = client.children(path).submit();
    let (sign, names) = match sign.await {
        Ok(sign) => (sign, names.await),
        Err(refused @ ReadError::Rejected(_)) => return Err(refused.into()),
        // Not answered: asked again, both, so that they stay in this order.
        Err(_) => (client.exists(&ready).await?, client.children(path).await),
    };
    match names {
        Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
        names => {
            let (names, stat) = names?;
            Ok(Some((names, sign.map_or(stat.pzxid, |sign| sign.mzxid))))
        }
    }
}

/// The names of the participants that are there; `None` if the path is gone.
async fn present(wait_queue: &WaitQueue) -> Result<Option<Vec<String>>, ReadError> {
    match wait_queue.client.children(&wait_queue.path).await {
        Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
        children => Ok(Some(children?.0)),
    }
}

/// Removes the `ready` node, unless it belongs to the next round.
async fn unsay(wait_queue: &WaitQueue, until: Zxid) -> Result<(), AcquireError> {
    let WaitQueue { client, path, .. } = wait_queue;
    let ready = join(path, READY);
    loop {
        let seen = quorum::answer(client, || client.exists(&ready)).await?;
        let Some(stat) = seen else { return Ok(()) };
        if stat.mzxid > until {
            return Ok(());
        }
        match client.delete(&ready).version(stat.version).await {
            Ok(()) | Err(WriteError::Rejected(Rejection::NoNode | Rejection::BadVersion)) => {
                return Ok(());
            }
            Err(WriteError::Rejected(Rejection::ReadOnly)) => quorum::regained(client).await,
            Err(error) => wait_queue.may_try_again(error).await?,
        }
    }
}
