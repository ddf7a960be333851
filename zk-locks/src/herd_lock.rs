//! The exclusive lock whose waiters all watch the whole queue.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::{Client, ReadError};

use crate::{
    builder::Builder,
    contender::Contender,
    error::AcquireError,
    guard::Guard,
    layout::Role,
    line::Line,
    ticket::{self, Ticket},
};

/// An exclusive lock in the order of asking, whose waiters watch the whole queue.
///
/// # Do not use it for many contenders
///
/// Whenever a contender joins or leaves, *every* waiter is woken and lists the queue: for n waiters that is n events
/// and n listings of n names for each release. Above some ten contenders [`Lock`](crate::Lock) is better, and it never
/// promises less: the nodes are the same, and both can be used on one path. The advantage of this one is that a waiter
/// needs no permission to read others' nodes, only to list the path.
///
/// If the lock is free, it costs what a [`Lock`](crate::Lock) does: two requests in one round trip. Guarantees and
/// losses are the same.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::HerdLock;
///
/// let guard = HerdLock::new(&zk, "/locks/report").acquire().await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HerdLock {
    line: Arc<Line>,
}

impl HerdLock {
    /// A lock on `path`, with default settings.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// A lock on `path`, with settings.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        let mut builder = Builder::new(client, path, |line| Self { line: Arc::new(line) });
        builder.settings.herd = true;
        builder
    }

    /// Waits for the lock, behind all earlier contenders. Costs what [`Lock::acquire`](crate::Lock::acquire) does if
    /// the lock is free, and else a listing for each change of the queue. Dropping the future gives up and leaves no
    /// node.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        let place = self.line.join(Role::Lock, None).await?;
        Ticket::new(self.line.clone(), place).wait().await
    }

    /// As [`acquire`](HerdLock::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; the node is removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<Guard, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes the lock if it is free and has no waiters: see [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        ticket::try_acquire(&self.line, Role::Lock).await
    }

    /// Lists the holder and the waiters, the holder first.
    ///
    /// # Errors
    /// [`ReadError`] if the queue cannot be read.
    pub async fn contenders(&self) -> Result<Vec<Contender>, ReadError> {
        self.line.queue().contenders().await
    }
}
