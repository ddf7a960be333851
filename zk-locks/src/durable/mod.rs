//! A lock that stays locked when its holder dies.
//!
//! | module | concern |
//! |---|---|
//! | `record` | what a grant says of itself |
//! | `take` | from a place in front to a grant, over whatever gets lost |
//! | `tenure` | what is known of a grant that is held; renewing it |
//! | `guard` | the lock in a holder's hands |

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::timeout;
use zk_client::{Client, ReadError, Rejection, join};

use crate::{
    builder::Builder,
    error::AcquireError,
    guard::FencingToken,
    layout::Role,
    line::{Line, Place},
    queue::Queue,
};

mod guard;
mod record;
mod take;
mod tenure;

pub use self::guard::DurableGuard;
use self::{
    record::Record,
    take::{Look, Outcome, Seen},
};

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
/// [token](DurableGuard::token), and the former holder hears that it has lost it. That is how a process takes up its
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
/// | dropping a [`DurableGuard`] | does *not* give the lock back: only [`release`](DurableGuard::release) does |
/// | session ends while waiting | the place in the queue is gone |
/// | session ends while held | the lock stays; the guard counts down its lease, and can [go on](DurableGuard::carry_on) with another client |
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
    queue: Arc<Line>,
    /// Where the grant is.
    grants: Arc<str>,
    owner: Arc<str>,
    lease: Option<Duration>,
    live: Live,
}

/// Settings of a [`DurableLock`].
pub type DurableLockBuilder = Builder<DurableLock>;

/// Who has a [`DurableLock`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurableHolder {
    /// In whose name; empty if that is not known.
    pub owner: String,
    /// How long it may be silent; `None` for ever.
    pub lease: Option<Duration>,
    /// Its fencing token.
    pub token: FencingToken,
    /// When it got the lock: milliseconds since 1970 on the clock of the leader.
    pub since: i64,
    /// When it was last heard of, on the same clock.
    pub renewed: i64,
    /// What it says about itself.
    pub description: String,
    path: String,
}

/// The names of the grants that are held through one value and its clones.
#[derive(Clone, Debug, Default)]
struct Live(Arc<Mutex<BTreeSet<String>>>);

impl Live {
    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
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

    /// Waits for the lock, behind all who asked before; not behind its own owner.
    ///
    /// Dropping the future gives up, wherever it was. If the process dies while the grant is being made, or the
    /// session ends then, the grant may stay: its owner gets it with the next attempt, others when its lease is over.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self) -> Result<DurableGuard, AcquireError> {
        let mut look = self.look().await?;
        while self.is_ours(&look) {
            match self.take(None, &look, false).await? {
                Outcome::Granted(guard) => return Ok(*guard),
                Outcome::Changed(_) => look = self.look().await?,
            }
        }
        let place = self.queue.join(Role::Lock, None).await?;
        self.wait(place, look).await
    }

    /// As [`acquire`](Self::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; what was made is removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<DurableGuard, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes the lock if it is free and nobody waits for it, or if it is its owner's already. A lease that is over does
    /// not make it free: that takes somebody who waits.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire(&self) -> Result<Option<DurableGuard>, AcquireError> {
        let mut place = None;
        loop {
            let look = self.look().await?;
            if !self.is_ours(&look) {
                if !look.grants.is_empty() {
                    return Ok(None);
                }
                if place.is_none() {
                    place = self.first_place().await?;
                }
                if place.is_none() {
                    return Ok(None);
                }
            }
            match self.take(place.take(), &look, false).await? {
                Outcome::Granted(guard) => return Ok(Some(*guard)),
                Outcome::Changed(back) => place = back.map(|place| *place),
            }
        }
    }

    /// A place in the queue, if nobody is in front of it.
    async fn first_place(&self) -> Result<Option<Place>, AcquireError> {
        if self.queue.is_busy(Role::Lock).await? {
            return Ok(None);
        }
        let mut place = self.queue.join(Role::Lock, None).await?;
        let is_first = self.queue.look(&mut place).await?.ahead() == 0;
        Ok(is_first.then_some(place))
    }

    /// Who has the lock, as far as the server knows that is asked: two reads.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn holder(&self) -> Result<Option<DurableHolder>, ReadError> {
        let client = self.client();
        let names = match client.children(&self.grants).await {
            Ok((names, _)) => names,
            Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(None),
            Err(error) => return Err(error),
        };
        for name in names {
            let path = join(&self.grants, &name);
            let (data, stat) = match client.get(&path).await {
                Ok(read) => read,
                Err(ReadError::Rejected(Rejection::NoNode)) => continue,
                Err(error) => return Err(error),
            };
            let unknown = || Record {
                owner: String::new(),
                lease: None,
                description: String::from_utf8_lossy(&data).into_owned(),
            };
            let Record { owner, lease, description } =
                Record::decode(&data).unwrap_or_else(unknown);
            let token = FencingToken::new(stat.czxid);
            let (since, renewed) = (stat.ctime, stat.mtime);
            return Ok(Some(DurableHolder {
                owner,
                lease,
                token,
                since,
                renewed,
                description,
                path,
            }));
        }
        Ok(None)
    }

    /// Takes the lock away from a holder, whatever its lease: for people who know that it does not work any more. It
    /// hears of it if it can, and is refused by its [token](DurableGuard::token) otherwise. `false` if it had
    /// given it back, or lost it. One write, repeated until it is answered.
    ///
    /// # Errors
    /// [`zk_client::WriteError`].
    pub async fn break_hold(&self, holder: &DurableHolder) -> Result<bool, zk_client::WriteError> {
        let was_there = self.client().delete(&holder.path).if_exists().await?;
        if was_there {
            tracing::warn!(path = holder.path, owner = holder.owner, "durable lock broken by hand");
        }
        Ok(was_there)
    }

    /// Those who wait, as a queue to be looked at from outside. Whoever holds the lock is not in it.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue.queue()
    }

    fn client(&self) -> &Client {
        &self.queue.client
    }

    /// Waits in the queue, and then for the end of whoever has the lock.
    async fn wait(&self, mut place: Place, first: Look) -> Result<DurableGuard, AcquireError> {
        self.queue.wait(&mut place).await?;
        let (mut look, mut watch) = (first, None);
        let mut seen = Seen::default();
        loop {
            seen.note(&look);
            let breaks = seen.is_over(&look);
            if look.grants.is_empty() || self.is_ours(&look) || breaks {
                match self.take(Some(place), &look, breaks).await? {
                    Outcome::Granted(guard) => return Ok(*guard),
                    Outcome::Changed(back) => place = *back.ok_or(AcquireError::NodeDeleted)?,
                }
                watch = None;
            }
            let changed = match &mut watch {
                Some(watch) => timeout(seen.pause(&look), watch).await,
                // What is known is from before.
                None => Ok(Ok(())),
            };
            match changed {
                Ok(event) => {
                    event.map_err(AcquireError::SessionEnded)?;
                    let (next, changed) = self.look_and_watch().await?;
                    (look, watch) = (next, Some(changed));
                }
                Err(_) => look = self.look().await?,
            }
        }
    }
}
