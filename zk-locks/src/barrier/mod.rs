//! Barriers: waiting for a sign, and for each other.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::{Client, CreateMode, EventType, ReadError, Rejection, Watch, Zxid, planted};

use crate::{builder::Builder, error::AcquireError, line::Line};

mod double;

pub use self::double::{DoubleBarrier, DoubleBarrierBuilder, Participation};

/// A barrier that somebody sets, at which others wait until somebody removes it.
///
/// The barrier is the node at its path, as it is for Curator's `DistributedBarrier` and kazoo's `Barrier`: it is
/// set as long as the node exists, whoever has made it, and it outlives sessions.
///
/// One request to set it, two to remove it, one and a notification to wait for that. Nothing is held, so nothing can
/// be lost: a wait outlasts lost connections, and fails if its session ends; then wait again with another client. Whoever
/// has set a barrier and dies leaves it set: somebody has to [remove](Barrier::remove) it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use std::time::Duration;
/// use zk_locks::Barrier;
///
/// let barrier = Barrier::new(&zk, "/barriers/migration");
/// // One sets it, and removes it when the others may go on...
/// barrier.set().await?;
/// barrier.remove().await?;
/// // ...and they wait for that.
/// barrier.wait_timeout(Duration::from_secs(60)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Barrier {
    line: Arc<Line>,
}

/// Settings of a [`Barrier`], which are its [`acl`](Builder::acl) and its [`description`](Builder::description):
/// it has no queue.
pub type BarrierBuilder = Builder<Barrier>;

impl Barrier {
    /// The barrier at `path`, with default settings.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// The barrier at `path`, with settings.
    pub fn builder(client: &Client, path: &str) -> BarrierBuilder {
        Builder::new(client, path, |line| Self { line: Arc::new(line.of_one_node()) })
    }

    /// Sets the barrier: whoever comes from now on waits. Returns whether it was not set before, as far as is
    /// known: after a lost reply nobody knows.
    ///
    /// One request, which is repeated until it is answered; one more round trip if the path is missing. If
    /// the future is dropped once it has been polled the barrier may be set or not.
    ///
    /// # Errors
    /// [`AcquireError`]. The barrier may be set.
    pub async fn set(&self) -> Result<bool, AcquireError> {
        let description = self.line.settings.description.as_bytes();
        self.line.ensure(&self.line.path, description, CreateMode::Persistent).await
    }

    /// Removes the barrier: whoever waits goes on. Fine if there is none.
    ///
    /// Two requests. If the future is dropped once it has been polled the barrier may be removed or not.
    ///
    /// # Errors
    /// [`AcquireError`]. The barrier may be removed.
    pub async fn remove(&self) -> Result<(), AcquireError> {
        let Line { client, path, .. } = &*self.line;
        let Some(stat) = client.exists(path).await? else { return Ok(()) };
        loop {
            match client.delete(path).await {
                Ok(()) | Err(zk_client::WriteError::Rejected(Rejection::NoNode)) => return Ok(()),
                Err(error) => self.line.may_try_again(error).await?,
            }
            // Not one that was set since.
            let now = client.exists(path).await?;
            if now.is_none_or(|now| now.czxid != stat.czxid) {
                return Ok(());
            }
        }
    }

    /// Whether the barrier is set, as far as the server knows that is asked. One read.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be read.
    pub async fn is_set(&self) -> Result<bool, ReadError> {
        Ok(self.line.client.exists(&self.line.path).await?.is_some())
    }

    /// Waits until the barrier is removed; returns at once if it is not set. Whoever has begun to wait goes on
    /// even if it is set again at once.
    ///
    /// One request, and one notification. A lost connection costs nothing but time. Dropping the future gives
    /// up.
    ///
    /// # Errors
    /// [`AcquireError`] if the session ends, or the node cannot be read.
    pub async fn wait(&self) -> Result<(), AcquireError> {
        let mut first = None;
        loop {
            let Some((czxid, watch)) = self.look().await? else { return Ok(()) };
            // Several events that were missed while disconnected may come as one.
            if *first.get_or_insert(czxid) != czxid {
                return Ok(());
            }
            if planted!(BarrierHalfOpen) {
                let _ = timeout(Duration::from_secs(1), watch).await;
                return Ok(());
            }
            let event = watch.await.map_err(AcquireError::SessionEnded)?;
            if event.kind == EventType::NODE_DELETED {
                return Ok(());
            }
        }
    }

    /// As [`wait`](Barrier::wait), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over.
    pub async fn wait_timeout(&self, time: Duration) -> Result<(), AcquireError> {
        timeout(time, self.wait()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Watched by reading: that leaves no watch behind if there is no barrier.
    async fn look(&self) -> Result<Option<(Zxid, Watch)>, AcquireError> {
        match self.line.client.get(&self.line.path).watch().await {
            Ok(((_, stat), watch)) => Ok(Some((stat.czxid, watch))),
            Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
