//! A durable lock while it is held.

use std::{fmt, future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::Instant};
use zk_client::{Client, MultiError, OpResult, Rejection, Request, WriteError};

use super::{
    lock::{DurableLock, LiveGrant},
    tenure::{Begins, Tenure, Terms},
};
use crate::{
    error::{CheckError, Lost, ReleaseError},
    guard::Status,
    observe::{Grant, Observers, Release},
    together,
    token::FencingToken,
    wait_queue::Waited,
};

/// A [`DurableLock`] that is held: until it is [released](Self::release), or [lost](Self::lost).
///
/// **Dropping it does not release the lock.** The lock is no longer renewed, but by a renewal that is under way: its owner
/// can take it again at once, others once the lease is over. The same holds if the process dies, or a panic drops the guard
/// in the middle of the work.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::DurableLock;
///
/// let mut guard = DurableLock::new(&zk, "/migrations/7", "db-1").acquire().await?;
/// println!("migrating under {}", guard.token());
/// server.expire(zk.session().id()); // the lock outlives its session...
/// zk.session().ended().await;
///
/// let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// guard.carry_on(&zk); // ...if another one keeps it before the lease is over
/// guard.check().await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it leaves the lock locked"]
pub struct DurableGuard {
    tenure: Arc<Tenure>,
    client: Client,
    since: Instant,
    observers: Observers,
    /// For other attempts of the same owner.
    live: LiveGrant,
    /// Dropping it ends the task that renews the grant.
    stop: Option<oneshot::Sender<()>>,
    /// Whether observers know that it is over.
    is_reported: bool,
}

impl DurableGuard {
    pub(super) fn new(
        lock: &DurableLock,
        live: LiveGrant,
        token: FencingToken,
        terms: Terms,
        waited: Option<Waited>,
    ) -> Self {
        let client = lock.client().clone();
        let observers = lock.queue.settings.observers.clone();
        let Waited { time, ahead } = waited.unwrap_or(Waited { time: Duration::ZERO, ahead: None });
        let path = &*terms.path;
        observers.granted(&Grant { path, token, waited: time, ahead });
        let tenure = Arc::new(Tenure::new(&client, token, terms));
        let (since, stop, is_reported) = (Instant::now(), None, false);
        let mut guard = Self { tenure, client, since, observers, live, stop, is_reported };
        guard.keep(Begins::Early);
        guard
    }

    /// Has a task of the client renew the grant, where that of another one may have no runtime any more.
    fn keep(&mut self, begins: Begins) {
        let (stop, stopped) = oneshot::channel();
        // The task before has ended when it is polled next.
        self.stop = Some(stop);
        let client = self.client.clone();
        self.client.spawn(self.tenure.clone().keep(client, begins, stopped));
    }

    /// The number to show to the resource that the lock protects: see [`FencingToken`].
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.tenure.token
    }

    /// The path of the grant's node, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.tenure.terms.path
    }

    /// How long the lock is sure to be held without further renewals, unless its owner takes it elsewhere or its
    /// holder is [evicted](DurableLock::evict). `Duration::MAX` without a lease, or with one of centuries.
    #[must_use]
    pub fn lease_left(&self) -> Duration {
        match self.tenure.loss() {
            Some(_) => Duration::ZERO,
            None => self.tenure.left(),
        }
    }

    /// The state as known locally, without a request: held or lost. [`Status::Suspect`] while the session is not connected,
    /// and once it has ended: the lock does not depend on it, but is not renewed. It is held until its
    /// [lease](Self::lease_left) is over, unless another client [carries on](Self::carry_on).
    #[must_use]
    pub fn status(&self) -> Status {
        use zk_client::SessionState;
        match (self.tenure.loss(), self.client.session().state()) {
            (Some(lost), _) => Status::Lost(lost),
            (None, SessionState::Connected { read_only: false }) => Status::Held,
            (None, _) => Status::Suspect { lease_left: self.tenure.left() },
        }
    }

    /// Waits until the lock is lost: when its lease has run down unrenewed ([`Lost::LeaseRanOut`]), or another client
    /// has taken it away or over ([`Lost::NodeDeleted`]). Not when the session ends.
    pub async fn lost(&self) -> Lost {
        self.tenure.lost().await
    }

    /// Runs `work` until it is done or the lock is lost, whichever comes first: see
    /// [`Guard::scope`](crate::Guard::scope).
    ///
    /// # Errors
    /// [`Lost`]; `work` has been dropped then.
    pub async fn scope<F: IntoFuture>(&self, work: F) -> Result<F::Output, Lost> {
        together::unless(self.lost(), pin!(work.into_future())).await
    }

    /// Continues with another client, if the session has ended or is about to be left, and renews the lock with it at
    /// once. The client has to have the same chroot: the lock is renewed and released on the same path of it.
    pub fn carry_on(&mut self, client: &Client) {
        self.client = client.patient();
        self.keep(Begins::Late);
    }

    /// Asks the servers whether the lock is held, by a transaction that a quorum agrees to.
    ///
    /// # Errors
    /// [`CheckError::Lost`] if it is not, or once its lease is over; [`CheckError::Unavailable`] if the servers could not be
    /// asked.
    pub async fn check(&self) -> Result<(), CheckError> {
        let checked = tokio::select! {
            biased;
            lost = self.lost() => return Err(lost.into()),
            checked = async { self.held().await } => checked,
        };
        match (checked, self.tenure.loss()) {
            (_, Some(lost)) => Err(lost.into()),
            (Ok(Ok(_)), None) => Ok(()),
            (Ok(Err(MultiError { rejection: Rejection::NoNode, .. })), None) => {
                Err(self.tenure.lose(Lost::NodeDeleted).into())
            }
            (Ok(Err(MultiError { rejection, .. })), None) => {
                Err(CheckError::Unavailable(WriteError::Rejected(rejection)))
            }
            (Err(error), None) => Err(CheckError::Unavailable(error)),
        }
    }

    /// A transaction that happens only if the lock is still held: see
    /// [`Guard::transaction`](crate::Guard::transaction).
    pub fn transaction(&self) -> Request<'_, Result<Vec<OpResult>, MultiError>, WriteError> {
        self.held().as_told()
    }

    /// A transaction that fails if the lock is not held, as patient as the recipe itself.
    fn held(&self) -> Request<'_, Result<Vec<OpResult>, MultiError>, WriteError> {
        self.client.multi().check(&self.tenure.terms.path)
    }

    /// Releases the lock, and waits until the next contender can have it.
    ///
    /// The release is under way when this returns the future; dropping the future does not stop it. The end of the
    /// session does: then the lock stays its owner's.
    ///
    /// # Errors
    /// [`ReleaseError`]. The lock stays locked, until its owner takes and releases it, or its lease is over; if the session has
    /// [ended](ReleaseError::SessionEnded), it may be free already: the answer did not come.
    pub fn release(mut self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.report();
        // First, or it would notice that the grant is gone.
        self.stop = None;
        let deleted = self.client.delete(&self.tenure.terms.path).if_exists().submit();
        async move {
            let released = deleted.await.map(drop).map_err(ReleaseError::from);
            if released.is_ok() {
                self.live.is_gone();
            }
            drop(self);
            released
        }
    }

    /// As [`release`](Self::release), with this client.
    pub(super) fn release_with(
        mut self,
        client: Client,
    ) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.client = client;
        self.release()
    }

    /// Tells observers that it is over, once.
    fn report(&mut self) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        let Terms { path, .. } = &self.tenure.terms;
        let (held, lost) = (self.since.elapsed(), self.tenure.loss());
        let token = self.tenure.token;
        self.observers.released(&Release { path, token, held, lost });
    }
}

impl Drop for DurableGuard {
    fn drop(&mut self) {
        self.report();
    }
}

impl fmt::Debug for DurableGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableGuard")
            .field("path", &self.path())
            .field("token", &self.token())
            .field("lost", &self.tenure.loss())
            .finish_non_exhaustive()
    }
}
