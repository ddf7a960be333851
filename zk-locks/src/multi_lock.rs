//! Several exclusive locks as one.

use std::{
    convert::Infallible,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::{task::yield_now, time::timeout};
use zk_client::{Cause, Client, Rejection};

use crate::{
    error::AcquireError,
    guard::{Guard, Guards},
    layout::Role,
    lock::Lock,
    ticket, together,
    wait_queue::{Pace, Position, WaitQueue},
};

/// Several exclusive locks that are acquired together.
///
/// All queues are joined in one transaction, so of two contenders that do so one is ahead of the other wherever they
/// meet: they cannot deadlock, in whatever order their paths are given. Contenders that take the same locks one by one,
/// as [`Lock`] does, wait and are waited for as usual; a holder of one of these that asks for more can still deadlock
/// with any other.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::MultiLock;
///
/// let both = MultiLock::new(&zk, ["/accounts/7/lock", "/accounts/9/lock"]);
/// let guards = both.acquire().await?;
/// // ... transfer, showing each account the token of its own lock ...
/// guards.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// If the locks are free, they cost one round trip: one request for all nodes, and a listing for each. A waiter sleeps
/// after one more round trip, with two reads for each; the grant costs nothing more. (A place at the head of its queue is
/// read when others have been waited for for a second.) A release is one request for each,
/// in one round trip. The [loss](Guards::lost) of one is the loss of all: release the others, and ask for all anew.
///
/// Where one transaction will not do, because servers do not support it, it would be too long, or the locks are of
/// [several clients](MultiLock::of), the locks are taken one after the other in the order of their paths, as their clients
/// have them: contenders that do so share that order if they have the same roots. If one cannot be had, all are released again.
/// One that has to do so holds some while it waits for others: with a contender that uses a transaction it can deadlock, so
/// that all who share more than one lock should be able to, or none.
///
/// Limits of [holding](crate::Builder::release_after) count from the moment at which all are held.
#[derive(Clone, Debug)]
pub struct MultiLock {
    /// Each path, or each name on it, once.
    wait_queues: Vec<Arc<WaitQueue>>,
}

impl MultiLock {
    /// The locks on these paths, with default settings. A path that is named twice counts once.
    #[must_use]
    pub fn new<P: AsRef<str>>(client: &Client, paths: impl IntoIterator<Item = P>) -> Self {
        Self::of(paths.into_iter().map(|path| Lock::new(client, path.as_ref())))
    }

    /// Combines locks with settings of their own.
    ///
    /// Locks of different clients (clones count as one) cannot be taken in one transaction: they are taken one after
    /// the other, in the order of their paths as servers name them. Locks with one path and different sessions are taken in
    /// the order given here: use the same order everywhere, and the same paths. Those of one session count once.
    #[must_use]
    pub fn of(locks: impl IntoIterator<Item = Lock>) -> Self {
        let mut wait_queues: Vec<Arc<WaitQueue>> = Vec::new();
        for lock in locks {
            let wait_queue = lock.into_wait_queue();
            let is_same = |other: &WaitQueue| {
                other.location() == wait_queue.location()
                    && other.client.shares_session(&wait_queue.client)
            };
            if !wait_queues.iter().any(|other| is_same(other)) {
                wait_queues.push(wait_queue);
            }
        }
        Self { wait_queues }
    }

    /// Waits for all locks, behind all earlier contenders for any of them.
    ///
    /// One round trip if they are free: one request for all nodes, and one listing for each lock. While waiting for one
    /// lock the others that are free already are held.
    ///
    /// Dropping the future gives all places up.
    ///
    /// # Errors
    /// [`AcquireError`] of the lock that failed first; nothing is held or waited for then.
    pub async fn acquire(&self) -> Result<Guards, AcquireError> {
        if !self.is_of_one_client() {
            return self.acquire_in_order().await;
        }
        match self.join_all(Pace::MayWait).await {
            Ok(places) => self.wait(places).await,
            Err(error) if needs_no_transaction(&error) => {
                tracing::warn!(%error, "one lock after the other");
                self.acquire_in_order().await
            }
            Err(error) => Err(error),
        }
    }

    /// As [`acquire`](MultiLock::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; the nodes are removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<Guards, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes all locks if they are free and have no waiters. Looks first: one read for each, in one round trip, and no
    /// write while one is taken.
    ///
    /// # Errors
    /// As [`acquire`](MultiLock::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Guards>, AcquireError> {
        let busy = self.wait_queues.iter().map(|wait_queue| wait_queue.is_busy(Role::Lock));
        if together::all(busy).await?.contains(&true) {
            return Ok(None);
        }
        if !self.is_of_one_client() {
            return self.try_in_order().await;
        }
        let mut places = match self.join_all(Pace::AtOnce).await {
            Err(error) if needs_no_transaction(&error) => return self.try_in_order().await,
            places => places?,
        };
        for (wait_queue, position) in self.wait_queues.iter().zip(&mut places) {
            if !wait_queue.is_first(position).await? {
                return Ok(None);
            }
        }
        self.all_granted_now(places).await
    }

    /// Whether all locks are of one client, as one transaction needs.
    fn is_of_one_client(&self) -> bool {
        self.wait_queues.windows(2).all(|pair| pair[0].client.is_same_view(&pair[1].client))
    }

    /// Joins all queues by one transaction. In order there, too: a lock without a name waits for all on its path, also for
    /// one of these that has a name, unless that is behind it.
    async fn join_all(&self, pace: Pace<'_>) -> Result<Vec<Position>, AcquireError> {
        let (indices, wait_queues): (Vec<_>, Vec<_>) = self.in_order().into_iter().unzip();
        let places = WaitQueue::join_all(&wait_queues, Role::Lock, pace).await?;
        Ok(as_asked(indices.into_iter().zip(places).collect()))
    }

    async fn wait(&self, mut places: Vec<Position>) -> Result<Guards, AcquireError> {
        self.wait_at(&mut places).await?;
        self.all_granted(places).await
    }

    async fn wait_at(&self, places: &mut [Position]) -> Result<(), AcquireError> {
        let wait_queues = self.wait_queues.iter().map(|wait_queue| &**wait_queue);
        all_at_the_head(wait_queues.zip(places).collect(), 0).await
    }

    /// Places that have been reached, one after the other: those at the heads of their queues were not watched for the
    /// first second in which another one was waited for. Once: from then on they are watched wherever that lasts, and where
    /// answers take longer each of them would be old when all have come.
    async fn all_granted(&self, mut places: Vec<Position>) -> Result<Guards, AcquireError> {
        if places.iter_mut().fold(false, |any, position| position.forget_if_old() | any) {
            self.wait_at(&mut places).await?;
        }
        self.granted(places)
    }

    /// The same without a wait.
    async fn all_granted_now(
        &self,
        mut places: Vec<Position>,
    ) -> Result<Option<Guards>, AcquireError> {
        for (wait_queue, position) in self.wait_queues.iter().zip(&mut places) {
            if position.forget_if_old() && !wait_queue.is_first(position).await? {
                return Ok(None);
            }
        }
        self.granted(places).map(Some)
    }

    /// Turns places at the heads of all queues into guards: from here on they count as held.
    fn granted(&self, places: Vec<Position>) -> Result<Guards, AcquireError> {
        let granted = self
            .wait_queues
            .iter()
            .zip(places)
            .map(|(wait_queue, position)| Guard::new(wait_queue, position));
        Ok(Guards::new(granted.collect::<Result<_, _>>()?))
    }

    /// The locks, with their indices, in the order that all contenders keep to.
    fn in_order(&self) -> Vec<(usize, &WaitQueue)> {
        let mut wait_queues: Vec<(usize, &WaitQueue)> = self
            .wait_queues
            .iter()
            .enumerate()
            .map(|(index, wait_queue)| (index, &**wait_queue))
            .collect();
        wait_queues.sort_by(|(_, one), (_, other)| one.location().cmp(&other.location()));
        wait_queues
    }

    async fn acquire_in_order(&self) -> Result<Guards, AcquireError> {
        let (indices, wait_queues): (Vec<_>, Vec<_>) = self.in_order().into_iter().unzip();
        let mut places = Vec::with_capacity(wait_queues.len());
        for (reached, wait_queue) in wait_queues.iter().enumerate() {
            places.push(wait_queue.join(Role::Lock, Pace::MayWait).await?);
            let places = wait_queues.iter().copied().zip(&mut places);
            all_at_the_head(places.collect(), reached).await?;
        }
        self.all_granted(as_asked(indices.into_iter().zip(places).collect())).await
    }

    async fn try_in_order(&self) -> Result<Option<Guards>, AcquireError> {
        let mut places = Vec::with_capacity(self.wait_queues.len());
        for (index, wait_queue) in self.in_order() {
            match ticket::try_join(wait_queue, Role::Lock).await? {
                Some(position) => places.push((index, position)),
                None => return Ok(None),
            }
        }
        self.all_granted_now(as_asked(places)).await
    }
}

/// Waits until all places are at the heads of their queues at once; the first `reached` of them are.
async fn all_at_the_head(
    places: Vec<(&WaitQueue, &mut Position)>,
    reached: usize,
) -> Result<(), AcquireError> {
    let missing = AtomicUsize::new(places.len().saturating_sub(reached));
    let missing = &missing;
    let places = places.into_iter().enumerate().map(|(number, (wait_queue, position))| {
        at_the_head(wait_queue, position, number < reached, missing)
    });
    tokio::select! {
        biased;
        failed = together::first(places) => failed.map(|never| match never {}),
        // It changes only while they are polled.
        () = poll_fn(|_| match missing.load(Ordering::Relaxed) {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }) => Ok(()),
    }
}

/// Waits for a place at the head of its queue and stays there, while others are `missing`. Ends with an error only.
async fn at_the_head(
    wait_queue: &WaitQueue,
    position: &mut Position,
    mut is_there: bool,
    missing: &AtomicUsize,
) -> Result<Infallible, AcquireError> {
    loop {
        if !is_there {
            wait_queue.wait(position).await?;
            missing.fetch_sub(1, Ordering::Relaxed);
        }
        // Mostly the others are free too, and that was all.
        yield_now().await;
        wait_queue.stay(position).await?;
        missing.fetch_add(1, Ordering::Relaxed);
        is_there = false;
    }
}

/// Restores the order of asking.
fn as_asked(mut places: Vec<(usize, Position)>) -> Vec<Position> {
    places.sort_by_key(|(index, _)| *index);
    places.into_iter().map(|(_, position)| position).collect()
}

/// Whether the servers cannot carry out such a transaction.
const fn needs_no_transaction(error: &AcquireError) -> bool {
    matches!(
        error,
        AcquireError::Rejected(Rejection::Unimplemented)
            | AcquireError::Unavailable(Cause::TooLarge { .. })
    )
}
