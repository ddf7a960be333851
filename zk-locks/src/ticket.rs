//! A place in a queue, kept between waits.

use std::{fmt, sync::Arc};

use zk_client::{ReadError, Rejection, Zxid, path::join};

use crate::{
    entry::Entry,
    error::AcquireError,
    follow::{Follow, Look, Source},
    guard::Guard,
    layout::Role,
    wait_queue::{Pace, Position, WaitQueue},
};

/// A place in the queue of a lock: see [`Lock::enqueue`](crate::Lock::enqueue),
/// [`RwLock::enqueue_read`](crate::RwLock::enqueue_read) and [`enqueue_write`](crate::RwLock::enqueue_write). Dropping
/// it leaves the queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// let lock = zk_locks::Lock::new(&zk, "/locks/report");
/// let (first, mut second) = (lock.acquire().await?, lock.enqueue().await?);
/// assert!(second.try_wait().await?.is_none());
/// // ... other work, with the place in the queue kept ...
/// first.release().await?;
/// second.wait().await?.release().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it leaves the queue"]
pub struct Ticket<G = Guard> {
    wait_queue: Arc<WaitQueue>,
    /// `None` once the lock was granted, or the attempt has failed.
    position: Option<Position>,
    /// The lock's own kind of guard.
    guard: fn(Guard, &Arc<WaitQueue>) -> G,
}

impl<G> fmt::Debug for Ticket<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("path", &self.path()).field("ahead", &self.ahead()).finish()
    }
}

/// Takes the lock only if that needs no wait: looks first.
pub(crate) async fn try_acquire(
    wait_queue: &WaitQueue,
    role: Role,
) -> Result<Option<Guard>, AcquireError> {
    let position = try_join(wait_queue, role).await?;
    position.map(|position| grant(wait_queue, position)).transpose()
}

/// A place at the head of the queue, if that needs no wait.
pub(crate) async fn try_join(
    wait_queue: &WaitQueue,
    role: Role,
) -> Result<Option<Position>, AcquireError> {
    match wait_queue.is_busy(role).await? {
        true => Ok(None),
        false => join_at_head(wait_queue, role).await,
    }
}

/// The same of a queue that was not busy a moment ago.
pub(crate) async fn join_at_head(
    wait_queue: &WaitQueue,
    role: Role,
) -> Result<Option<Position>, AcquireError> {
    let mut position = wait_queue.join(role, Pace::AtOnce).await?;
    Ok(wait_queue.is_first(&mut position).await?.then_some(position))
}

/// Turns a place at the head of the queue into a guard.
fn grant(wait_queue: &WaitQueue, position: Position) -> Result<Guard, AcquireError> {
    Ok(Guard::new(wait_queue, position)?)
}

impl Ticket {
    pub(crate) const fn new(wait_queue: Arc<WaitQueue>, position: Position) -> Self {
        Self::of(wait_queue, position, |guard, _| guard)
    }
}

impl<G> Ticket<G> {
    pub(crate) const fn of(
        wait_queue: Arc<WaitQueue>,
        position: Position,
        guard: fn(Guard, &Arc<WaitQueue>) -> G,
    ) -> Self {
        Self { wait_queue, position: Some(position), guard }
    }

    /// Waits until the lock is granted. The future can be dropped and recreated at will: the ticket keeps the place in
    /// the queue, not the wait. So this suits `select!` loops:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// # let lock = zk_locks::Lock::new(&zk, "/locks/report");
    /// # let mut tick = tokio::time::interval(std::time::Duration::from_secs(1));
    /// let mut ticket = lock.enqueue().await?;
    /// let guard = loop {
    ///     tokio::select! {
    ///         guard = ticket.wait() => break guard?,
    ///         _ = tick.tick() => println!("still waiting, behind {:?}", ticket.ahead()),
    ///     }
    /// };
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AcquireError`]; the place is given up then. [`AcquireError::Used`] from then on, and after the grant.
    pub async fn wait(&mut self) -> Result<G, AcquireError> {
        if let Some(position) = &mut self.position {
            position.forget_if_old();
        }
        self.until_granted().await
    }

    /// The same directly behind the request that joined the queue.
    pub(crate) async fn until_granted(&mut self) -> Result<G, AcquireError> {
        let position = self.position.as_mut().ok_or(AcquireError::Used)?;
        let waited = self.wait_queue.wait(position).await;
        let position = self.position.take().ok_or(AcquireError::Used)?;
        waited?;
        self.granted(position)
    }

    /// Returns the lock, if it is granted already: one read, unless the queue was seen to be empty less than a second ago.
    ///
    /// # Errors
    /// As [`wait`](Ticket::wait).
    pub async fn try_wait(&mut self) -> Result<Option<G>, AcquireError> {
        let position = self.position.as_mut().ok_or(AcquireError::Used)?;
        match self.wait_queue.may_begin(position).await {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                self.position = None;
                return Err(error);
            }
        }
        let position = self.position.take().ok_or(AcquireError::Used)?;
        self.granted(position).map(Some)
    }

    fn granted(&self, position: Position) -> Result<G, AcquireError> {
        Ok((self.guard)(grant(&self.wait_queue, position)?, &self.wait_queue))
    }

    /// How many contenders were ahead when the queue was last listed: behind the request that joined it and, while a
    /// [`wait`](Ticket::wait) is polled, at least whenever one of the nearest has left. `None` if that is not known at the
    /// moment, such as behind a [`try_wait`](Ticket::try_wait).
    #[must_use]
    pub fn ahead(&self) -> Option<usize> {
        self.position.as_ref().and_then(Position::ahead)
    }

    /// Follows how many contenders are ahead, beside a wait: 0 when nobody is, `None` when the place is gone,
    /// and on each further call. Sends no request before the first [`next`](Follow::next). `None` once the ticket is
    /// used.
    ///
    /// For a few places of interest, not for thousands of waiters: it watches the whole queue, and each change of that
    /// costs one notification and one listing, and one read where names have no id. It does not hold the ticket's place,
    /// and can outlive it. [`ahead`](Ticket::ahead) returns what a wait has seen in passing, without a request.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// # let lock = zk_locks::Lock::new(&zk, "/locks/report");
    /// let mut ticket = lock.enqueue().await?;
    /// let mut positions = ticket.positions().ok_or("it is used")?;
    /// let guard = loop {
    ///     tokio::select! {
    ///         guard = ticket.wait() => break guard?,
    ///         ahead = positions.next() => println!("{:?} in front", ahead?),
    ///     }
    /// };
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn positions(&self) -> Option<Follow<Option<usize>>> {
        let position = self.position.as_ref()?;
        let (entry, number) = (position.entry.clone(), position.node.stat().czxid);
        Some(Follow::new(Ahead { wait_queue: self.wait_queue.clone(), entry, number }))
    }

    /// The path of the node in the queue, relative to the client's chroot; `None` once the ticket is used.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.position.as_ref().map(|position| position.node.path())
    }
}

/// The contenders ahead of a place.
#[derive(Debug)]
struct Ahead {
    wait_queue: Arc<WaitQueue>,
    entry: Entry,
    /// The transaction that made the place's node.
    number: Zxid,
}

impl Ahead {
    /// Whether the node of this name is that of the place: where names have no id, it can be another contender's by now.
    async fn is_own(&self) -> Result<bool, ReadError> {
        let WaitQueue { client, path, settings, .. } = &*self.wait_queue;
        if settings.filter.has_ids() {
            return Ok(true);
        }
        let stat = client.exists(&join(path, &self.entry.name)).await?;
        Ok(stat.is_some_and(|stat| stat.czxid == self.number))
    }
}

impl Source<Option<usize>> for Ahead {
    fn look(&self) -> Look<'_, Option<usize>> {
        Box::pin(async {
            let WaitQueue { client, path, settings, .. } = &*self.wait_queue;
            let ((names, _), watch) = match client.children(path).watch().await {
                Err(ReadError::Rejected(Rejection::NoNode)) => return Ok((None, None)),
                children => children?,
            };
            let queue = settings.filter.queue(names);
            let is_there = queue.iter().any(|entry| entry.name == self.entry.name);
            let ahead = queue.iter().filter(|entry| entry.blocks(&self.entry)).count();
            let is_there = is_there && self.is_own().await?;
            Ok(if is_there { (Some(ahead), Some(watch)) } else { (None, None) })
        })
    }
}
