//! The semaphore of one permit, as a lock.

use std::time::Duration;

use zk_client::Client;

use crate::{builder::Builder, error::AcquireError, guard::Guard, semaphore::Semaphore};

/// A lock that belongs to the owner of its guard: a [`Semaphore`] of one permit, in the nodes of Curator's
/// `InterProcessSemaphoreMutex`.
///
/// A [`Lock`](crate::Lock) is cheaper, and its guard too can be sent to another task. This one is for paths that are
/// used in this way already. It costs four requests in two round trips to acquire, one to release, and one round trip
/// and no write for a failed try; guarantees and losses are those of a [`Lock`](crate::Lock).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::SemaphoreMutex;
///
/// let guard = SemaphoreMutex::new(&zk, "/locks/report").acquire().await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SemaphoreMutex {
    semaphore: Semaphore,
}

impl SemaphoreMutex {
    /// A lock on `path`, with default settings.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// A lock on `path`, with settings.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        Builder::new(client, path, |line| Self { semaphore: Semaphore::over(&line) })
    }

    /// Waits for the lock: see [`Semaphore::acquire`].
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        self.semaphore.acquire().await
    }

    /// As [`acquire`](SemaphoreMutex::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; nodes are removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<Guard, AcquireError> {
        self.semaphore.acquire_timeout(time).await
    }

    /// Takes the lock if it is free and has no waiters: see [`Semaphore::try_acquire_many`].
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        self.semaphore.try_acquire().await
    }
}
