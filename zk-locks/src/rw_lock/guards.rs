//! A held read/write lock: upgrade and downgrade.

use std::{fmt, ops::Deref, sync::Arc};

use zk_client::{Client, CreateMode, MultiError, ReadError, Rejection, path};

use crate::{
    entry::{Entry, Kind},
    error::{AcquireError, Error, Lost, ReleaseError},
    guard::{Guard, Status},
    layout::Role,
    ticket::Ticket,
    wait_queue::{Downgrades, Pace, WaitQueue},
};

/// A read lock that is held. It dereferences to [`Guard`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::RwLock;
///
/// let reading = RwLock::new(&zk, "/locks/report").read().await?;
/// match reading.try_upgrade().await {
///     Ok(writing) => writing.release().await?,
///     // It has failed, or another contender waits to write until we are done: give way.
///     Err(refused) => refused.guard.release().await?,
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it releases the lock"]
pub struct ReadGuard {
    guard: Guard,
    wait_queue: Arc<WaitQueue>,
}

/// A write lock that is held. It dereferences to [`Guard`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::RwLock;
///
/// let lock = RwLock::new(&zk, "/locks/report");
/// let writing = lock.write().await?;
/// let token = writing.token();
/// // Others may read now, and no writer was in between.
/// let reading = writing.downgrade().await?;
/// let other = lock.try_read().await?;
/// assert!(other.is_some() && reading.token() == token);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it releases the lock"]
pub struct WriteGuard {
    guard: Guard,
    wait_queue: Arc<WaitQueue>,
}

impl fmt::Debug for ReadGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadGuard").field(&self.guard).finish()
    }
}

impl fmt::Debug for WriteGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteGuard").field(&self.guard).finish()
    }
}

impl Deref for ReadGuard {
    type Target = Guard;
    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl Deref for WriteGuard {
    type Target = Guard;
    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl From<ReadGuard> for Guard {
    /// Keeps the lock, which cannot be upgraded any more.
    fn from(read: ReadGuard) -> Self {
        read.guard
    }
}

impl From<WriteGuard> for Guard {
    /// Keeps the lock, which cannot be downgraded any more.
    fn from(write: WriteGuard) -> Self {
        write.guard
    }
}

impl ReadGuard {
    pub(super) fn new(guard: Guard, wait_queue: &Arc<WaitQueue>) -> Self {
        Self { guard, wait_queue: wait_queue.clone() }
    }

    /// Releases the lock: see [`Guard::release`].
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.guard.release()
    }

    /// Upgrades to a write lock, without another writer in between: waits until the other readers are done. No new
    /// reader is granted the lock meanwhile.
    ///
    /// A contender that waits to write already, with [`write`](crate::RwLock::write) or by an upgrade of its own, waits
    /// for this read lock, and would be waited for: a deadlock. In that case the upgrade is refused at once, with
    /// [`AcquireError::WouldDeadlock`]; release the lock and ask for a write lock anew.
    ///
    /// The node of the read lock is deleted in the background, and other writers wait for that too: a
    /// [release](WriteGuard::release) does not await it.
    ///
    /// The write lock is a grant of its own, with its own [token](Guard::token): to observers, and for
    /// [limits of time](crate::Builder::release_after), which begin anew with it. Until then those of the read lock go on.
    ///
    /// Dropping the future releases the lock. It ends with an error as soon as the read lock is lost.
    ///
    /// # Errors
    /// [`ConvertError`], with the read lock, which is still held unless the error says otherwise.
    pub async fn try_upgrade(self) -> Result<WriteGuard, ConvertError<Self>> {
        let upgraded = tokio::select! {
            biased;
            // Others may have written since.
            lost = self.guard.held().out_of_touch() => Err(lost.into()),
            upgraded = self.upgraded() => upgraded,
        };
        match (upgraded, self.status()) {
            // Dropping the guard gives the write lock back.
            (Ok(_), Status::Lost(lost)) => Err(ConvertError { guard: self, cause: lost.into() }),
            // Dropping `self` deletes the read node.
            (Ok(guard), Status::Held | Status::Suspect { .. }) => {
                // A client that has asked for the lock back, by the read node, still waits for it.
                guard.held().heard_of(self.guard.held().is_revoked());
                Ok(WriteGuard { guard, wait_queue: self.wait_queue })
            }
            (Err(cause), _) => Err(ConvertError { guard: self, cause }),
        }
    }

    async fn upgraded(&self) -> Result<Guard, AcquireError> {
        let pace = Pace::Beside(path::name(self.path()));
        let data = self.wait_queue.settings.description.as_bytes();
        let read = |client: &Client| client.get(self.path()).submit();
        let (mut position, seen) = self.wait_queue.join_and(Role::Write, pace, data, read).await?;
        self.guard.held().shows(seen.await);
        let listing = self.wait_queue.look(&mut position).await?;
        // Where names have no id, that of the read node may be another reader's by now.
        if !self.guard.held().is_own_node().await? {
            return Err(self.guard.lose(Lost::NodeDeleted).into());
        }
        // With the read node there, behind the create of the write node, no writer can have had the lock in between.
        if !listing.has_besides() {
            return Err(self.guard.lose(Lost::NodeDeleted).into());
        }
        if listing.is_behind_writer() {
            return Err(AcquireError::WouldDeadlock);
        }
        let waits = listing.ahead() > 0;
        let guard = Ticket::new(self.wait_queue.clone(), position).until_granted().await?;
        if waits {
            // The read node may have been asked for meanwhile.
            self.guard.held().shows(read(&self.wait_queue.client).await);
        }
        Ok(guard)
    }
}

impl WriteGuard {
    pub(super) fn new(guard: Guard, wait_queue: &Arc<WaitQueue>) -> Self {
        Self { guard, wait_queue: wait_queue.clone() }
    }

    /// Releases the lock: see [`Guard::release`].
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.guard.release()
    }

    /// Downgrades to a read lock, and lets others read too: those that wait ahead of the next writer. No writer is
    /// granted the lock in between.
    ///
    /// The [token](Guard::token) stays that of the write lock: the new node has a larger number than those of writers
    /// that wait already. One request (three if another client has written into the node), by which the servers make sure
    /// that the lock is still held and let others in: a reader that asks after this has returned may read.
    ///
    /// Work under the write lock is [cancelled](Guard::cancellation_token) first. To observers it is one hold, from the
    /// grant of the write lock to the release of the read lock, and limits of time count from that grant.
    ///
    /// On a path with [kazoo's names](crate::Layout::Kazoo) use this only if all contenders use this type: an exclusive
    /// [`Lock`](crate::Lock) takes a writer's node for that of an exclusive lock, and does not expect it to become a
    /// reader.
    ///
    /// Dropping the future releases the lock.
    ///
    /// # Errors
    /// [`ConvertError`], with the write lock, which is still held unless the error says otherwise.
    pub async fn downgrade(self) -> Result<ReadGuard, ConvertError<Self>> {
        let Self { guard, wait_queue } = self;
        match downgraded(&wait_queue, guard).await {
            Ok(guard) => Ok(ReadGuard { guard, wait_queue }),
            Err((guard, cause)) => Err(ConvertError { guard: Self { guard, wait_queue }, cause }),
        }
    }
}

/// Creates, as Curator does, a read node with the number of the write node, whose place in the queue is directly behind
/// it; but in one transaction with the deletion of the write node: only a contender that still holds the lock gets it,
/// and once that is known others can read.
async fn downgraded(wait_queue: &WaitQueue, guard: Guard) -> Result<Guard, (Guard, AcquireError)> {
    let (mut guard, mut version) = (guard, Some(0));
    loop {
        let wanted = version.filter(|_| !guard.held().is_revoked());
        guard = match traded(wait_queue, guard, wanted).await {
            // Others have written into the node: one may have asked for the lock back, and would not find it any more.
            Err((guard, AcquireError::Rejected(Rejection::BadVersion))) => guard,
            done => return done,
        };
        let seen = wait_queue.client.get(guard.path()).await;
        version = match &seen {
            Ok((_, stat)) => Some(stat.version),
            // A holder that may not read its node cannot be asked.
            Err(ReadError::Rejected(rejection)) if *rejection != Rejection::NoNode => None,
            Err(_) => version,
        };
        guard.held().shows(seen);
    }
}

/// As `downgraded`, if the write node's data still has this version.
async fn traded(
    wait_queue: &WaitQueue,
    guard: Guard,
    version: Option<i32>,
) -> Result<Guard, (Guard, AcquireError)> {
    let path = match path_to_read(wait_queue, &guard) {
        Ok(path) => path,
        Err(cause) => return Err((guard, cause)),
    };
    let WaitQueue { client, settings, .. } = wait_queue;
    let create = client.create(&path, settings.description.as_bytes());
    let create = create.mode(CreateMode::Ephemeral).acl(&settings.acl).protected_by_its_name();
    let (write, lent) = match guard.lend() {
        Ok(lent) => lent,
        Err(guard) => {
            let cause = guard.lose(Lost::NodeDeleted).into();
            return Err((*guard, cause));
        }
    };
    let mut trade = client.create_all_protected([create]);
    if let Some(version) = version {
        trade = trade.check_version(write.path(), version);
    }
    let mut nodes = trade.replacing(write).submit();
    let traded = match (&mut nodes).await {
        Ok(Ok(mut nodes)) => nodes.pop().ok_or(AcquireError::NodeDeleted),
        Ok(Err(MultiError { rejection: Rejection::NoNode, .. })) => Err(AcquireError::NodeDeleted),
        Ok(Err(MultiError { rejection, .. })) => Err(AcquireError::Rejected(rejection)),
        Err(error) => Err(error.into()),
    };
    match traded {
        Ok(node) => {
            let guard = lent.traded(node);
            match guard.status() {
                Status::Lost(lost) => Err((guard, lost.into())),
                Status::Held | Status::Suspect { .. } => Ok(guard),
            }
        }
        Err(cause) => {
            let guard = lent.back(nodes.take_back());
            let cause = match cause {
                AcquireError::NodeDeleted => guard.lose(Lost::NodeDeleted).into(),
                cause => cause,
            };
            Err((guard, cause))
        }
    }
}

/// The path of the read node of a holder that downgrades.
fn path_to_read(wait_queue: &WaitQueue, guard: &Guard) -> Result<String, AcquireError> {
    if let Status::Lost(lost) = guard.status() {
        return Err(lost.into());
    }
    let filter = &wait_queue.settings.filter;
    if wait_queue.settings.downgrades == Downgrades::Never
        || !filter.has_ids()
        || filter.names.is_some() && is_taken_for_a_lock(guard.path())
    {
        return Err(AcquireError::NoDowngrade);
    }
    let name = wait_queue.node_path(Role::Read)?;
    let own = guard.path();
    Ok(name + &own[own.len().saturating_sub(SEQUENCE_LENGTH)..])
}

/// Whether those who know none of our names take a write node for that of an exclusive lock, which no reader follows: they
/// would not look for one.
fn is_taken_for_a_lock(path: &str) -> bool {
    let entry = Entry::parse(path::name(path));
    entry.is_ok_and(|entry| matches!(entry.kind, Kind::Exclusive | Kind::Lead))
}

/// The number of digits of a sequence number. (Granted ones are positive.)
const SEQUENCE_LENGTH: usize = 10;

/// Why a read lock was not [upgraded](ReadGuard::try_upgrade), or a write lock not
/// [downgraded](WriteGuard::downgrade).
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct ConvertError<G> {
    /// The lock as it was. It may be lost.
    pub guard: G,
    /// The error.
    pub cause: AcquireError,
}

impl<G> From<ConvertError<G>> for Error {
    fn from(error: ConvertError<G>) -> Self {
        Self::Acquire(error.cause)
    }
}

impl<G> From<ConvertError<G>> for AcquireError {
    fn from(error: ConvertError<G>) -> Self {
        error.cause
    }
}
