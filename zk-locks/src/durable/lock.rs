//! The durable lock: where it is, whose, and on what terms.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use zk_client::{Client, join};

use crate::{builder::Builder, line::Line, queue::Queue};

/// How long others wait for the next sign of life unless the lock was told otherwise.
const LEASE: Duration = Duration::from_secs(30);

/// A lock that stays locked when its holder dies, its session ends, or its machine restarts: until its owner gives it
/// back, or has not been heard of for a time that it has agreed to.
///
/// For work that must not be begun by others because the one who does it is out of reach: a migration that was
/// interrupted half-way, a machine that reboots as a step of the work. Everywhere else an ordinary
/// [`Lock`](crate::Lock) is better: it is free as soon as its holder is gone, and nobody has to clean up.
///
/// # Owners
///
/// The lock belongs to an *owner*: a name that survives what the lock is to survive, such as a host's or a job's.
/// Whoever asks for the lock in the name of the present owner gets it at once, past all who wait, with a new and larger
/// [token](crate::DurableGuard::token), and the former holder hears that it has lost it. That is how a process takes up its
/// work after a restart. It is also why a name must be used by one process at a time. Attempts through one value of
/// this type and its clones know of each other, and wait.
///
/// # Leases
///
/// A holder renews its lock three times in each lease, with a write. Whoever is next in the queue looks at the lock four times in
/// each lease; when it has been the same for a whole lease, and a tenth more, by the looker's own clock, it takes the
/// lock away. No clock is compared with any other machine's; clocks only have to run equally fast, within five percent.
/// The holder counts the lock as lost as soon as nine tenths of a lease have passed since it *sent* the last renewal that was
/// confirmed, so that it stops before others may begin. With [`without_lease`](Self::without_lease) no other owner ever
/// takes it away, unless somebody does so [by hand](Self::break_hold).
///
/// | | what holds |
/// |---|---|
/// | one holder | at most one grant at any point of the servers' order; tokens grow |
/// | order | those of other owners get the lock in the order of asking |
/// | dropping an acquire | gives up; a grant that was made meanwhile is given back |
/// | dropping a [`DurableGuard`](crate::DurableGuard) | does *not* give the lock back: only [`release`](crate::DurableGuard::release) does |
/// | session ends while waiting | the place in the queue is gone |
/// | session ends while held | the lock stays; the guard counts down its lease, and can [go on](crate::DurableGuard::carry_on) with another client |
///
/// # Cost
///
/// Free, six requests: a listing, the place in the queue with its listing in one round trip, the transaction that
/// makes the grant, and the end of the place and a look at the grants, which nobody waits for. To release it one; three
/// writes in each lease while it is held. The first of those who wait makes eight reads in each lease; the others sleep, as
/// for a [`Lock`](crate::Lock).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use zk_locks::{Client, DurableLock};
///
/// let zk = Client::connect(&servers).await?;
/// let guard = DurableLock::new(&zk, "/migrations/7", "db-1").acquire().await?;
/// let first = guard.token();
/// drop(guard); // as if the process had died in the middle of it
/// zk.close().await?;
///
/// let zk = Client::connect(&servers).await?;
/// // Others have to wait...
/// assert!(DurableLock::new(&zk, "/migrations/7", "db-2").try_acquire().await?.is_none());
/// // ...and its owner goes on where it was.
/// let guard = DurableLock::new(&zk, "/migrations/7", "db-1").acquire().await?;
/// assert!(guard.token() > first);
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// Nodes: `<path>/locks` is a queue like any other, `<path>/grants` has a persistent node for whoever holds the lock. No
/// other implementation has this lock: nobody else can share it.
#[derive(Clone, Debug)]
pub struct DurableLock {
    /// Of those who wait.
    pub(super) queue: Arc<Line>,
    /// Where the grant is.
    pub(super) grants: Arc<str>,
    pub(super) owner: Arc<str>,
    pub(super) lease: Option<Duration>,
    pub(super) live: Live,
}

/// Settings of a [`DurableLock`].
pub type DurableLockBuilder = Builder<DurableLock>;

/// The names of the grants that are held through one value and its clones.
#[derive(Clone, Debug, Default)]
pub(super) struct Live(Arc<Mutex<BTreeSet<String>>>);

impl Live {
    pub(super) fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DurableLock {
    /// A lock on `path`, asked for in the name of `owner`, with default settings and a lease of 30 seconds.
    #[must_use]
    pub fn new(client: &Client, path: &str, owner: &str) -> Self {
        Self::builder(client, path).build().owned_by(owner)
    }

    /// A lock on `path`, with settings. Until it is [told](Self::owned_by) its owner has no name but one that nobody
    /// will ever have again.
    pub fn builder(client: &Client, path: &str) -> DurableLockBuilder {
        Builder::new(client, path, |line| {
            // Without randomness no attempt gets anywhere.
            let owner = line.client.unique_id().unwrap_or_default();
            Self {
                queue: Arc::new(line.beside(join(&line.path, "locks"))),
                grants: Arc::from(join(&line.path, "grants")),
                owner: Arc::from(owner),
                lease: Some(LEASE),
                live: Live::default(),
            }
        })
    }

    /// The same lock, asked for in the name of another owner.
    #[must_use]
    pub fn owned_by(mut self, owner: &str) -> Self {
        (self.owner, self.live) = (Arc::from(owner), Live::default());
        self
    }

    /// The same lock, to be held with such a lease: how long others wait for a sign of life. Let it be longer than
    /// what servers may be out of reach for. Counted in milliseconds, one at least.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease.max(Duration::from_millis(1)));
        self
    }

    /// The same lock, to be held until its owner gives it back, however long that takes, or somebody takes it away
    /// [by hand](Self::break_hold).
    #[must_use]
    pub const fn without_lease(mut self) -> Self {
        self.lease = None;
        self
    }

    /// Those who wait, as a queue to be looked at from outside. Whoever holds the lock is not in it.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue.queue()
    }

    pub(super) fn client(&self) -> &Client {
        &self.queue.client
    }
}
