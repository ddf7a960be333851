//! Barriers: waiting for a signal, and for each other.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::{Client, CreateMode, EventType, ReadError, Rejection, Watch, Zxid};

use crate::{builder::Builder, error::AcquireError, wait_queue::WaitQueue};

mod double;
mod participation;

pub use self::{double::DoubleBarrier, participation::Participation};

/// A barrier that one client sets, and at which others wait until it is removed.
///
/// The barrier is the node at its path, as for Curator's `DistributedBarrier` and kazoo's `Barrier`: it is set as long
/// as the node exists, whichever client created it, and it outlives sessions.
///
/// Setting it costs one request, removing it two, waiting for that one and a notification. Nothing is held, so nothing
/// can be lost: a wait outlasts lost connections, and fails if its session ends; then wait again with another client.
/// If a client sets a barrier and dies, the barrier stays set: another client must [remove](Barrier::remove) it.
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
    wait_queue: Arc<WaitQueue>,
}

impl Barrier {
    /// The barrier at `path`, with default settings.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// The barrier at `path`, with settings: only [`acl`](Builder::acl), [`description`](Builder::description) and the
    /// [required](Builder::require_path) nodes apply.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        Builder::new(client, path, |wait_queue| Self {
            wait_queue: Arc::new(wait_queue.of_one_node()),
        })
        .unreported()
    }

    /// Sets the barrier: every client that calls [`wait`](Barrier::wait) from now on waits, if its server knows of the
    /// barrier already; [`Client::sync`] in front sees to that. Returns whether the barrier was unset before, as far as is
    /// known: a lost reply leaves that open.
    ///
    /// One request, which is repeated until it is answered; one more round trip if the path is missing. If the future
    /// is dropped after it was polled, the barrier may be set or not; if servers throttle the request, also behind a
    /// [removal](Barrier::remove) that was asked for later.
    ///
    /// # Errors
    /// [`AcquireError`]. The barrier may be set.
    pub async fn set(&self) -> Result<bool, AcquireError> {
        let description = self.wait_queue.settings.description.as_bytes();
        self.wait_queue.ensure(&self.wait_queue.path, description, CreateMode::Persistent).await
    }

    /// Removes the barrier and releases all waiters. Succeeds if there is none.
    ///
    /// Two requests; two more if the server asked knows of none, as others may. If the future is dropped after it was
    /// polled, the barrier may be removed or not.
    ///
    /// # Errors
    /// [`AcquireError`]. The barrier may be removed.
    pub async fn remove(&self) -> Result<(), AcquireError> {
        let WaitQueue { client, path, .. } = &*self.wait_queue;
        let mut seen = client.exists(path).await?;
        if seen.is_none() {
            client.sync(path).await?;
            seen = client.exists(path).await?;
        }
        let Some(stat) = seen else { return Ok(()) };
        loop {
            match client.delete(path).await {
                Ok(()) | Err(zk_client::WriteError::Rejected(Rejection::NoNode)) => return Ok(()),
                Err(error) => self.wait_queue.may_try_again(error).await?,
            }
            // A barrier that was set since is left alone.
            let now = client.exists(path).await?;
            if now.is_none_or(|now| now.czxid != stat.czxid) {
                return Ok(());
            }
        }
    }

    /// Returns whether the barrier is set, as far as the server asked knows. One read.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be read: since 3.8.4 and 3.9.2 that needs the permission to read the node.
    pub async fn is_set(&self) -> Result<bool, ReadError> {
        Ok(self.wait_queue.client.exists(&self.wait_queue.path).await?.is_some())
    }

    /// Waits until the barrier is removed; returns at once if it is not set. A wait that has begun ends even if the
    /// barrier is set again at once.
    ///
    /// One request and one notification. A lost connection costs nothing but time. Dropping the future gives up.
    ///
    /// # Errors
    /// [`AcquireError`] if the session ends, or the node cannot be read.
    pub async fn wait(&self) -> Result<(), AcquireError> {
        let mut first = None;
        loop {
            let Some((czxid, watch)) = self.look().await? else { return Ok(()) };
            // Several events that were missed while disconnected may arrive as one.
            if *first.get_or_insert(czxid) != czxid {
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

    /// Watches by reading: that leaves no watch behind if there is no barrier.
    async fn look(&self) -> Result<Option<(Zxid, Watch)>, AcquireError> {
        match self.wait_queue.client.get(&self.wait_queue.path).watch().await {
            Ok(((_, stat), watch)) => Ok(Some((stat.czxid, watch))),
            Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
