//! Reporting events of locks: to metrics, to logs.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use zk_client::{Histogram, Session, SessionState};

use crate::{error::Lost, token::FencingToken};

/// Receives the events of the locks that it is [set](crate::Builder::observer) for. [`Metrics`] is one.
///
/// The methods are called inline, and should be quick.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use std::sync::Arc;
/// use zk_locks::{Grant, Lock, LockObserver, Release};
///
/// struct Audit;
///
/// impl LockObserver for Audit {
///     fn granted(&self, grant: &Grant<'_>) {
///         println!("{} with token {} after {:?}", grant.path, grant.token, grant.waited);
///     }
///
///     fn released(&self, release: &Release<'_>) {
///         println!("{} after {:?}, lost: {:?}", release.path, release.held, release.lost);
///     }
/// }
///
/// let lock = Lock::builder(&zk, "/locks/report").observer(Arc::new(Audit)).build();
/// lock.acquire().await?.release().await?;
/// # Ok(())
/// # }
/// ```
pub trait LockObserver: Send + Sync + 'static {
    /// A recipe was built that will report to this observer, for a client with this session.
    fn attached(&self, session: &Session) {
        let _ = session;
    }

    /// An attempt has joined a queue: its node is there, at this path. [`left`](Self::left) follows, with the same path.
    ///
    /// A task of a [`CohortLock`](crate::CohortLock) has no node of its own: it has joined when it asks, and the path is
    /// that of the lock.
    fn joined(&self, path: &str) {
        let _ = path;
    }

    /// The attempt waits no more: it was granted the lock, has traded its place for it, or has given up.
    fn left(&self, path: &str) {
        let _ = path;
    }

    /// A lock was granted. An attempt that has [joined](Self::joined) for several permits of a
    /// [`Semaphore`](crate::Semaphore) is granted each of them. A [`DurableLock`](crate::DurableLock) that its owner had
    /// already is granted without joining.
    fn granted(&self, grant: &Grant<'_>) {
        let _ = grant;
    }

    /// An attempt that had [joined](Self::joined) has ended without a grant: its caller has given up, or it failed. What
    /// fails before, or finds the lock taken at a first look, is not reported.
    fn given_up(&self, path: &str, waited: Duration) {
        let _ = (path, waited);
    }

    /// A guard was dropped or released; `lost` if it had lost its lock by then.
    fn released(&self, release: &Release<'_>) {
        let _ = release;
    }

    /// A lock has been held for longer than [`max_hold`](crate::Builder::max_hold), and still is; or for longer than
    /// [`release_after`](crate::Builder::release_after), and is about to be taken away. Nothing is said of a lock that is
    /// [known](crate::Guard::status) to be lost.
    fn held_too_long(&self, grant: &Grant<'_>) {
        let _ = grant;
    }
}

/// A lock that was granted.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Grant<'a> {
    /// The path of its node.
    pub path: &'a str,
    /// Its token.
    pub token: FencingToken,
    /// The time from joining the queue to the grant.
    pub waited: Duration,
    /// How many contenders were ahead when it joined; `None` if that was not seen.
    pub ahead: Option<usize>,
}

/// A guard that was dropped or released.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Release<'a> {
    /// The path of its node.
    pub path: &'a str,
    /// Its token.
    pub token: FencingToken,
    /// The time since the grant.
    pub held: Duration,
    /// Whether the lock was lost by then, as far as that was known.
    pub lost: Option<Lost>,
}

/// Counters, and histograms of waits and holds.
///
/// ```
/// use std::sync::Arc;
/// use zk_locks::{Client, Lock, Metrics};
///
/// fn lock(zk: &Client, metrics: &Arc<Metrics>) -> Lock {
///     Lock::builder(zk, "/locks/report").observer(metrics.clone()).build()
/// }
///
/// let metrics = Arc::new(Metrics::default());
/// println!("{} grants, half of them within {:?}", metrics.grants(), metrics.waits().quantile(0.5));
/// ```
#[derive(Debug, Default)]
pub struct Metrics {
    grants: AtomicU64,
    given_up: AtomicU64,
    losses: AtomicU64,
    alarms: AtomicU64,
    ahead: AtomicU64,
    waits: Histogram,
    holds: Histogram,
    /// Without duplicates.
    sessions: Mutex<Vec<Session>>,
}

impl Metrics {
    /// Returns the number of granted locks. Each permit of a [`Semaphore`](crate::Semaphore) counts, several of one attempt
    /// too.
    #[must_use]
    pub fn grants(&self) -> u64 {
        self.grants.load(Relaxed)
    }

    /// Returns the number of attempts that joined a queue and ended without a grant.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up.load(Relaxed)
    }

    /// Returns the number of guards that had lost their lock when they were dropped or released.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.losses.load(Relaxed)
    }

    /// Returns how often a lock was held for longer than one of its limits: twice for one that has passed both.
    #[must_use]
    pub fn alarms(&self) -> u64 {
        self.alarms.load(Relaxed)
    }

    /// Returns how many contenders were ahead of the last granted one when it joined: the length of the queue.
    #[must_use]
    pub fn queue_length(&self) -> u64 {
        self.ahead.load(Relaxed)
    }

    /// Returns the number of nodes without an owner whose deletion no server has confirmed, in all sessions whose
    /// recipes report here: see [`Session::orphans`](zk_client::Session::orphans). Other contenders wait for them.
    #[must_use]
    pub fn orphans(&self) -> usize {
        self.sessions().iter().map(Session::orphans).sum()
    }

    /// The sessions that have not ended.
    fn sessions(&self) -> MutexGuard<'_, Vec<Session>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| !matches!(session.state(), SessionState::Ended(_)));
        sessions
    }

    /// Returns how long granted attempts waited, once for each grant.
    #[must_use]
    pub const fn waits(&self) -> &Histogram {
        &self.waits
    }

    /// Returns how long locks were held.
    #[must_use]
    pub const fn holds(&self) -> &Histogram {
        &self.holds
    }
}

impl LockObserver for Metrics {
    fn attached(&self, session: &Session) {
        let mut sessions = self.sessions();
        if sessions.iter().all(|known| known.id() != session.id()) {
            sessions.push(session.clone());
        }
    }

    fn granted(&self, grant: &Grant<'_>) {
        self.grants.fetch_add(1, Relaxed);
        self.waits.add(grant.waited);
        if let Some(ahead) = grant.ahead {
            self.ahead.store(u64::try_from(ahead).unwrap_or(u64::MAX), Relaxed);
        }
    }

    fn given_up(&self, _path: &str, _waited: Duration) {
        self.given_up.fetch_add(1, Relaxed);
    }

    fn released(&self, release: &Release<'_>) {
        self.holds.add(release.held);
        self.losses.fetch_add(u64::from(release.lost.is_some()), Relaxed);
    }

    fn held_too_long(&self, _grant: &Grant<'_>) {
        self.alarms.fetch_add(1, Relaxed);
    }
}

/// The observer that the program has set, and the one that reports to its recorder; either, both or none.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    pub(crate) set: Option<Arc<dyn LockObserver>>,
    pub(crate) recorder: Option<Arc<dyn LockObserver>>,
}

impl Observers {
    /// Reports a grant, to logs as well.
    pub(crate) fn granted(&self, grant: &Grant<'_>) {
        let Grant { path, token, waited, ahead } = *grant;
        tracing::debug!(path, token = token.get(), ?waited, ahead, "granted");
        self.tell(|observer| observer.granted(grant));
    }

    /// Reports the end of a hold, to logs as well.
    pub(crate) fn released(&self, release: &Release<'_>) {
        let Release { path, token, held, lost } = *release;
        let lost = lost.map(tracing::field::display);
        tracing::debug!(path, token = token.get(), ?held, lost, "released");
        self.tell(|observer| observer.released(release));
    }

    pub(crate) fn tell(&self, what: impl Fn(&dyn LockObserver)) {
        self.recorder.iter().chain(&self.set).for_each(|observer| what(&**observer));
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.recorder.iter().chain(&self.set).count())
    }
}
