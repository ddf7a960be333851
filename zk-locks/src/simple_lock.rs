//! The lock that is one node: first to come, and then whoever is quickest.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::{
    Client, CreateMode, EventType, OwnedNode, ReadError, Rejection, SessionId, Stat, WriteError,
};

use crate::{
    builder::Builder,
    error::{AcquireError, CheckError, Lost, ReleaseError},
    guard::{Held, Keeping, Status},
    line::Line,
    token::FencingToken,
};

/// An exclusive lock without a queue: whoever manages to create the node has the lock.
///
/// Cheap while nobody contends: one write to acquire it, one read and one write to release it, and no
/// sequence that could end. But nobody's turn ever comes: everybody who waits is woken by every release and
/// tries again, one wins, and a waiter may lose every time. For few contenders only; otherwise
/// [`Lock`](crate::Lock).
///
/// A waiter costs a write and a read until it sleeps, and the same for each release that it hears of. One that has
/// [lost](SimpleGuard::lost) it asks anew, and shows the resource its [token](SimpleGuard::token) meanwhile.
///
/// The path is that of the node itself. Never use it for a lock of another kind. Others that create the node, wait for its
/// end, and delete it share the lock, even those that listen only once; what they know each other by is their own affair.
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
    /// Nothing is ever joined there.
    line: Arc<Line>,
}

/// Settings of a [`SimpleLock`]: of these, the description, the access control list and the pause before
/// looking again.
pub type SimpleLockBuilder = Builder<SimpleLock>;

/// Who has a [`SimpleLock`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The session that the node lives with.
    pub session: SessionId,
    /// When it took the lock: milliseconds since 1970 on the clock of the leader.
    pub since: i64,
    /// Its fencing token.
    pub token: i64,
    /// What it says about itself.
    pub description: String,
}

impl SimpleLock {
    /// A lock whose node is `path`, with default settings. What is missing above the node is created at the
    /// first acquire, as containers.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// A lock whose node is `path`, with settings.
    pub fn builder(client: &Client, path: &str) -> SimpleLockBuilder {
        Builder::new(client, path, |line| Self { line: Arc::new(line.of_one_node()) })
    }

    /// Waits until the lock can be had, in no order.
    ///
    /// One request if it is free. A waiter reads the node, and tries again when it is gone.
    ///
    /// Dropping the future leaves no node: the session ends what it has begun.
    ///
    /// # Errors
    /// [`AcquireError`], never for doubt: what became of a lost create is found out first.
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
        let Line { client, path, settings, .. } = &*self.line;
        loop {
            // A read of a node that is gone leaves no watch behind, unlike asking for its existence.
            let changed = match client.get(path).watch().await {
                Ok((_, changed)) => changed,
                Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let pause = settings.recheck.unwrap_or(Duration::MAX);
            let Ok(event) = timeout(pause, changed).await else { return Ok(()) };
            // Others tell that somebody has written it or, after a reconnect, that it is another holder's.
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

    /// Takes the lock if nobody has it: one write, which fails if somebody has.
    ///
    /// # Errors
    /// As [`acquire`](SimpleLock::acquire).
    pub async fn try_acquire(&self) -> Result<Option<SimpleGuard>, AcquireError> {
        let Line { client, path, settings, .. } = &*self.line;
        // The id is the attempt's: by it the node is told from that of any other attempt.
        let data = format!("{} {}", client.unique_id()?, settings.description);
        let create = self.line.create(client, path, data.as_bytes());
        match create.mode(CreateMode::Ephemeral).protected_by_its_data().await {
            Ok(node) => {
                let token = FencingToken::new(node.stat().czxid);
                let held = Held::of_shared_name(client.clone(), path.clone(), token);
                match held.status() {
                    Status::Lost(lost) => Err(lost.into()),
                    Status::Held | Status::Suspect { .. } => {
                        Ok(Some(SimpleGuard { keeping: Keeping::begin(&held), node, held }))
                    }
                }
            }
            Err(WriteError::Rejected(Rejection::NodeExists)) => Ok(None),
            Err(error) => Err(self.line.refused(error)),
        }
    }

    /// Who has the lock, if anybody has: one read.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn holder(&self) -> Result<Option<Holder>, ReadError> {
        match self.line.client.get(&self.line.path).await {
            Ok((data, stat)) => {
                let text = String::from_utf8_lossy(&data);
                let description = text.split_once(' ').map_or(&*text, |(_, text)| text).to_owned();
                let Stat { ephemeral_owner: session, ctime: since, czxid, .. } = stat;
                Ok(Some(Holder { session, since, token: czxid.0, description }))
            }
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
    // In the order in which they go.
    keeping: Keeping,
    node: OwnedNode,
    held: Held,
}

impl SimpleGuard {
    /// The number to show to whatever the lock protects: see [`FencingToken`].
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.held.token
    }

    /// The path of the lock's node, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        self.held.path()
    }

    /// What is known locally: see [`Guard::status`](crate::Guard::status).
    #[must_use]
    pub fn status(&self) -> Status {
        self.held.status()
    }

    /// Waits until the lock is lost: see [`Guard::lost`](crate::Guard::lost).
    pub async fn lost(&self) -> Lost {
        self.held.lost().await
    }

    /// Runs `work` until it is done or the lock is lost, whichever comes first: see
    /// [`Guard::scope`](crate::Guard::scope).
    ///
    /// # Errors
    /// [`Lost`]; `work` has been dropped then, wherever it was.
    pub async fn scope<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        self.held.scope(pin!(Some(work))).await
    }

    /// Asks the servers whether the lock is held: a transaction that a quorum has agreed to, and a read that
    /// tells whose node it was.
    ///
    /// # Errors
    /// [`CheckError::Lost`] if it is not; [`CheckError::Unavailable`] if they could not be asked.
    pub async fn check(&self) -> Result<(), CheckError> {
        self.held.check().await
    }

    /// Releases the lock, and waits until the next one can have it. Dropping the future does not stop it.
    ///
    /// A read, and a delete of the version of the node that it has shown. Whoever watches the node hears of its end and
    /// of nothing else.
    ///
    /// If somebody else has deleted the node and a third one has made another, that one is not touched, be it of this
    /// implementation or not: except where all that happens between the read and the delete, and the other one is
    /// of this implementation too.
    ///
    /// # Errors
    /// [`ReleaseError`] if no server has confirmed it: the session has ended, and the lock with it.
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        let Self { keeping, node, held } = self;
        drop(keeping);
        let deleted = node.delete();
        async move {
            let released = deleted.await.map_err(ReleaseError::from);
            // Kept until here: the last client to go closes the session.
            drop(held);
            released
        }
    }
}
