//! The cohort lock, for those who ask for it.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::{Client, ReadError};

use super::{CohortGuard, Passing, ask::Asked, local::Shared};
use crate::{
    builder::Builder, contender::Contender, error::AcquireError, layout::Role, line::Line,
    queue::Queue, ticket,
};

/// An exclusive lock that tasks of one process pass on among themselves without asking any server.
///
/// All clones of one value are a cohort. It has one node in the queue, however many of its tasks wait; they wait
/// in memory, in the order of asking. Other processes, with cohorts or any other lock on the same path, wait for
/// that node as for any other: nodes are those of [`Lock`](crate::Lock).
///
/// Whether the lock stays in the process when a task is done is a matter of [`Passing`]: as long as nobody
/// else waits it always does; otherwise so many tasks have it one after the other, or for so long, and
/// then the node goes and the cohort queues up anew. So another process waits for at most that many sections for
/// each cohort in front of it, and those of one round trip in which a cohort does not know yet that it waits.
///
/// # Cost
///
/// Passing the lock on costs no request. A turn of the cohort costs what a lock costs, and one listing with
/// a watch if tasks wait and nobody is known to be behind, which is followed by one notification at most and one
/// further listing. A task that gives up waiting costs nothing.
///
/// # Fencing
///
/// Tokens have a [local](crate::FencingToken::local) part: compare them whole.
///
/// # On loss
///
/// Whoever has the lock hears of it as with any [`Guard`](crate::Guard): [`lost`](crate::Guard::lost), and [`scope`](crate::Guard::scope) stops the
/// work. Nobody is granted the lock on a node that is lost. Those who wait queue up again with a new node, or
/// fail, as [`Passing::on_loss`] says; if the session has ended they fail in any case, and a cohort of another
/// client is needed.
///
/// ```
/// # async fn write(_: zk_locks::FencingToken) {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::CohortLock;
///
/// let lock = CohortLock::new(&zk, "/locks/report");
/// for _ in 0..64 {
///     let lock = lock.clone();
///     tokio::spawn(async move {
///         let guard = lock.acquire().await?;
///         guard.scope(write(guard.token())).await?;
///         guard.release().await?;
///         Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
///     });
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CohortLock {
    shared: Arc<Cohort>,
}

/// What all values of a cohort have together. When the last one goes, nobody can want the lock any more.
struct Cohort(Arc<Shared>);

impl Deref for Cohort {
    type Target = Arc<Shared>;
    fn deref(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Drop for Cohort {
    fn drop(&mut self) {
        self.0.desert();
    }
}

/// Settings of a [`CohortLock`].
pub type CohortLockBuilder = Builder<CohortLock>;

impl CohortLock {
    /// A cohort for the lock on `path`, with default settings. Clone it for each task.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// A cohort with settings.
    pub fn builder(client: &Client, path: &str) -> CohortLockBuilder {
        Builder::new(client, path, |line| Self::of(Arc::new(line), Passing::default()))
    }

    /// A new cohort for the same lock, with other terms. This one is not part of it.
    #[must_use]
    pub fn passing(&self, passing: Passing) -> Self {
        Self::of(self.shared.line.clone(), passing)
    }

    fn of(line: Arc<Line>, passing: Passing) -> Self {
        Self { shared: Arc::new(Cohort(Shared::new(line, passing))) }
    }

    /// Waits for the lock, behind all tasks of the cohort that asked before.
    ///
    /// Dropping the future gives up. That costs no request unless it was the last one that waited, and the
    /// cohort was not holding the lock: then the node goes.
    ///
    /// # Errors
    /// [`AcquireError`]. What keeps the cohort from getting the lock fails all tasks that wait then.
    pub async fn acquire(&self) -> Result<CohortGuard, AcquireError> {
        match self.shared.ask() {
            Asked::Granted(guard) => Ok(guard),
            Asked::Waits(waiting) => waiting.granted().await,
        }
    }

    /// As [`acquire`](CohortLock::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<CohortGuard, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes the lock if nobody has it and nobody waits for it, here or elsewhere. No request if that is
    /// known within the process; otherwise as [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire(&self) -> Result<Option<CohortGuard>, AcquireError> {
        if let Some(guard) = self.shared.take_idle() {
            return Ok(Some(guard));
        }
        if self.shared.is_busy() {
            return Ok(None);
        }
        let guard = ticket::try_acquire(&self.shared.line, Role::Lock).await?;
        Ok(guard.map(|guard| self.shared.adopt(guard)))
    }

    /// How many tasks of this cohort wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.local().waiting()
    }

    /// The queue, to look at it from outside, ask for the lock back, or take it away.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.shared.line.queue()
    }

    /// Who has the lock and who waits for it, each cohort once: see
    /// [`Lock::contenders`](crate::Lock::contenders).
    ///
    /// # Errors
    /// [`ReadError`] if the queue cannot be read.
    pub async fn contenders(&self) -> Result<Vec<Contender>, ReadError> {
        self.queue().contenders().await
    }
}

impl fmt::Debug for CohortLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CohortLock")
            .field("path", &self.shared.line.path)
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}
