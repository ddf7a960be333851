//! The durable lock: its path, its owner, and its lease.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::sync::watch;
use zk_client::Client;

use crate::{builder::Builder, queue::Queue, wait_queue::WaitQueue};

/// The default lease: how long others wait for the next renewal.
const LEASE: Duration = Duration::from_secs(30);

/// A lock that stays locked when its holder dies, its session ends, or its machine restarts: until its owner releases
/// it, or has not renewed it for an agreed time.
///
/// For work that others must not begin just because the one doing it is unreachable: a migration that was interrupted
/// half-way, a machine that reboots as a step of the work. Everywhere else an ordinary [`Lock`](crate::Lock) is better:
/// it is free as soon as its holder is gone, and needs no cleanup.
///
/// # Owners
///
/// The lock belongs to an *owner*: a name that survives whatever the lock must survive, such as a host's or a job's. An
/// attempt in the name of the present owner gets the lock at once, past all waiters, with a new and larger
/// [token](crate::DurableGuard::token), and the former holder is informed of its loss. That is how a process resumes
/// its work after a restart, and why only one process at a time may use a name. Attempts through one value of this type
/// and its clones know of each other, and wait.
///
/// # Leases
///
/// A holder renews its lock three times in each lease, with a write. The first waiter looks at the lock four times in
/// each lease; when the lock has not changed for a whole lease, and a tenth more, by the waiter's own clock, it takes
/// the lock away. No clock is compared with any other machine's; clocks only have to run equally fast, within five
/// percent. The holder counts the lock as lost as soon as nine tenths of a lease have passed since it *sent* the last
/// confirmed renewal, so that it stops before others may begin. With [`without_lease`](Self::without_lease) another
/// owner gets it only if its holder is [evicted](Self::evict).
///
/// | | what holds |
/// |---|---|
/// | one holder | at most one grant at any point of the servers' order; tokens grow |
/// | order | other owners get the lock in the order of asking |
/// | dropping an acquire | gives up; a grant that was made meanwhile is released, unless the owner had the lock before: then it still has |
/// | dropping a [`DurableGuard`](crate::DurableGuard) | does *not* release the lock: only [`release`](crate::DurableGuard::release) does |
/// | session ends while waiting | the place in the queue is gone |
/// | session ends while held | the lock stays; the guard counts down its lease, and can [continue](crate::DurableGuard::carry_on) with another client |
///
/// # Cost
///
/// A free lock costs six requests: a listing, the place in the queue with its listing in one round trip, the
/// transaction that makes the grant, and, without a wait for them, the end of the place and a look at the grants. A
/// release costs one; holding it, three writes in each lease, or without one a read every 45 seconds. The first waiter
/// makes eight reads in each lease, and after a second one of its own node; the others sleep, as for a
/// [`Lock`](crate::Lock).
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
/// Nodes: `<path>/locks` is a queue like any other, `<path>/grants` has a persistent node for the holder. No other
/// implementation has this lock, so none can share it.
#[derive(Clone, Debug)]
pub struct DurableLock {
    /// The queue of the waiters.
    pub(super) queue: Arc<WaitQueue>,
    /// The path of the grants.
    pub(super) grants: Arc<str>,
    pub(super) owner: Arc<str>,
    pub(super) lease: Option<Duration>,
    pub(super) live: Live,
}

/// The names of the grants that are held, or being made, through one value and its clones.
#[derive(Clone, Debug, Default)]
pub(super) struct Live(Arc<watch::Sender<BTreeSet<String>>>);

/// Tells waiters of the same owner that a grant is live no more: it is theirs then, if it is still there.
pub(super) struct Ends(watch::Receiver<BTreeSet<String>>);

/// A grant that is held or being made. Dropping it says that it is neither any more, and may still be there.
#[derive(Debug)]
pub(super) struct LiveGrant {
    live: Live,
    name: String,
    /// Whether it is sure not to be there any more, so that no waiter has to know.
    is_gone: bool,
}

impl Live {
    /// Begins a grant of this name.
    pub(super) fn begin(&self, name: &str) -> LiveGrant {
        // No waiter has to know.
        self.0.send_if_modified(|names| {
            names.insert(name.to_owned());
            false
        });
        LiveGrant { live: self.clone(), name: name.to_owned(), is_gone: false }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.borrow().contains(name)
    }

    /// The ends from now on.
    pub(super) fn ends(&self) -> Ends {
        Ends(self.0.subscribe())
    }
}

impl Ends {
    /// Waits for the next one. Can be dropped and called again.
    pub(super) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // The lock itself has the other side.
            std::future::pending().await
        }
    }
}

impl LiveGrant {
    pub(super) const fn is_gone(&mut self) {
        self.is_gone = true;
    }
}

impl Drop for LiveGrant {
    fn drop(&mut self) {
        self.live.0.send_if_modified(|names| names.remove(&self.name) && !self.is_gone);
    }
}

impl DurableLock {
    /// A lock on `path`, asked for in the name of `owner`, with default settings and a lease of 30 seconds.
    #[must_use]
    pub fn new(client: &Client, path: &str, owner: &str) -> Self {
        Self::builder(client, path).build().owned_by(owner)
    }

    /// A lock on `path`, with settings. Until [`owned_by`](Self::owned_by) sets one, its owner has a unique name that
    /// is never used again.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        Builder::new(client, path, |wait_queue| {
            // Without randomness every attempt fails anyway.
            let owner = wait_queue.client.unique_id().unwrap_or_default();
            Self {
                queue: Arc::new(wait_queue.beside(wait_queue.below("locks"))),
                grants: Arc::from(wait_queue.below("grants")),
                owner: Arc::from(owner),
                lease: Some(LEASE),
                live: Live::default(),
            }
        })
    }

    /// Sets the owner in whose name the lock is asked for.
    #[must_use]
    pub fn owned_by(mut self, owner: &str) -> Self {
        (self.owner, self.live) = (Arc::from(owner), Live::default());
        self
    }

    /// Sets the lease: how long others wait for a renewal. Choose it longer than servers may be unreachable. Counted in
    /// whole milliseconds, at least one.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        // As others read it.
        let millis = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        self.lease = Some(Duration::from_millis(millis.max(1)));
        self
    }

    /// Holds the lock until its owner releases it, however long that takes, or its holder is
    /// [evicted](Self::evict).
    #[must_use]
    pub const fn without_lease(mut self) -> Self {
        self.lease = None;
        self
    }

    /// The queue of the waiters, seen from outside. The holder is not in it.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue.queue()
    }

    pub(super) fn client(&self) -> &Client {
        &self.queue.client
    }
}
