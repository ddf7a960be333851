//! The exclusive lock: first come, first served.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::Client;

use crate::{
    builder::Builder,
    error::AcquireError,
    guard::Guard,
    layout::Role,
    queue::Queue,
    ticket::{self, Ticket},
    wait_queue::{Pace, WaitQueue},
};

/// An exclusive lock that is granted in the order of asking.
///
/// A value of this type is only a handle: nothing happens on the servers before an acquire, and any number
/// of tasks can acquire through one value. Each acquire is an attempt of its own; the lock is not
/// re-entrant.
///
/// # Guarantees
///
/// One holder at a time in the servers' order, in the order of asking, each with a larger [token](Guard::token) than
/// the one before. An attempt or a guard that is dropped leaves no node behind.
///
/// # Cost
///
/// | | requests | round trips |
/// |---|---|---|
/// | acquire, free | 2 | 1 |
/// | until asleep behind one | 4 | 2 |
/// | until asleep behind several | 3, and 1 more after a second | 2 |
/// | from the predecessor's release to the grant | 0, or 1 in a longer queue | 0 or 1 |
/// | release | 1 | 1, or none if not awaited |
/// | failed try | 1 read | 1 |
///
/// # When it is lost
///
/// [`Guard::scope`] drops the work; after that, ask anew. Only the resource can refuse what the work has sent already,
/// by the [token](Guard::token).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::Lock;
///
/// let lock = Lock::new(&zk, "/locks/report");
/// let guard = lock.acquire().await?;
/// let token = guard.token();
/// guard.scope(async { println!("writing under {token}") }).await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// Nodes are those of Curator's `InterProcessMutex`: its users, and those of all implementations with its names, share
/// the lock on the same path.
#[derive(Clone, Debug)]
pub struct Lock {
    wait_queue: Arc<WaitQueue>,
}

impl Builder<Lock> {
    /// How long the lock stays unused after a holder that has not [released](Guard::release) it: its session has ended,
    /// its node was deleted, or it has dropped its guard. For resources that cannot check tokens: requests of such a
    /// holder may still arrive. The next contender keeps its place at the head of the queue meanwhile, and is granted
    /// the lock when the time is over; [`try_acquire`](Lock::try_acquire) waits for that too. Default: not at all.
    ///
    /// Choose the longest time for which a holder may go on without noticing its loss: the session timeout, and
    /// `syncLimit` ticks of the servers if the leader does not [confirm](crate::ConnectOptions::lease_margin) its
    /// lease. It narrows the gap; only tokens close it.
    ///
    /// A release is recorded in a node beside the path, `<path>.released`, which is not removed; nor is the path, which
    /// is created as a persistent node. An acquire costs two more reads, in one round trip; a release no more requests
    /// than without (one more, behind the other, for names without an id); a delay of more than a second one more read,
    /// and a listing at each [recheck](Builder::recheck). A contender that shares the lock without this setting, or gives
    /// up ahead of another, looks like a holder that has not released it: the next contender waits in vain. So it does
    /// behind a release whose record is lost with the connection, though the release itself is repeated and succeeds, and
    /// behind a path that was [made anew](Builder::rotate_at). The other way round, the first acquire ever with this
    /// setting takes the path for a new one if servers have deleted it meanwhile, as they do with containers, or if it was
    /// deleted together with the node beside it. Not for several locks on [one path](Lock::named), and not at the root,
    /// which has nothing beside it.
    pub const fn lock_delay(mut self, delay: Duration) -> Self {
        self.settings.lock_delay = Some(delay);
        self
    }
}

impl Lock {
    /// A lock on `path`, with default settings. The first acquire creates the path and its missing ancestors, as
    /// containers, which servers delete some time after their last use (as persistent nodes on servers before 3.5.1, at the
    /// cost of [one or two connections](zk_client::guide::compatibility) in a session).
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// A lock on `path`, with settings.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        Builder::new(client, path, Self::over)
    }

    /// One of several locks that share a path: its nodes are called `<name>_lock_<number>`, and only those of this name
    /// count, with or without an id in front.
    ///
    /// For paths that are used in this way already, by programs that split names at `_lock_` and do not see nodes with
    /// an id in front. After a lost reply a node is found again by the id in its data, and by its session. A release
    /// costs one more read than that of another lock, as does a grant that goes by a listing: if the node and the path
    /// were deleted, another node may have its name by then. For the same reason a guard refuses
    /// [transactions](Guard::transaction). The locks share one sequence, which ends sooner, and every listing shows the nodes
    /// of all of them; a path for each lock is better.
    ///
    /// Each acquire refuses a name that is empty, or contains a slash or `_lock_`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// let guard = zk_locks::Lock::named(&zk, "/locks", "report").build().acquire().await?;
    /// assert_eq!(guard.path(), "/locks/report_lock_0000000000");
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn named(client: &Client, path: &str, name: &str) -> Builder<Self> {
        Builder::new(client, path, Self::over).named(name)
    }

    /// Waits for the lock, behind all earlier contenders.
    ///
    /// One round trip if it is free, and two requests. While waiting, a lost connection costs nothing but time; the
    /// place in the queue is kept as long as the session lives.
    ///
    /// Dropping the future gives up at any point: no node stays behind for others to wait for. In a `select!` loop keep
    /// a [ticket](Lock::enqueue), or one pinned future; a new one each time begins at the end of the queue.
    ///
    /// # Errors
    /// [`AcquireError`]. The fate of a lost create is found out first, but for the exceptions named there.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        self.join(Pace::MayWait).await?.until_granted().await
    }

    /// As [`acquire`](Lock::acquire), for at most this long: connecting, queueing and waiting together.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; the node is removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<Guard, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes the lock if it is free and has no waiters.
    ///
    /// Looks first: as long as the lock is taken this is one read and no write. The server that is asked may lag a
    /// little, so that a lock that has just been released still counts as taken.
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        ticket::try_acquire(&self.wait_queue, Role::Lock).await
    }

    /// Joins the queue, to wait later: the ticket keeps the place in the queue.
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire).
    pub async fn enqueue(&self) -> Result<Ticket, AcquireError> {
        self.join(Pace::AtOnce).await
    }

    /// The queue as seen from outside: to inspect it, ask for the lock back, or take it away.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.wait_queue.queue()
    }

    async fn join(&self, pace: Pace<'_>) -> Result<Ticket, AcquireError> {
        let position = self.wait_queue.join(Role::Lock, pace).await?;
        Ok(Ticket::new(self.wait_queue.clone(), position))
    }

    pub(crate) fn into_wait_queue(self) -> Arc<WaitQueue> {
        self.wait_queue
    }

    fn over(wait_queue: WaitQueue) -> Self {
        Self { wait_queue: Arc::new(wait_queue) }
    }
}
