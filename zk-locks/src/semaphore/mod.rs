//! The semaphore: a limited number of holders at a time.
//!
//! | module | concern |
//! |---|---|
//! | `permits` | how many permits there are, how many are taken, and waiting for changes |
//! | `take` | from a place in the queue to permits |

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};
use zk_client::{Client, ReadError};

use crate::{
    builder::Builder,
    contender::Contender,
    error::AcquireError,
    follow::Follow,
    front::Front,
    guard::{Guard, Guards},
    layout::Role,
    wait_queue::WaitQueue,
};

mod permits;
mod take;

/// A number of permits, each with one holder at a time, granted in the order of asking.
///
/// Nodes are those of Curator's `InterProcessSemaphoreV2`: `<path>/locks` is a queue whose first contender may add to
/// `<path>/leases`, where there is a node for each taken permit. Curator's users share the semaphore on the same path.
/// Any other node under `leases` counts as a taken permit, also one without a number, which [`holders`](Self::holders) does
/// not list.
///
/// Only the first waiter watches the permits: a release wakes no other.
///
/// A semaphore of one permit is a lock in the nodes of Curator's `InterProcessSemaphoreMutex`. A
/// [`Lock`](crate::Lock) is cheaper; this one is for paths that are used in this way already.
///
/// A permit is a value: it can be sent to another task, and its last owner releases it. Concurrent holders have
/// different [tokens](Guard::token), of which the largest means nothing: a resource that must refuse former holders
/// needs a lock for each slot instead.
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
/// Four requests in two round trips if there is a permit. The first waiter lists the permits once more, and again for
/// each of their changes; the others wait as for a [`Lock`](crate::Lock). One request to release it. A permit that is [lost](Guard::lost) may have another holder already: ask anew. So may one whose
/// session is being [closed](crate::Client::close): end what runs under permits first.
///
/// # Number of permits
///
/// All users of the semaphore must agree on the number: each is configured with it, or all read it from a
/// [node](Semaphore::counted_at). It can [change](Semaphore::resize) while the semaphore is in use. A smaller number
/// takes no permit away; permits are granted again when enough have been released.
#[derive(Clone, Debug)]
pub struct Semaphore {
    mutex: Arc<WaitQueue>,
    leases: Arc<WaitQueue>,
    permits: Arc<watch::Sender<u32>>,
    /// The node that holds the number of permits.
    count: Option<Arc<str>>,
}

impl Semaphore {
    /// A semaphore on `path` with this number of permits and default settings. Missing paths are created as for a
    /// [`Lock`](crate::Lock::new).
    #[must_use]
    pub fn new(client: &Client, path: &str, permits: u32) -> Self {
        Self::builder(client, path).build().with_permits(permits)
    }

    /// A semaphore on `path`, with settings. It has one permit until [configured](Semaphore::with_permits) otherwise.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        Builder::new(client, path, |wait_queue| Self::over(&wait_queue))
    }

    fn over(wait_queue: &WaitQueue) -> Self {
        let below = |name| Arc::new(wait_queue.beside(wait_queue.below(name)));
        let (mutex, leases) = (below("locks"), below("leases"));
        Self { mutex, leases, permits: Arc::new(watch::Sender::new(1)), count: None }
    }

    /// Sets the number of permits, for this value and its clones. With a [node](Semaphore::counted_at) for the number,
    /// this applies as long as that node does not exist.
    #[must_use]
    pub fn with_permits(mut self, permits: u32) -> Self {
        self.permits = Arc::new(watch::Sender::new(permits));
        self
    }

    /// Reads the number of permits from a node: four bytes, as Curator's `SharedCount` writes them. A negative number
    /// counts as zero.
    ///
    /// A permit is granted only if the node has not been written since it was read. That is told by its version: do not delete
    /// the node and make it anew, nor add it, while the semaphore is in use; a permit that is just being granted may go by the
    /// number before. Costs one more read for each acquire, in no round trip of its own.
    #[must_use]
    pub fn counted_at(mut self, path: &str) -> Self {
        self.count = Some(Arc::from(path));
        self
    }

    /// Waits for a permit, behind all earlier contenders.
    ///
    /// Two round trips if there is one, and four requests: the place in the queue with two listings, and a transaction
    /// that trades it for the permit. While waiting, the first in line lists the permits once more, and again for each of
    /// their changes; with a [node](Semaphore::counted_at) for the number, a read comes with each listing. A wait of more
    /// than a second reads its own node once.
    ///
    /// Dropping the future gives up at any point: no node stays behind.
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

    /// Waits for several permits at once, and gets all of them in one transaction or none. It costs as much as one. A
    /// request for zero permits returns at once.
    ///
    /// Contenders for few permits do not pass an earlier one for many: none is granted a permit behind it. That also
    /// holds if it asks for more permits than there are, until there are more.
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

    /// Takes several permits if they are free and there are no waiters. Looks first: as long as they are not free, this
    /// is one round trip and no write.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire_many(&self, permits: usize) -> Result<Option<Guards>, AcquireError> {
        if permits > 0 {
            self.leases.check_name(Role::Lease)?;
            let asked = self.ask(&self.leases.client);
            let busy = self.mutex.is_busy(Role::Lock).await?;
            if busy || !self.answered(asked).await?.has_room(permits) {
                return Ok(None);
            }
        }
        Ok(self.granted(permits, false).await?.map(Guards::new))
    }

    /// Takes a permit if one is free and there are no waiters: see [`try_acquire_many`](Semaphore::try_acquire_many).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let guards = self.try_acquire_many(1).await?;
        Ok(guards.and_then(|guards| guards.into_guards().pop()))
    }

    /// Lists the holders of permits, the earliest first, once for each permit.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn holders(&self) -> Result<Vec<Contender>, ReadError> {
        self.leases.queue().contenders().await
    }

    /// Follows the holders of permits: as with the [readers of a lock](crate::Queue::follow), every observer learns of each that
    /// comes or goes. Changes of the data of single holders, as when one is asked for its permit back, are not followed.
    #[must_use]
    pub fn follow(&self) -> Follow<Vec<Contender>> {
        let WaitQueue { client, path, settings, .. } = &*self.leases;
        Follow::new(Front::of_permits(client, path, settings.filter.clone()))
    }

    /// Lists the waiters, the first one first.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn waiters(&self) -> Result<Vec<Contender>, ReadError> {
        self.mutex.queue().contenders().await
    }

    async fn lease(&self, wanted: usize) -> Result<Vec<Guard>, AcquireError> {
        // A call that waits for room always gets a grant.
        Ok(self.granted(wanted, true).await?.unwrap_or_default())
    }
}
