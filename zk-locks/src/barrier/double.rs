//! The double barrier: beginning together, and ending together.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};
use zk_client::{
    Client, CreateMode, EventType, MultiError, Pending, ReadError, Rejection, Stat, Watch,
    WriteError, Zxid,
    path::{join, name},
};

use super::participation::{Participation, READY};
use crate::{
    builder::Builder,
    contender::REVOKE,
    error::AcquireError,
    guard::{Guard, Held},
    layout::Layout,
    token::FencingToken,
    wait_queue::{WaitQueue, watched_event},
};

/// A barrier that a fixed number of participants enter together and leave together.
///
/// Nodes are those of Curator's `DistributedDoubleBarrier` and kazoo's `DoubleBarrier`: each participant has an
/// ephemeral one under the path, and a node called `ready` exists from when all participants are there until all have
/// left. A `ready` left over from a round whose participants have died lets none of ours in too early.
///
/// All that are there are counted, as in Curator: a participant that comes while one of the round before has not left yet is
/// counted together with that one. So with more participants than the number says, or with one that enters again before all
/// have left, a round can be complete with a participant of the one before. Have exactly so many, and let each enter again
/// only when its [`leave`](Participation::leave) has returned.
///
/// Entering costs three requests in one round trip, plus one request and a notification for all but the last
/// participant, which writes: a transaction that checks the nodes of all. Where there is a `ready` of such a round, each of
/// ours that waits lists them anew whenever one comes. Leaving costs five requests, and at most two
/// more for each of the others. The [loss](Guard::lost) of the node, above all with its session, counts as having left:
/// the others do not wait for it. Stop then, and enter the next round with another participation.
///
/// ```
/// # async fn compute() {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::DoubleBarrier;
///
/// let barrier = DoubleBarrier::new(&zk, "/barriers/step", 2);
/// # let other = barrier.clone();
/// # let other = tokio::spawn(async move { other.enter().await?.leave().await });
/// let participation = barrier.enter().await?;
/// // Both are there. Stops if this one does not count as there any more.
/// participation.scope(compute()).await?;
/// participation.leave().await?;
/// // Both are done, or gone.
/// # other.await??;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DoubleBarrier {
    wait_queue: Arc<WaitQueue>,
    participants: usize,
}

/// Two reads in flight that show whether all participants are there: the `ready` node, and the list of participants.
type Look = (Pending<(Option<Stat>, Watch), ReadError>, Pending<(Vec<String>, Stat), ReadError>);

impl DoubleBarrier {
    /// A barrier on `path` for this number of participants, with default settings.
    #[must_use]
    pub fn new(client: &Client, path: &str, participants: usize) -> Self {
        Self::builder(client, path).build().of(participants)
    }

    /// A barrier on `path`, with settings; those about queues have no effect, and [observers](Builder::observer) are told
    /// nothing. Set the [number of participants](DoubleBarrier::of) afterwards.
    ///
    /// The name of a participant's node is an id: a UUID, or with any [layout](Builder::layout) but the default its 32
    /// digits without the dashes. That makes no difference to others.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        Builder::new(client, path, |wait_queue| Self {
            wait_queue: Arc::new(wait_queue),
            participants: 1,
        })
        .unreported()
    }

    /// Sets the number of participants. All of them must use the same number.
    ///
    /// The last one names the nodes of all in one request, whose length servers limit (`jute.maxbuffer`, a megabyte by
    /// default).
    #[must_use]
    pub const fn of(mut self, participants: usize) -> Self {
        self.participants = participants;
        self
    }

    /// Waits until all participants are there, this one included. Each call is a participant of its own.
    ///
    /// Three requests in one round trip, one more while waiting, and one for the last participant, whose length grows
    /// with the number of participants. Waiters get one notification.
    ///
    /// No participant enters unless at some moment as many were there together. One that was there at that moment may have
    /// left when the others learn of it, and may be of the [round before](DoubleBarrier).
    ///
    /// Dropping the future leaves the barrier: no node stays behind.
    ///
    /// # Errors
    /// [`AcquireError`]: above all, if the session ends or the node is deleted.
    pub async fn enter(&self) -> Result<Participation, AcquireError> {
        let wait_queue = &self.wait_queue;
        let id = wait_queue.client.unique_id()?;
        let id =
            if wait_queue.settings.layout == Layout::Curator { id } else { id.replace('-', "") };
        let description = wait_queue.settings.description.as_bytes();
        let mode = CreateMode::Ephemeral;
        let (node, look) =
            wait_queue.plant(&id, mode, description, |client| self.look(client)).await?;
        // What is heard from here on is of this connection or a later one.
        let epoch = wait_queue.client.session().epoch();
        let (own_watch, revoked) = self.all_there(node.path(), node.stat().czxid, look).await?;
        let token = FencingToken::new(node.stat().czxid);
        let held = Held::new(wait_queue.client.clone(), node.path().to_owned(), token);
        Ok(Participation {
            guard: Guard::of(held.heard(own_watch, revoked), node)?,
            wait_queue: wait_queue.clone(),
            epoch,
        })
    }

    /// As [`enter`](DoubleBarrier::enter), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; the node is removed in the background.
    pub async fn enter_timeout(&self, time: Duration) -> Result<Participation, AcquireError> {
        timeout(time, self.enter()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    fn look(&self, client: &Client) -> Look {
        let path = &self.wait_queue.path;
        let ready = client.exists(&join(path, READY)).watch().submit();
        (ready, client.children(path).submit())
    }

    /// Waits until all are there. The `ready` node must be newer than our own node: an older one may be left from
    /// another round. Returns the watch on our own node, if there is one, and whether it said that the place is asked back.
    async fn all_there(
        &self,
        own: &str,
        since: Zxid,
        look: Look,
    ) -> Result<(Option<Watch>, bool), AcquireError> {
        let client = &self.wait_queue.client;
        let mut look = Some(look);
        let (mut own_watch, mut revoked) = (None, false);
        // The first answers may be stale: repeated over a new connection, or read before a create that had to be
        // repeated.
        let mut is_old = true;
        loop {
            let (ready, names) = look.take().unwrap_or_else(|| self.look(client));
            let (ready, mut said) = ready.await?;
            let (names, list) = match names.await {
                Err(ReadError::Rejected(Rejection::NoNode)) => Default::default(),
                names => names?,
            };
            if ready.is_some_and(|ready| ready.mzxid > since) {
                return Ok((own_watch, revoked));
            }
            if !names.iter().any(|there| there == name(own)) {
                if std::mem::take(&mut is_old) {
                    continue;
                }
                return Err(AcquireError::NodeDeleted);
            }
            is_old = false;
            let others = names.iter().filter(|there| *there != READY && *there != name(own));
            let others: Vec<_> = others.take(self.participants.saturating_sub(1)).collect();
            if others.len() + 1 >= self.participants {
                if self.say_so(own, &others, ready.is_some()).await? {
                    return Ok((own_watch, revoked));
                }
                continue;
            }
            let own_event = match &mut own_watch {
                Some(watch) => watch,
                none => match client.get(own).watch().await {
                    Ok(((data, _), watch)) => {
                        revoked |= data == REVOKE;
                        none.insert(watch)
                    }
                    Err(ReadError::Rejected(Rejection::NoNode)) => {
                        return Err(AcquireError::NodeDeleted);
                    }
                    Err(error) => return Err(error.into()),
                },
            };
            // Where there is a `ready` already, the last to come may be of an implementation that does not write it again.
            let mut comings = None;
            if ready.is_some() {
                match client.children(&self.wait_queue.path).watch().await {
                    Ok(((_, now), watch)) if now.pzxid == list.pzxid => comings = Some(watch),
                    Ok(_) | Err(ReadError::Rejected(Rejection::NoNode)) => continue,
                    Err(error) => return Err(error.into()),
                }
            }
            tokio::select! {
                biased;
                event = &mut said => match event.map_err(AcquireError::SessionEnded)?.kind {
                    EventType::NODE_CREATED | EventType::NODE_DATA_CHANGED => {
                        return Ok((own_watch, revoked));
                    }
                    _ => {}
                },
                // If it was deleted, the next look shows why: a session that ends takes its nodes along.
                event = own_event => {
                    event.map_err(AcquireError::SessionEnded)?;
                    own_watch = None;
                }
                event = watched_event(&mut comings) => drop(event?),
                () = recheck(self.wait_queue.settings.recheck) => {}
            }
        }
    }

    /// Marks the round as complete, if those who complete it are still there when the server does so: this may be long
    /// after they were seen, and those who have come since must not take it for a sign of theirs. A node that is left
    /// from another round is renewed. Returns whether it was done; if not, something has changed.
    async fn say_so(
        &self,
        own: &str,
        others: &[&String],
        renew: bool,
    ) -> Result<bool, AcquireError> {
        let WaitQueue { client, path, settings, .. } = &*self.wait_queue;
        let ready = join(path, READY);
        let others: Vec<_> = others.iter().map(|name| join(path, name)).collect();
        let all_there =
            others.iter().fold(client.multi().check(own), |multi, path| multi.check(path));
        let said = match renew {
            true => all_there.set(&ready, b""),
            false => all_there.create_with_acl(&ready, b"", CreateMode::Persistent, &settings.acl),
        };
        match said.await {
            Ok(Ok(_)) => Ok(true),
            Ok(Err(MultiError {
                rejection: Rejection::NoNode | Rejection::NodeExists, ..
            })) => Ok(false),
            Ok(Err(MultiError { rejection, .. })) => Err(WriteError::Rejected(rejection).into()),
            Err(error) => self.wait_queue.may_try_again(error).await.map(|()| false),
        }
    }
}

async fn recheck(pause: Option<Duration>) {
    match pause {
        Some(pause) => sleep(pause).await,
        None => std::future::pending().await,
    }
}
