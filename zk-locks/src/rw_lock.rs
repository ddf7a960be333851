//! The read/write lock: many who read, or one who writes, in the order of asking.

use std::{ops::Deref, sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::{Client, CreateMode, MultiError, ReadError, Rejection, join, planted};

use crate::{
    builder::Builder,
    error::{AcquireError, Lost, ReleaseError},
    guard::{FencingToken, Guard, Held},
    layout::Role,
    line::{Downgrades, Line},
    queue::{Contender, Queue},
    ticket::{self, Ticket},
};

/// A lock that many may hold to read, or one to write.
///
/// Grants are in the order of asking: those who want to read and follow each other hold it together, and who
/// asks to read behind somebody who waits to write waits too. So neither side starves.
///
/// Nodes are those of Curator's `InterProcessReadWriteLock` (or kazoo's, by the
/// [layout](Builder::layout)): its users share the lock on the same path, writers and readers.
///
/// # Fencing
///
/// Readers that hold the lock together have tokens of their own. Let a resource refuse writes whose token is
/// smaller than any token it has seen, and reads whose token is smaller than that of any *write*.
///
/// # Cost
///
/// Of both sides that of a [`Lock`](crate::Lock), but that a writer always lists the queue before it is granted, unless
/// there is [no downgrade](RwLockBuilder::no_downgrade). A downgrade or an upgrade costs one round trip, and one
/// request in the background. A writer that goes wakes exactly the readers behind it.
///
/// # When it is lost
///
/// As for a [`Lock`](crate::Lock): [`Guard::scope`] drops the work; ask anew.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::RwLock;
///
/// let lock = RwLock::new(&zk, "/locks/report");
/// let writing = lock.write().await?;
/// // ... write, showing the token ...
/// let reading = writing.downgrade().await?;
/// let also_reading = lock.read().await?;
/// also_reading.release().await?;
/// reading.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RwLock {
    line: Arc<Line>,
}

/// Settings of a [`RwLock`].
pub type RwLockBuilder = Builder<RwLock>;

impl RwLockBuilder {
    /// Promises that nobody who uses the path, in whatever program, ever
    /// [downgrades](WriteGuard::downgrade): then writers too are granted as soon as they hear of the release in
    /// front, without a listing in between. This lock's own guards refuse to.
    ///
    /// If somebody does all the same, a writer may hold the lock together with that reader. Default: no
    /// promise.
    pub const fn no_downgrade(mut self) -> Self {
        self.downgrades = Downgrades::Never;
        self
    }
}

impl RwLock {
    /// A lock on `path`, with default settings.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// A lock on `path`, with settings.
    pub fn builder(client: &Client, path: &str) -> RwLockBuilder {
        let mut builder = Builder::new(client, path, |line| Self { line: Arc::new(line) });
        builder.downgrades = Downgrades::Possible;
        builder
    }

    /// Waits until nobody writes, nor waits to write and asked before. Costs and dropping are as for
    /// [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn read(&self) -> Result<ReadGuard, AcquireError> {
        self.acquire(Role::Read).await.map(|guard| self.reading(guard))
    }

    /// Waits until all who asked before are done.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn write(&self) -> Result<WriteGuard, AcquireError> {
        self.acquire(Role::Write).await.map(|guard| self.writing(guard))
    }

    /// As [`read`](RwLock::read), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; the node is removed in the background.
    pub async fn read_timeout(&self, time: Duration) -> Result<ReadGuard, AcquireError> {
        timeout(time, self.read()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// As [`write`](RwLock::write), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; the node is removed in the background.
    pub async fn write_timeout(&self, time: Duration) -> Result<WriteGuard, AcquireError> {
        timeout(time, self.write()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes the lock to read, if nobody writes or waits to write. Looks first: see
    /// [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_read(&self) -> Result<Option<ReadGuard>, AcquireError> {
        let guard = ticket::try_acquire(&self.line, Role::Read).await?;
        Ok(guard.map(|guard| self.reading(guard)))
    }

    /// Takes the lock to write, if nobody has it or waits for it.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_write(&self) -> Result<Option<WriteGuard>, AcquireError> {
        let guard = ticket::try_acquire(&self.line, Role::Write).await?;
        Ok(guard.map(|guard| self.writing(guard)))
    }

    /// The queue, to look at it from outside, ask for the lock back, or take it away.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.line.queue()
    }

    /// Who has the lock and who waits for it: those who came first first.
    ///
    /// # Errors
    /// [`ReadError`] if the queue cannot be read.
    pub async fn contenders(&self) -> Result<Vec<Contender>, ReadError> {
        self.queue().contenders().await
    }

    async fn acquire(&self, role: Role) -> Result<Guard, AcquireError> {
        Ticket::new(self.line.clone(), self.line.join(role, None).await?).wait().await
    }

    fn reading(&self, guard: Guard) -> ReadGuard {
        ReadGuard { guard, line: self.line.clone() }
    }

    fn writing(&self, guard: Guard) -> WriteGuard {
        WriteGuard { guard, line: self.line.clone() }
    }
}

/// A lock that is held to read. What a [`Guard`] can, it can.
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub struct ReadGuard {
    guard: Guard,
    line: Arc<Line>,
}

/// A lock that is held to write. What a [`Guard`] can, it can.
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub struct WriteGuard {
    guard: Guard,
    line: Arc<Line>,
}

impl Deref for ReadGuard {
    type Target = Guard;
    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl Deref for WriteGuard {
    type Target = Guard;
    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl From<ReadGuard> for Guard {
    /// The lock goes on being held, and cannot be upgraded any more.
    fn from(read: ReadGuard) -> Self {
        read.guard
    }
}

impl From<WriteGuard> for Guard {
    /// The lock goes on being held, and cannot be downgraded any more.
    fn from(write: WriteGuard) -> Self {
        write.guard
    }
}

impl ReadGuard {
    /// Releases the lock: see [`Guard::release`].
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.guard.release()
    }

    /// Goes on to write, without letting anybody else write in between: waits until those who read too are
    /// done. While it waits nobody new comes to read.
    ///
    /// Two readers who both waited for the other to be done would wait for ever: so the second one is refused
    /// at once. It has to release its lock and ask for a write lock anew.
    ///
    /// Dropping the future releases the lock.
    ///
    /// # Errors
    /// [`UpgradeError`], with the read lock, which is still held.
    pub async fn try_upgrade(self) -> Result<WriteGuard, UpgradeError> {
        match self.upgraded().await {
            // The read node goes in being dropped.
            Ok(Some(guard)) => Ok(WriteGuard { guard, line: self.line }),
            Ok(None) => Err(UpgradeError { guard: self, cause: None }),
            Err(cause) => Err(UpgradeError { guard: self, cause: Some(cause) }),
        }
    }

    async fn upgraded(&self) -> Result<Option<Guard>, AcquireError> {
        let mut place = self.line.join(Role::Write, Some(zk_client::name(self.path()))).await?;
        let is_second = self.line.look(&mut place).await?.is_behind_writer();
        if is_second && !planted!(UpgradesTogether) {
            return Ok(None);
        }
        Ticket::new(self.line.clone(), place).wait().await.map(Some)
    }
}

impl WriteGuard {
    /// Releases the lock: see [`Guard::release`].
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.guard.release()
    }

    /// Goes on to read, and lets others read too: those who wait in front of the next one who wants to write.
    /// Nobody writes in between.
    ///
    /// The [token](Guard::token) stays that of the write: the new node has a larger number than those of
    /// writers who wait already. One round trip, in which the servers make sure that the lock is still held, and
    /// one request in the background.
    ///
    /// On a path with [kazoo's names](crate::Layout::Kazoo) this is for where only this type is used: an
    /// exclusive [`Lock`](crate::Lock) takes a writer's node for that of an exclusive lock, and does not expect
    /// it to go on reading.
    ///
    /// Dropping the future releases the lock.
    ///
    /// # Errors
    /// [`DowngradeError`], with the write lock, which is still held unless it says otherwise.
    pub async fn downgrade(self) -> Result<ReadGuard, DowngradeError> {
        match self.downgraded().await {
            // The write node goes in being dropped.
            Ok(guard) => Ok(ReadGuard { guard, line: self.line }),
            Err(cause) => Err(DowngradeError { guard: self, cause }),
        }
    }

    /// As Curator does it: a node for reading with the number of the one for writing, which has its place in
    /// the queue directly behind it.
    async fn downgraded(&self) -> Result<Guard, AcquireError> {
        if let crate::Status::Lost(lost) = self.status() {
            return Err(lost.into());
        }
        let Line { client, path, settings, .. } = &*self.line;
        if settings.downgrades == Downgrades::Never {
            return Err(AcquireError::NoDowngrade);
        }
        let layout = settings.layout;
        let id = client.unique_id()?;
        let name = layout.name(Role::Read, &id).ok_or(AcquireError::NoSuchName { layout })?;
        let own = self.guard.path();
        let digits = &own[own.len().saturating_sub(SEQUENCE_LENGTH)..];
        let path = join(path, &(name + digits));
        let create = client.create(&path, settings.description.as_bytes());
        let create = create.mode(CreateMode::Ephemeral).acl(&settings.acl).protected_by_its_name();
        // Only in front of those who wait if we are there ourselves.
        let nodes = client.create_all_protected([create]).check_version(own, ANY_VERSION).await?;
        let node = match nodes {
            Ok(mut nodes) => nodes.pop().ok_or(AcquireError::NodeDeleted)?,
            Err(MultiError { rejection: Rejection::NoNode, .. }) => {
                return Err(self.guard.lose(Lost::NodeDeleted).into());
            }
            Err(MultiError { rejection, .. }) => return Err(AcquireError::Rejected(rejection)),
        };
        let token = match planted!(DowngradeWithNewToken) {
            true => FencingToken::new(node.stat().czxid),
            false => self.token(),
        };
        let held = Held::new(client.clone(), node.path().to_owned(), token);
        Ok(Guard::of(held, node)?)
    }
}

/// What a node's version is compared with for it only to be there.
const ANY_VERSION: i32 = -1;

/// How many digits a sequence number has. (Those that are granted are positive.)
const SEQUENCE_LENGTH: usize = 10;

/// Why a read lock has not become a write lock.
#[derive(Debug, thiserror::Error)]
#[error("{}", cause.as_ref().map_or_else(|| "another reader is waiting to write".to_owned(), ToString::to_string))]
pub struct UpgradeError {
    /// The lock, to read.
    pub guard: ReadGuard,
    /// What has failed; `None` if somebody else is waiting to write, which would never end.
    pub cause: Option<AcquireError>,
}

/// Why a write lock has not become a read lock.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct DowngradeError {
    /// The lock, to write.
    pub guard: WriteGuard,
    /// What has failed.
    pub cause: AcquireError,
}

impl From<DowngradeError> for AcquireError {
    fn from(error: DowngradeError) -> Self {
        error.cause
    }
}
