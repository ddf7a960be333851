//! A read/write lock that is held: going on to read, going on to write.

use std::{ops::Deref, sync::Arc};

use zk_client::{CreateMode, MultiError, Rejection, join, planted};

use crate::{
    error::{AcquireError, Lost, ReleaseError},
    guard::{FencingToken, Guard, Held},
    layout::Role,
    line::{Downgrades, Line},
    ticket::Ticket,
};

/// A lock that is held to read. What a [`Guard`] can, it can.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::RwLock;
///
/// let reading = RwLock::new(&zk, "/locks/report").read().await?;
/// match reading.try_upgrade().await {
///     Ok(writing) => writing.release().await?,
///     // It has failed, or another reader wants to write and waits for us: give way.
///     Err(refused) => refused.guard.release().await?,
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub struct ReadGuard {
    guard: Guard,
    line: Arc<Line>,
}

/// A lock that is held to write. What a [`Guard`] can, it can.
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
/// let token = writing.token();
/// // Others may read now, and nobody has written in between.
/// let reading = writing.downgrade().await?;
/// let other = lock.try_read().await?;
/// assert!(other.is_some() && reading.token() == token);
/// # Ok(())
/// # }
/// ```
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
    pub(super) fn new(guard: Guard, line: &Arc<Line>) -> Self {
        Self { guard, line: line.clone() }
    }

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
    pub(super) fn new(guard: Guard, line: &Arc<Line>) -> Self {
        Self { guard, line: line.clone() }
    }

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
        let nodes = client.create_all_protected([create]).check(own).await?;
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
