//! The lock that is one node: first come, and then the quickest.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::{Client, CreateMode, EventType, ReadError, Rejection, WriteError, path::name};

use crate::{
    builder::Builder,
    contender::Contender,
    entry::Kind,
    error::{AcquireError, CheckError, Lost, ReleaseError},
    guard::{Guard, Held, Status},
    layout::without_id,
    token::FencingToken,
    wait_queue::WaitQueue,
};

/// An exclusive lock without a queue: the contender that manages to create the node holds the lock.
///
/// Cheap without contention: one write to acquire it, one read and one write to release it, and no sequence that could
/// end. But it is unfair: every release wakes all waiters, all try again, one wins, and a waiter may lose every time.
/// For few contenders only; otherwise use [`Lock`](crate::Lock).
///
/// A waiter costs a write and a read until it sleeps, and the same for each release that it is notified of. A holder
/// that has [lost](SimpleGuard::lost) it asks anew; its [token](SimpleGuard::token) lets the resource refuse it
/// meanwhile.
///
/// The path is that of the node itself. Never use it for a lock of another kind. Other programs share the lock if they
/// create the same node, wait until it is gone, and delete it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::SimpleLock;
///
/// let guard = SimpleLock::new(&zk, "/leaders/indexer").acquire().await?;
/// println!("indexing under {}", guard.token());
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SimpleLock {
    /// Only its settings are used: this lock has no queue.
    wait_queue: Arc<WaitQueue>,
}

impl SimpleLock {
    /// A lock whose node is `path`, with default settings. The first acquire creates missing ancestors, as containers.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// A lock whose node is `path`, with settings: only the description, the access control list, the
    /// [required](Builder::require_parent) nodes and the pause before looking again apply.
    /// [Observers](Builder::observer) are told nothing.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        Builder::new(client, path, |wait_queue| Self {
            wait_queue: Arc::new(wait_queue.of_one_node()),
        })
        .unreported()
    }

    /// Waits until this attempt gets the lock, in no order.
    ///
    /// One request if it is free. A waiter reads the node, and tries again when it is gone.
    ///
    /// Dropping the future leaves no node: the session undoes a create that is in flight.
    ///
    /// # Errors
    /// [`AcquireError`]. The fate of a lost create is found out first, but for the exceptions named there.
    pub async fn acquire(&self) -> Result<SimpleGuard, AcquireError> {
        loop {
            if let Some(guard) = self.try_acquire().await? {
                return Ok(guard);
            }
            self.until_gone().await?;
        }
    }

    /// Waits until the node may be gone.
    async fn until_gone(&self) -> Result<(), AcquireError> {
        let WaitQueue { client, path, settings, .. } = &*self.wait_queue;
        loop {
            // A read of a node that is gone leaves no watch behind, unlike `exists`.
            let (owner, changed) = match client.get(path).watch().await {
                Ok(((_, stat), changed)) => (stat.ephemeral_owner, changed),
                Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let pause = settings.recheck.unwrap_or(Duration::MAX);
            let of_us = (owner == client.session().id()).then(|| path.clone());
            let changed = timeout(pause, changed);
            let changed = self.wait_queue.unless_orphaned(of_us.into_iter().collect(), changed);
            let Ok(event) = changed.await? else { return Ok(()) };
            // Other events: the node was written or, after a reconnect, is another holder's.
            if event.map_err(AcquireError::SessionEnded)?.kind == EventType::NODE_DELETED {
                return Ok(());
            }
        }
    }

    /// As [`acquire`](SimpleLock::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; a node is removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<SimpleGuard, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes the lock if it is free: one write, which fails if the lock is held.
    ///
    /// # Errors
    /// As [`acquire`](SimpleLock::acquire).
    pub async fn try_acquire(&self) -> Result<Option<SimpleGuard>, AcquireError> {
        let WaitQueue { client, path, settings, .. } = &*self.wait_queue;
        // The id is unique to the attempt, and tells its node from any other.
        let data = format!("{} {}", client.unique_id()?, settings.description);
        let create = self.wait_queue.create(client, path, data.as_bytes());
        match create.mode(CreateMode::Ephemeral).protected_by_its_data().await {
            Ok(created) => {
                let node = created.owned.ok_or(AcquireError::NodeDeleted)?;
                let token = FencingToken::new(created.stat.czxid);
                let held = Held::of_shared_name(client.clone(), path.clone(), token);
                Ok(Some(SimpleGuard { guard: Guard::of(held, node)? }))
            }
            Err(WriteError::Rejected(Rejection::NodeExists)) => Ok(None),
            Err(error) => Err(self.wait_queue.refused(error)),
        }
    }

    /// Returns the holder, if there is one. One read.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn holder(&self) -> Result<Option<Contender>, ReadError> {
        match self.wait_queue.client.get(&self.wait_queue.path).await {
            Ok((data, stat)) => Ok(Some(Contender {
                name: name(&self.wait_queue.path).to_owned(),
                kind: Kind::Exclusive,
                sequence: None,
                session: stat.ephemeral_owner,
                since: stat.ctime,
                token: FencingToken::new(stat.czxid),
                data: without_id(data),
            })),
            Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A [`SimpleLock`] that is held until the guard is [released](SimpleGuard::release) or dropped, or the lock is
/// [lost](SimpleGuard::lost).
///
/// Dropping it releases the lock in the background.
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub struct SimpleGuard {
    /// Not accessible: its transactions are refused, as the node of a later holder may have the path.
    guard: Guard,
}

impl SimpleGuard {
    /// The number to show to the resource that the lock protects: see [`FencingToken`].
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.guard.token()
    }

    /// The path of the lock's node, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        self.guard.path()
    }

    /// The state as known locally: see [`Guard::status`](crate::Guard::status).
    #[must_use]
    pub fn status(&self) -> Status {
        self.guard.status()
    }

    /// Waits until the lock is lost: see [`Guard::lost`](crate::Guard::lost).
    pub async fn lost(&self) -> Lost {
        self.guard.lost().await
    }

    /// Runs `work` until it is done or the lock is lost, whichever comes first: see
    /// [`Guard::scope`](crate::Guard::scope).
    ///
    /// # Errors
    /// [`Lost`]; `work` has been dropped then, wherever it was.
    pub async fn scope<F: IntoFuture>(&self, work: F) -> Result<F::Output, Lost> {
        self.guard.scope(work).await
    }

    /// Asks the servers whether the lock is held: a transaction that a quorum agrees to, and a read that shows whose
    /// node it was.
    ///
    /// # Errors
    /// [`CheckError::Lost`] if it is not; [`CheckError::Unavailable`] if the servers could not be asked.
    pub async fn check(&self) -> Result<(), CheckError> {
        self.guard.check().await
    }

    /// Releases the lock, and waits until the next contender can have it. Dropping the future does not stop it.
    ///
    /// A read, and a delete of the version of the node that it has shown. A watch on the node reports its deletion and
    /// nothing else.
    ///
    /// If another client has deleted the node and a third one has created a new one, that one is not touched, whatever
    /// its implementation: unless all that happens between the read and the delete, and the new one is of this
    /// implementation too.
    ///
    /// # Errors
    /// [`ReleaseError`] if no server has confirmed it: the session has ended, and the lock with it; or servers
    /// [refuse](ReleaseError::Refused) to delete the node. Then the session goes on and the node stays: others keep waiting
    /// for it until the session may delete it after all, or ends.
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.guard.release()
    }
}
