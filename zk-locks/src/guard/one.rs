//! The guard of one lock.

use std::{fmt, future::Future, pin::pin, sync::OnceLock, time::Duration};

use tokio_util::sync::CancellationToken;
use zk_client::{MultiError, OpResult, OwnedNode, Request, Watch, WriteError};

use super::{Held, Keeping, Status, hold::Hold, owner::Owner, recorded};
use crate::{
    error::{CheckError, Lost, ReleaseError},
    token::FencingToken,
    wait_queue::{Position, ReleaseRecord, WaitQueue, WaitSpan, Waited},
};

/// A lock that is held until the guard is [released](Guard::release) or dropped, or the lock is
/// [lost](Guard::lost).
///
/// Dropping it releases the lock in the background: the session deletes the lock's node, and keeps trying over lost
/// connections until a server has confirmed it. The guard keeps the session alive.
///
/// That takes a moment in which the program must not end: a guard that is dropped as `main` returns may leave its lock
/// until the session expires. [`Client::close`](crate::Client::close) waits for all such deletions,
/// [`release`](Guard::release) for that of one lock.
///
/// No lock service can keep a process that was stopped for a while from acting on a lock that it has lost meanwhile.
/// Pass the [token](Guard::token) on to the resource that the lock protects.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::{Lock, Lost, Status};
///
/// let guard = Lock::new(&zk, "/locks/report").acquire().await?;
/// assert_eq!(guard.status(), Status::Held);
/// // What is kept in ZooKeeper itself is safe if it is written under the lock.
/// guard.transaction().set("/locks", b"touched").await??;
///
/// zk.delete(guard.path()).await?; // another client interferes
/// assert_eq!(guard.lost().await, Lost::NodeDeleted);
/// assert!(guard.transaction().set("/locks", b"too late").await?.is_err());
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it releases the lock"]
pub struct Guard {
    // In drop order: work under the lock is stopped before the lock is given away.
    cancellation: Cancellation,
    /// Reports to the observers, if there are any.
    hold: Option<Hold>,
    keeping: Keeping,
    node: Owner,
    /// The record to write with the release, if any.
    release_record: Option<Box<ReleaseRecord>>,
    held: Held,
}

/// In place of a node whose name other contenders use too: no path, so that the client refuses the transaction, and a text
/// that its error repeats.
const NOT_CHECKED: &str = "(a node whose name has no id: a transaction cannot check whose it is)";

/// A token that is cancelled when this is dropped, or the lock is lost; made on first use.
#[derive(Default)]
struct Cancellation(OnceLock<CancellationToken>);

impl Drop for Cancellation {
    fn drop(&mut self) {
        if let Some(token) = self.0.get() {
            token.cancel();
        }
    }
}

impl Guard {
    /// A guard for a place at the head of the queue; `Err` if it was lost meanwhile.
    pub(crate) fn new(wait_queue: &WaitQueue, position: Position) -> Result<Self, Lost> {
        let (guard, waited) = Self::unreported(wait_queue, position)?;
        Ok(guard.granted(wait_queue, waited))
    }

    /// As `new`, with the wait, for a holder that is yet to be found.
    pub(crate) fn unreported(
        wait_queue: &WaitQueue,
        position: Position,
    ) -> Result<(Self, Waited), Lost> {
        let (guard, mut wait) = Self::unchecked(wait_queue, position);
        let guard = guard.checked()?;
        Ok((guard, wait.end()))
    }

    /// The same, also if it was lost meanwhile, with the wait that goes on.
    pub(crate) fn unchecked(wait_queue: &WaitQueue, position: Position) -> (Self, WaitSpan) {
        let release_record = wait_queue.release_record(&position);
        let (node, own_watch, revoked, wait) = position.granted();
        let guard = Self::of_node(wait_queue, node, (own_watch, revoked));
        (Self { release_record, ..guard }, wait)
    }

    /// A guard for the node of a grant that is yet to be [checked](Guard::checked) and [reported](Guard::granted), with what
    /// was learned of the node.
    pub(crate) fn of_node(
        wait_queue: &WaitQueue,
        node: OwnedNode,
        (own_watch, revoked): (Option<Watch>, bool),
    ) -> Self {
        let token = FencingToken::new(node.stat().czxid);
        let held = match wait_queue.settings.filter.has_ids() {
            true => Held::new(wait_queue.client.clone(), node.path().to_owned(), token),
            false => Held::of_shared_name(wait_queue.client.clone(), node.path().to_owned(), token),
        };
        Self::new_of(held.heard(own_watch, revoked), node)
    }

    /// Reports the grant to a holder that has waited for so long: its hold begins.
    pub(crate) fn granted(mut self, wait_queue: &WaitQueue, waited: Waited) -> Self {
        self.hold = Some(Hold::begin(wait_queue, &self.held, waited));
        self
    }

    /// A guard for a node; `Err` if it was lost meanwhile.
    pub(crate) fn of(held: Held, node: OwnedNode) -> Result<Self, Lost> {
        Self::new_of(held, node).checked()
    }

    fn new_of(held: Held, node: OwnedNode) -> Self {
        let (keeping, node) = (Keeping::begin(&held), Owner::new(&held, Some(node)));
        Self::kept(held, node, keeping)
    }

    fn kept(held: Held, node: Owner, keeping: Keeping) -> Self {
        let cancellation = Cancellation::default();
        let (hold, release_record) = (None, None);
        Self { cancellation, hold, keeping, node, release_record, held }
    }

    /// `Err` if it was lost meanwhile.
    pub(crate) fn checked(self) -> Result<Self, Lost> {
        match self.status() {
            Status::Lost(lost) => Err(lost),
            Status::Held | Status::Suspect { .. } => Ok(self),
        }
    }

    /// Records a loss that another request found out; the first one stays.
    pub(crate) fn lose(&self, lost: Lost) -> Lost {
        self.held.lose(lost)
    }

    /// The guard for the next holder within the process, with the time that it has waited; `Err` if the lock is lost.
    pub(crate) fn passed_on(
        mut self,
        wait_queue: &WaitQueue,
        time: Duration,
    ) -> Result<Self, Lost> {
        self.put_down();
        let Self { held, node, keeping, .. } = self;
        let guard = Self::kept(held.passed_on()?, node, keeping.passed_on()).checked()?;
        Ok(guard.granted(wait_queue, Waited { time, ahead: None }))
    }

    /// Lends the node for a trade. Work under the lock is cancelled first. Returns the guard if it has no node to lend: a
    /// failed trade has used it up, or the lock was taken away.
    pub(crate) fn lend(self) -> Result<(OwnedNode, Lent), Box<Self>> {
        let Some(lent) = self.node.lend() else { return Err(Box::new(self)) };
        let Self { cancellation, hold, keeping, node, release_record, held } = self;
        // A node that is used up by the trade is no loss.
        drop((cancellation, keeping, node));
        Ok((lent, Lent { hold, release_record, held }))
    }

    /// Stops the work under the lock.
    pub(crate) fn put_down(&mut self) {
        (self.cancellation, self.hold) = (Cancellation::default(), None);
    }

    /// The state of the lock, to be watched by others than the owner.
    pub(crate) const fn held(&self) -> &Held {
        &self.held
    }

    /// The number to show to the resource that the lock protects.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.held.token
    }

    /// The path of the lock's node, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        self.held.path()
    }

    /// The state as known locally, without a request. [`Status::Lost`] is final; only the reason may turn from
    /// [`NodeDeleted`](Lost::NodeDeleted) to [`SessionEnded`](Lost::SessionEnded), if the node was deleted because the
    /// session ended.
    ///
    /// The node of a lock that has been held for a second is watched, and earlier if a task waits for the
    /// [loss](Guard::lost): a deletion shows here as soon as the session is notified of it.
    #[must_use]
    pub fn status(&self) -> Status {
        self.held.status()
    }

    /// Waits until the lock is lost; resolves at once if it is already.
    ///
    /// A lock is lost when the session ends or is closed; when the servers have not been heard from for so long that
    /// they may have granted it to another contender, which a partitioned holder learns no later than its successor is
    /// granted the lock (by a standalone server or a leader that it was connected to); or when another client deletes
    /// its node. Waiting costs one request, which arms a watch on that node, unless it is armed already. If that
    /// request fails it is repeated, in one form or another: only the end of the session keeps a loss from being
    /// noticed. The future can be dropped and recreated at will.
    ///
    /// When the session ends, servers delete its nodes first. So if the node is gone, this asks for at most a tenth of
    /// a second whether the session still exists. If that was not enough, the reason is
    /// [`NodeDeleted`](Lost::NodeDeleted), and the [status](Guard::status) shows the right one in the end.
    /// [`status`](Guard::status), the [token](Guard::cancellation_token) and [`scope`](Guard::scope) do not wait for
    /// that: with them work stops at once.
    pub async fn lost(&self) -> Lost {
        self.held.lost().await
    }

    /// Runs `work` until it is done or the lock is lost, whichever comes first, in a `tracing` span with the lock's
    /// path and token.
    ///
    /// # Errors
    /// [`Lost`]; `work` was dropped, wherever it was, as soon as the loss was known. Finding out the reason may take
    /// longer, two seconds at most.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// let guard = zk_locks::Lock::new(&zk, "/locks/report").acquire().await?;
    /// let token = guard.token();
    /// // Whatever it writes to is shown the token; it is dropped at its next `await` when the lock is lost.
    /// let lines = guard.scope(async { format!("report under token {token}").lines().count() }).await?;
    /// assert_eq!(lines, 1);
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn scope<F: IntoFuture>(&self, work: F) -> Result<F::Output, Lost> {
        self.held.scope(pin!(Some(work.into_future()))).await
    }

    /// Waits until a client asks for the lock back: by [`Queue::revoke`](crate::Queue::revoke), or with Curator's
    /// `Revoker`. Resolves at once if that has happened, even before the grant. It is up to the holder to release the
    /// lock.
    ///
    /// Costs as much as waiting for the [loss](Guard::lost), once for both. The future can be dropped and recreated at
    /// will.
    ///
    /// # Errors
    /// [`Lost`] if the lock is lost first.
    pub async fn revoked(&self) -> Result<(), Lost> {
        self.held.revoked().await
    }

    /// A token for work that runs elsewhere: cancelled when the lock is lost, or the guard released or dropped. All
    /// calls return the same one. The first one starts a task that waits for the [loss](Guard::lost), unless the lock is
    /// [known](Guard::status) to be lost: then the token is cancelled already.
    pub fn cancellation_token(&self) -> CancellationToken {
        let start = || {
            let token = CancellationToken::new();
            if matches!(self.status(), Status::Lost(_)) {
                // Work that looks at the token first does not even begin.
                token.cancel();
                return token;
            }
            let (held, cancelled) = (self.held.clone(), token.clone());
            self.held.client().spawn(async move {
                tokio::select! {
                    biased;
                    () = cancelled.cancelled() => {}
                    () = held.gone() => cancelled.cancel(),
                }
            });
            token
        };
        self.cancellation.0.get_or_init(start).clone()
    }

    /// Asks the servers whether the lock is held, by a transaction that a quorum agrees to. The answer was true at some
    /// moment during the call.
    ///
    /// # Errors
    /// [`CheckError::Lost`] if it is not; [`CheckError::Unavailable`] if the servers could not be asked.
    pub async fn check(&self) -> Result<(), CheckError> {
        self.held.check().await
    }

    /// A transaction that happens only if the lock is still held: add the writes to what the lock protects in ZooKeeper
    /// itself, which need no token then.
    ///
    /// If the lock is not held any more the transaction fails at its operation 0 with
    /// [`NoNode`](zk_client::Rejection::NoNode); added operations count from 1. That is for the servers to say: a lock that
    /// only this guard counts as lost, since its lease ran out, is nobody else's as long as its node is there.
    ///
    /// Not for locks whose nodes have names [without an id](crate::Names::without_id), held or lost: nothing is sent, and
    /// the error is [`NotApplied`](WriteError::NotApplied), with [`InvalidPath`](zk_client::Cause::InvalidPath). Servers
    /// check that there is a node of this name, and when the path has been deleted and its numbers begin anew that may be
    /// the next holder's. Show the [token](Guard::token) to what the lock protects.
    ///
    /// Unlike the requests that the recipe makes itself, this one uses the [options](zk_client::Client::with) of the
    /// client that the recipe was made from, with their timeout and in the order of submission.
    pub fn transaction(&self) -> Request<'_, Result<Vec<OpResult>, MultiError>, WriteError> {
        self.held.client().multi().as_told().check(self.checked_path())
    }

    /// What a transaction checks.
    pub(super) fn checked_path(&self) -> &str {
        if self.held.has_shared_name() { NOT_CHECKED } else { self.path() }
    }

    /// Releases the lock, and waits until the next contender can have it.
    ///
    /// The release is under way when this returns the future; dropping the future does not stop it.
    ///
    /// # Errors
    /// [`ReleaseError`] if no server has confirmed it: the session has ended, and the lock with it; or servers
    /// [refuse](ReleaseError::Refused) to delete the node. Then the session goes on and the node stays: others keep waiting
    /// for it until the session may delete it after all, or ends.
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        let Self { cancellation, hold, keeping, node, release_record, held } = self;
        // In drop order.
        drop((cancellation, hold, keeping));
        let deleted = recorded::delete(node, &held, release_record);
        async move {
            let released = deleted.await;
            // Kept until here: dropping the last client closes the session.
            drop(held);
            released
        }
    }
}

/// What is left of a guard whose node is lent for a trade: its hold goes on.
pub(crate) struct Lent {
    hold: Option<Hold>,
    release_record: Option<Box<ReleaseRecord>>,
    held: Held,
}

impl Lent {
    /// The guard again, if the trade has failed; without its node if that is gone.
    pub(crate) fn back(self, node: Option<OwnedNode>) -> Guard {
        let held = self.held.afresh(self.held.path());
        let node = Owner::new(&held, node);
        self.goes_on(held, node)
    }

    /// The guard of the node that it has now, under the same token. If the lock was lost meanwhile the node is given away:
    /// no contender is to wait for a lost lock until its guard is dropped.
    pub(crate) fn traded(self, node: OwnedNode) -> Guard {
        let held = self.held.afresh(node.path());
        let node = Owner::new(&held, Some(node));
        if matches!(held.status(), Status::Lost(_)) {
            held.node.owned.give_away();
        }
        self.goes_on(held, node)
    }

    fn goes_on(self, held: Held, node: Owner) -> Guard {
        let Self { hold, release_record, .. } = self;
        if let Some(hold) = &hold {
            hold.goes_on(&held);
        }
        let (cancellation, keeping) = (Cancellation::default(), Keeping::begin(&held));
        Guard { cancellation, hold, keeping, node, release_record, held }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("path", &self.path())
            .field("token", &self.token())
            .field("lost", &self.held.node.loss())
            .finish_non_exhaustive()
    }
}
