//! Telling what happens with locks: to metrics, to logs.

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

/// Hears what happens with the locks that it is [set](crate::Builder::observer) for. [`Metrics`] is one.
///
/// The methods are called where it happens, and should be quick.
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
    /// A recipe was built that will tell this observer, for a client with this session.
    fn attached(&self, session: &Session) {
        let _ = session;
    }

    /// A lock was granted.
    fn granted(&self, grant: &Grant<'_>) {
        let _ = grant;
    }

    /// An attempt has ended without a grant: given up by its caller, or with an error.
    fn given_up(&self, path: &str, waited: Duration) {
        let _ = (path, waited);
    }

    /// A guard has gone, `lost` if it had lost its lock by then.
    fn released(&self, release: &Release<'_>) {
        let _ = release;
    }

    /// A lock has been held for longer than [`max_hold`](crate::Builder::max_hold), and is held still; or for longer than
    /// [`release_after`](crate::Builder::release_after), and is about to be taken away.
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
    /// From when the attempt had its place in the queue to the grant.
    pub waited: Duration,
    /// How many were in front when it joined; `None` if that was not seen.
    pub ahead: Option<usize>,
}

/// A guard that has gone.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Release<'a> {
    /// The path of its node.
    pub path: &'a str,
    /// Its token.
    pub token: FencingToken,
    /// Since the grant.
    pub held: Duration,
    /// Whether the lock was lost by then, as far as that was known.
    pub lost: Option<Lost>,
}

/// Counts, and how long waits and holds take.
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
    /// Each once.
    sessions: Mutex<Vec<Session>>,
}

impl Metrics {
    /// How many locks were granted.
    #[must_use]
    pub fn grants(&self) -> u64 {
        self.grants.load(Relaxed)
    }

    /// How many attempts ended without a grant.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up.load(Relaxed)
    }

    /// How many guards went that had lost their lock.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.losses.load(Relaxed)
    }

    /// How many locks were held for too long.
    #[must_use]
    pub fn alarms(&self) -> u64 {
        self.alarms.load(Relaxed)
    }

    /// How many were in front of the last one that was granted when that joined: the length of the queue.
    #[must_use]
    pub fn queue_length(&self) -> u64 {
        self.ahead.load(Relaxed)
    }

    /// How many nodes nobody owns any more although no server has confirmed that they are gone, in all sessions
    /// whose recipes tell this: see [`Session::orphans`](zk_client::Session::orphans). Others wait for them.
    #[must_use]
    pub fn orphans(&self) -> usize {
        self.sessions().iter().map(Session::orphans).sum()
    }

    /// Those that have not ended.
    fn sessions(&self) -> MutexGuard<'_, Vec<Session>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| !matches!(session.state(), SessionState::Ended(_)));
        sessions
    }

    /// How long those who were granted a lock waited.
    #[must_use]
    pub const fn waits(&self) -> &Histogram {
        &self.waits
    }

    /// How long locks were held.
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

/// An observer, or none.
#[derive(Clone, Default)]
pub(crate) struct Observers(pub(crate) Option<Arc<dyn LockObserver>>);

impl Observers {
    pub(crate) fn tell(&self, what: impl FnOnce(&dyn LockObserver)) {
        if let Some(observer) = &self.0 {
            what(&**observer);
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observers(1)" } else { "Observers(0)" })
    }
}
