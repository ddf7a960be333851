//! The read/write lock: many readers, or one writer, in the order of asking.
//!
//! | module | concern |
//! |---|---|
//! | `guards` | the lock while it is held: upgrade and downgrade |

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::Client;

use crate::{
    builder::Builder,
    error::AcquireError,
    layout::Role,
    queue::Queue,
    ticket::{self, Ticket},
    wait_queue::{Downgrades, Pace, WaitQueue},
};

mod guards;

pub use self::guards::{ConvertError, ReadGuard, WriteGuard};

/// A lock for many readers, or one writer.
///
/// Grants are in the order of asking: consecutive readers hold it together, and a reader behind a waiting writer waits
/// too. So neither side starves.
///
/// Nodes are those of Curator's `InterProcessReadWriteLock` (or others', by the
/// [layout](Builder::layout)): its users share the lock on the same path, writers and readers.
///
/// # Fencing
///
/// Readers that hold the lock together have tokens of their own. Let a resource refuse writes whose token is
/// smaller than any token it has seen, and reads whose token is smaller than that of any *write*.
///
/// # Cost
///
/// Both sides cost what a [`Lock`](crate::Lock) does, except that a writer always lists the queue before it is granted,
/// unless there is [no downgrade](Builder::no_downgrade). A downgrade costs one request, or three if another client has written
/// into the node; an upgrade costs what a writer does, one read beside it, another one if it has waited, and one request in the
/// background. The release of a writer wakes exactly the readers behind it.
///
/// # When it is lost
///
/// As for a [`Lock`](crate::Lock): [`Guard::scope`](crate::Guard::scope) drops the work; ask anew.
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
    wait_queue: Arc<WaitQueue>,
}

impl Builder<RwLock> {
    /// Promises that no user of the path, in whatever program, ever [downgrades](WriteGuard::downgrade): then writers
    /// too are granted the lock as soon as they are notified of the predecessor's release, without a listing in
    /// between. This lock's own guards refuse to downgrade.
    ///
    /// If a holder downgrades all the same, a writer may hold the lock together with that reader. Default: no promise.
    pub const fn no_downgrade(mut self) -> Self {
        self.settings.downgrades = Downgrades::Never;
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
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        let mut builder =
            Builder::new(client, path, |wait_queue| Self { wait_queue: Arc::new(wait_queue) });
        builder.settings.downgrades = Downgrades::Possible;
        builder
    }

    /// Waits until there is no writer, holding or waiting, that asked before. Cost and cancellation are those of
    /// [`Lock::acquire`](crate::Lock::acquire); for `select!` loops there are [tickets](RwLock::enqueue_read).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn read(&self) -> Result<ReadGuard, AcquireError> {
        self.join_to_read(Pace::MayWait).await?.until_granted().await
    }

    /// Waits until all earlier contenders are done.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn write(&self) -> Result<WriteGuard, AcquireError> {
        self.join_to_write(Pace::MayWait).await?.until_granted().await
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

    /// Takes the lock to read, if there is no writer, holding or waiting. Looks first: see
    /// [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_read(&self) -> Result<Option<ReadGuard>, AcquireError> {
        let guard = ticket::try_acquire(&self.wait_queue, Role::Read).await?;
        Ok(guard.map(|guard| ReadGuard::new(guard, &self.wait_queue)))
    }

    /// Takes the lock to write, if it is free and has no waiters.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_write(&self) -> Result<Option<WriteGuard>, AcquireError> {
        let guard = ticket::try_acquire(&self.wait_queue, Role::Write).await?;
        Ok(guard.map(|guard| WriteGuard::new(guard, &self.wait_queue)))
    }

    /// Joins the queue to read, to wait later: the ticket keeps the place in the queue.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// let lock = zk_locks::RwLock::new(&zk, "/locks/report");
    /// let mut ticket = lock.enqueue_read().await?;
    /// println!("behind {:?}", ticket.ahead());
    /// ticket.wait().await?.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn enqueue_read(&self) -> Result<Ticket<ReadGuard>, AcquireError> {
        self.join_to_read(Pace::AtOnce).await
    }

    /// Joins the queue to write, to wait later: the ticket keeps the place in the queue. Later readers wait meanwhile.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// let lock = zk_locks::RwLock::new(&zk, "/locks/report");
    /// let reading = lock.read().await?;
    /// let mut ticket = lock.enqueue_write().await?;
    /// assert!(ticket.try_wait().await?.is_none(), "it is behind the reader");
    /// reading.release().await?;
    /// ticket.wait().await?.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn enqueue_write(&self) -> Result<Ticket<WriteGuard>, AcquireError> {
        self.join_to_write(Pace::AtOnce).await
    }

    /// The queue as seen from outside: to inspect it, ask for the lock back, or take it away.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.wait_queue.queue()
    }

    async fn join_to_read(&self, pace: Pace<'_>) -> Result<Ticket<ReadGuard>, AcquireError> {
        let position = self.wait_queue.join(Role::Read, pace).await?;
        Ok(Ticket::of(self.wait_queue.clone(), position, ReadGuard::new))
    }

    async fn join_to_write(&self, pace: Pace<'_>) -> Result<Ticket<WriteGuard>, AcquireError> {
        let position = self.wait_queue.join(Role::Write, pace).await?;
        Ok(Ticket::of(self.wait_queue.clone(), position, WriteGuard::new))
    }
}
