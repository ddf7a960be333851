//! One lock in its holder's hands.

use std::{fmt, future::Future, pin::pin, sync::OnceLock, time::Duration};

use tokio_util::sync::CancellationToken;
use zk_client::{Multi, OwnedNode, Watch, Zxid, planted};

use super::{Held, Keeping, Status, hold::Hold};
use crate::{
    error::{CheckError, Lost, ReleaseError},
    line::{Line, Place, SignOff, Waited},
    token::FencingToken,
};

/// A lock that is held until the guard is [released](Guard::release) or dropped, or the lock is
/// [lost](Guard::lost).
///
/// Dropping it releases the lock in the background: the session deletes the lock's node, and goes on trying
/// over lost connections until a server has confirmed it. The guard keeps the session alive.
///
/// That takes a moment in which the program must not end: a guard that is dropped as `main` returns may leave its lock
/// until the session expires. [`Client::close`](crate::Client::close) waits for all that is under way, as does
/// [`release`](Guard::release) for one lock.
///
/// No lock service can keep a process that was stopped for a while from acting on a lock that it has lost
/// meanwhile. Pass the [token](Guard::token) on to what the lock protects.
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
/// zk.delete(guard.path()).await?; // somebody interferes
/// assert_eq!(guard.lost().await, Lost::NodeDeleted);
/// assert!(guard.transaction().set("/locks", b"too late").await?.is_err());
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it releases the lock"]
pub struct Guard {
    // In the order in which they go: work under the lock is stopped before the lock is given away.
    cancellation: Cancellation,
    /// Tells of it, if somebody wants to know.
    hold: Option<Hold>,
    keeping: Keeping,
    /// `None` if it went in a trade of which nothing has come.
    node: Option<OwnedNode>,
    /// What is to be written with the release, if anything.
    sign_off: Option<Box<SignOff>>,
    held: Held,
}

/// Cancelled when it goes, or the lock is lost; made when first asked for.
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
    /// A guard for a place at the head of the queue; `Err` if it was lost on the way.
    pub(crate) fn new(line: &Line, place: Place) -> Result<Self, Lost> {
        let sign_off = line.sign_off(&place);
        let (node, own_watch, revoked, waited) = place.granted();
        let guard = Self::of_node(line, node, (own_watch, revoked), waited)?;
        Ok(Self { sign_off, ..guard })
    }

    /// A guard for a node that stands for what was granted, with what was heard of it; `Err` if it was lost on
    /// the way.
    pub(crate) fn of_node(
        line: &Line,
        node: OwnedNode,
        (own_watch, revoked): (Option<Watch>, bool),
        waited: Waited,
    ) -> Result<Self, Lost> {
        let token = match node.sequence() {
            Some(sequence) if planted!(TokenFromSuffix) => Zxid(sequence.into()),
            _ => node.stat().czxid,
        };
        let token = FencingToken::new(token);
        let held = match line.settings.filter.has_ids() {
            true => Held::new(line.client.clone(), node.path().to_owned(), token),
            false => Held::of_shared_name(line.client.clone(), node.path().to_owned(), token),
        };
        let mut guard = Self::of(held.heard(own_watch, revoked), node)?;
        guard.hold = Some(Hold::begin(line, &guard.held, waited));
        Ok(guard)
    }

    /// A guard for a node; `Err` if it was lost on the way.
    pub(crate) fn of(held: Held, node: OwnedNode) -> Result<Self, Lost> {
        let keeping = Keeping::begin(&held);
        Self::kept(held, node, keeping)
    }

    fn kept(held: Held, node: OwnedNode, keeping: Keeping) -> Result<Self, Lost> {
        let cancellation = Cancellation::default();
        let (hold, sign_off) = (None, None);
        let guard = Self { cancellation, hold, keeping, node: Some(node), sign_off, held };
        match guard.status() {
            Status::Lost(lost) => Err(lost),
            Status::Held | Status::Suspect { .. } => Ok(guard),
        }
    }

    /// Records a loss that was found out in passing; the first one stays.
    pub(crate) fn lose(&self, lost: Lost) -> Lost {
        self.held.lose(lost)
    }

    /// The guard for the next holder within the process, who has waited for so long; `Err` if there is nothing
    /// to pass on any more.
    pub(crate) fn passed_on(mut self, line: &Line, time: Duration) -> Result<Self, Lost> {
        self.put_down();
        let Self { held, node, keeping, .. } = self;
        let node = node.ok_or(Lost::NodeDeleted)?;
        let mut guard = Self::kept(held.passed_on()?, node, keeping.passed_on())?;
        guard.hold = Some(Hold::begin(line, &guard.held, Waited { time, ahead: None }));
        Ok(guard)
    }

    /// The node, to be traded for another one, and what makes a guard of it again if nothing comes of that. Work under
    /// the lock is cancelled first.
    pub(crate) fn lend(self) -> (Option<OwnedNode>, impl FnOnce(Option<OwnedNode>) -> Self) {
        let Self { cancellation, mut hold, keeping, node, sign_off, held } = self;
        // That the node goes in the trade is no loss.
        drop((cancellation, keeping));
        let back = move |node| {
            let (held, cancellation) = (held.afresh(), Cancellation::default());
            if let Some(hold) = &mut hold {
                hold.goes_on(&held);
            }
            Self { cancellation, hold, keeping: Keeping::begin(&held), node, sign_off, held }
        };
        (node, back)
    }

    /// Nobody works under the lock any more, for now.
    pub(crate) fn put_down(&mut self) {
        (self.cancellation, self.hold) = (Cancellation::default(), None);
    }

    /// What is known of it, for whoever watches over it without owning it.
    pub(crate) const fn held(&self) -> &Held {
        &self.held
    }

    /// The number to show to whatever the lock protects.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.held.token
    }

    /// The path of the lock's node, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        self.held.path()
    }

    /// What is known locally, without asking anybody. Once it says [`Status::Lost`] it says so for good; only the
    /// reason may turn from [`NodeDeleted`](Lost::NodeDeleted) to [`SessionEnded`](Lost::SessionEnded), if the
    /// node went because the session did.
    ///
    /// A lock that has been held for a second has its node watched, and before that if anybody waits for the
    /// [loss](Guard::lost): a deletion is known here as soon as the session hears of it.
    #[must_use]
    pub fn status(&self) -> Status {
        self.held.status()
    }

    /// Waits until the lock is lost; resolves at once if it is already.
    ///
    /// That is: when the session ends or is told to close; when the servers have not been heard of for so
    /// long that they may have given the lock to somebody else, which a partitioned holder learns no later
    /// than its successor is let in (by a standalone server or a leader that it was connected to); or when
    /// somebody deletes the lock's node. Waiting costs one request, which arms a watch on that node, unless it is
    /// armed already. If that request fails it is made again, in one form or another: nothing but the end of
    /// the session keeps a loss from being heard of. The future can be dropped and made anew at will.
    ///
    /// When the session ends, servers delete its nodes first. So if the node is gone it is found out whether the
    /// session is still there, for a tenth of a second at most: the reason is
    /// [`NodeDeleted`](Lost::NodeDeleted) if that was not enough; the [status](Guard::status) tells the truth in the end.
    /// [`status`](Guard::status), the
    /// [token](Guard::cancellation_token) and [`scope`](Guard::scope) do not wait for that: by them work stops at
    /// once.
    pub async fn lost(&self) -> Lost {
        self.held.lost().await
    }

    /// Runs `work` until it is done or the lock is lost, whichever comes first, in a `tracing` span with the
    /// lock's path and token.
    ///
    /// # Errors
    /// [`Lost`]; `work` has been dropped as soon as that was known, wherever it was. Finding out the reason may take
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
    pub async fn scope<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        self.held.scope(pin!(Some(work))).await
    }

    /// Waits until somebody asks for the lock back: by [`Queue::revoke`](crate::Queue::revoke), or with
    /// Curator's `Revoker`. Resolves at once if that has happened, also if it was while the lock was waited
    /// for. Nothing else comes of it: to release the lock is up to the holder.
    ///
    /// Costs what waiting for the [loss](Guard::lost) costs, once for both. The future can be dropped and made
    /// anew at will.
    ///
    /// # Errors
    /// [`Lost`] if the lock is lost first.
    pub async fn revoked(&self) -> Result<(), Lost> {
        self.held.revoked().await
    }

    /// A token for work that runs elsewhere: cancelled when the lock is lost, or the guard released or
    /// dropped. All calls return the same one. The first one starts a task that waits for the
    /// [loss](Guard::lost).
    pub fn cancellation_token(&self) -> CancellationToken {
        let start = || {
            let token = CancellationToken::new();
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

    /// Asks the servers whether the lock is held: a transaction that a quorum has agreed to. The answer was
    /// true at some moment while this was under way.
    ///
    /// # Errors
    /// [`CheckError::Lost`] if it is not; [`CheckError::Unavailable`] if they could not be asked.
    pub async fn check(&self) -> Result<(), CheckError> {
        self.held.check().await
    }

    /// A transaction that happens only if the lock is still held: add what it protects in ZooKeeper itself,
    /// which needs no token then.
    ///
    /// If the lock is not held any more the transaction fails at its operation 0 with
    /// [`NoNode`](zk_client::Rejection::NoNode); operations that are added count from 1.
    ///
    /// It is a request of yours: it is made as the [client](zk_client::Client::with) was told that the recipe was made
    /// of, with its timeout and in the order of submission, unlike the requests that the recipe makes itself.
    pub fn transaction(&self) -> Multi<'_> {
        self.held.client().multi().as_told().check(self.held.path())
    }

    /// Releases the lock, and waits until the next one can have it.
    ///
    /// The release is under way when this returns the future; dropping the future does not stop it.
    ///
    /// # Errors
    /// [`ReleaseError`] if no server has confirmed it: the session has ended, and the lock with it.
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        let Self { cancellation, hold, keeping, node, sign_off, held } = self;
        // One after the other, as they go in being dropped.
        drop((cancellation, hold, keeping));
        // In front of the delete, which sees to it that the node goes whatever becomes of this.
        let signed_off = sign_off.map(|sign_off| {
            let SignOff { path, record } = *sign_off;
            held.client().multi().delete(held.path()).set(&path, record.as_bytes()).submit()
        });
        let deleted = node.map(OwnedNode::delete);
        async move {
            if let Some(signed_off) = signed_off {
                drop(signed_off.await);
            }
            let released = match deleted {
                Some(deleted) => deleted.await.map_err(ReleaseError::from),
                None => Ok(()),
            };
            // Kept until here: the last client to go closes the session.
            drop(held);
            released
        }
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
