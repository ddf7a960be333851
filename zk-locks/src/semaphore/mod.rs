//! The semaphore: so many at a time.
//!
//! | module | concern |
//! |---|---|
//! | `permits` | how many there are, how many are taken, and hearing of changes |
//! | `take` | from a place in the queue to permits |

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};
use zk_client::{Client, ReadError, join};

use crate::{
    builder::Builder,
    contender::Contender,
    error::AcquireError,
    guard::{Guard, Guards},
    holders::Holders,
    layout::Role,
    line::Line,
};

mod permits;
mod take;

/// A number of permits, each of which one at a time may have, given out in the order of asking.
///
/// Nodes are those of Curator's `InterProcessSemaphoreV2`: `<path>/locks` is a queue in which the one in front
/// may add to `<path>/leases`, where there is a node for each permit that is taken. Its users share the
/// semaphore on the same path. Whatever else is under `leases` counts as a permit that is taken.
///
/// Only the one in front watches the permits: a permit that is given back wakes nobody else.
///
/// A permit is a value: it can be sent to another task, and is given back by whoever has it last. Those who have
/// permits at the same time have different [tokens](Guard::token), of which the largest means nothing: a
/// resource that is to refuse holders of the past needs a lock for each slot instead.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::Semaphore;
///
/// let downloads = Semaphore::new(&zk, "/limits/downloads", 3);
/// let permit = downloads.acquire().await?;
/// // ... one of three at a time ...
/// permit.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Cost and losses
///
/// Four requests in two round trips if there is a permit; one more while waiting, and two for each change that is
/// waited for; one to give it back. A permit that is [lost](Guard::lost) may be somebody else's already: ask anew.
///
/// # How many there are
///
/// That is for all who share the semaphore to agree on: everybody says it for itself, or all read it from a
/// [node](Semaphore::counted_at). It can [change](Semaphore::resize) while the semaphore is in use. Fewer
/// permits take nothing from anybody; they are given out again when enough have been given back.
#[derive(Clone, Debug)]
pub struct Semaphore {
    mutex: Arc<Line>,
    leases: Arc<Line>,
    permits: Arc<watch::Sender<u32>>,
    /// The node that tells how many permits there are.
    count: Option<Arc<str>>,
}

/// Settings of a [`Semaphore`].
pub type SemaphoreBuilder = Builder<Semaphore>;

impl Semaphore {
    /// A semaphore on `path` with so many permits, with default settings. Paths that are missing are created
    /// as for a [`Lock`](crate::Lock::new).
    #[must_use]
    pub fn new(client: &Client, path: &str, permits: u32) -> Self {
        Self::builder(client, path).build().with_permits(permits)
    }

    /// A semaphore on `path`, with settings. It has one permit until it is [told](Semaphore::with_permits)
    /// otherwise.
    pub fn builder(client: &Client, path: &str) -> SemaphoreBuilder {
        Builder::new(client, path, |line| Self::over(&line))
    }

    pub(crate) fn over(line: &Line) -> Self {
        let below = |name| Arc::new(line.beside(join(&line.path, name)));
        let (mutex, leases) = (below("locks"), below("leases"));
        Self { mutex, leases, permits: Arc::new(watch::Sender::new(1)), count: None }
    }

    /// The same with so many permits, for this value and its clones. Where they are
    /// [counted](Semaphore::counted_at) by a node, this is how many there are as long as there is no node.
    #[must_use]
    pub fn with_permits(mut self, permits: u32) -> Self {
        self.permits = Arc::new(watch::Sender::new(permits));
        self
    }

    /// The same with as many permits as a node says: in four bytes, as Curator's `SharedCount` writes them. A
    /// negative number is none.
    ///
    /// A permit is given out only if the node is at that moment as it was when it was read. Costs one read
    /// more for each acquire, in no round trip of its own.
    #[must_use]
    pub fn counted_at(mut self, path: &str) -> Self {
        self.count = Some(Arc::from(path));
        self
    }

    /// Waits for a permit, behind all who asked before.
    ///
    /// Two round trips if there is one, and four requests: the place in the queue with two listings, and a
    /// transaction that trades it for the permit. Waiting for one to be given back costs one listing for each
    /// change.
    ///
    /// Dropping the future gives up, wherever it was: no node stays behind.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        let mut guards = self.lease(1).await?;
        guards.pop().ok_or(AcquireError::NodeDeleted)
    }

    /// As [`acquire`](Semaphore::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; nodes are removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<Guard, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Waits for so many permits at once, and gets all of them in one transaction or none. It costs as much as
    /// one. To ask for none is to get none, at once.
    ///
    /// Who asks for many is not passed by others who ask for few: nobody is granted behind it. That is so
    /// too if more are asked for than there are, until there are more.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire_many(&self, permits: usize) -> Result<Guards, AcquireError> {
        self.lease(permits).await.map(Guards::new)
    }

    /// As [`acquire_many`](Semaphore::acquire_many), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; nodes are removed in the background.
    pub async fn acquire_many_timeout(
        &self,
        permits: usize,
        time: Duration,
    ) -> Result<Guards, AcquireError> {
        timeout(time, self.acquire_many(permits)).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes so many permits if there are as many and nobody waits. Looks first: as long as there are not,
    /// this is one round trip and no write.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire_many(&self, permits: usize) -> Result<Option<Guards>, AcquireError> {
        let asked = self.ask(&self.leases.client);
        let busy = self.mutex.is_busy(Role::Lock).await?;
        if busy || !self.answered(asked).await?.has_room(permits) {
            return Ok(None);
        }
        Ok(self.granted(permits, false).await?.map(Guards::new))
    }

    /// Takes a permit if there is one and nobody waits: see
    /// [`try_acquire_many`](Semaphore::try_acquire_many).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let guards = self.try_acquire_many(1).await?;
        Ok(guards.and_then(|guards| guards.into_guards().pop()))
    }

    /// Who has permits: those who got theirs first first, once for each.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn holders(&self) -> Result<Vec<Contender>, ReadError> {
        self.leases.queue().contenders().await
    }

    /// Follows who has permits: as for those who read together under one lock, each change of theirs is told to every
    /// observer.
    #[must_use]
    pub fn follow(&self) -> Holders {
        self.leases.queue().follow()
    }

    /// Who waits for permits: the one in front first.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn waiters(&self) -> Result<Vec<Contender>, ReadError> {
        self.mutex.queue().contenders().await
    }

    async fn lease(&self, wanted: usize) -> Result<Vec<Guard>, AcquireError> {
        // There is always something to be granted where room is waited for.
        Ok(self.granted(wanted, true).await?.unwrap_or_default())
    }
}
