//! The public side of the cohort lock.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::Client;

use super::{CohortGuard, ask::Asked, attempt::Attempt, local::Shared};
use crate::{
    builder::Builder, error::AcquireError, guard::Guard, layout::Role, queue::Queue, ticket,
    wait_queue::Waited,
};

/// An exclusive lock that tasks of one process pass on among themselves without asking any server.
///
/// All clones of one value are a cohort. It has one node in the queue, however many of its tasks wait; they wait in
/// memory, in the order of asking. Other processes, with cohorts or any other lock on the same path, wait for that node
/// as for any other: nodes are those of [`Lock`](crate::Lock).
///
/// Without other contenders the lock stays in the process when a task is done. Otherwise a [limited
/// number](Builder::max_sections) of tasks have it in turn, or for a [limited time](Builder::max_stay); then the node
/// is deleted and the cohort queues up anew. So another process waits at most for that many sections of each cohort
/// ahead of it, and for those within one round trip during which a cohort does not know of it yet.
///
/// # Cost
///
/// Passing the lock on costs no request. A turn of the cohort costs what a lock costs, and one listing with a watch if
/// tasks wait and no contender behind is known, followed by at most one notification and one further listing. A task
/// that gives up waiting costs nothing.
///
/// # Fencing
///
/// Tokens have a [local](crate::FencingToken::local) part: compare them whole.
///
/// # On loss
///
/// The holder is informed as with any [`Guard`]: [`lost`](crate::Guard::lost) resolves, and
/// [`scope`](crate::Guard::scope) stops the work. No task is granted the lock on a lost node. Waiters queue up again
/// with a new node, or [fail](Builder::fail_on_loss); if the session has ended they fail in any case, and a cohort of
/// another client is needed.
///
/// # Observers
///
/// To [observers](Builder::observer) and metrics, each task that waits is an attempt of its own, and not the node: it has
/// joined when it asks, has waited since then when it is granted the lock, and gives up when its future is dropped or it is
/// told of a failure. It joins, leaves and gives up at the path of the lock; a grant has the path of the node.
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

/// The state shared by all values of a cohort. When the last one is dropped, no task can want the lock any more.
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

impl CohortLock {
    /// A cohort for the lock on `path`, with default settings. Clone it for each task.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// A cohort with settings.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        Builder::new(client, path, |wait_queue| Self {
            shared: Arc::new(Cohort(Shared::new(wait_queue))),
        })
    }

    /// Waits for the lock, behind all tasks of the cohort that asked before.
    ///
    /// Dropping the future gives up. That costs no request unless it was the last waiter, and the cohort did not hold
    /// the lock or was just passing it on: then the node is deleted, or [lingers](Builder::linger).
    ///
    /// # Errors
    /// [`AcquireError`]. An error that keeps the cohort from getting the lock fails all waiting tasks.
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

    /// Takes the lock if it is free and has no waiters, here or elsewhere. No request if that is known within the
    /// process; otherwise as [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire(&self) -> Result<Option<CohortGuard>, AcquireError> {
        let begin = || Attempt::begin(&self.shared.wait_queue);
        let mut begun = None;
        if let Some((number, guard)) = self.shared.take_idle() {
            match self.shared.grant_idle(number, guard, begin()) {
                Ok(guard) => return Ok(Some(guard)),
                Err(attempt) => begun = Some(attempt),
            }
        }
        if self.shared.is_busy() {
            return Ok(None);
        }
        let wait_queue = &self.shared.unobserved;
        if wait_queue.is_busy(Role::Lock).await? {
            return Ok(None);
        }
        let attempt = begun.unwrap_or_else(begin);
        let Some(position) = ticket::join_at_head(wait_queue, Role::Lock).await? else {
            return Ok(None);
        };
        let (guard, Waited { ahead, .. }) = Guard::unreported(wait_queue, position)?;
        Ok(Some(self.shared.adopt(guard, ahead, attempt)))
    }

    /// Returns how many tasks of this cohort wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.local().waiting()
    }

    /// The queue as seen from outside: to inspect it, ask for the lock back, or take it away.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.shared.wait_queue.queue()
    }
}

impl fmt::Debug for CohortLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CohortLock")
            .field("path", &self.shared.wait_queue.path)
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}
