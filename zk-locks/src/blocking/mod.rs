//! Locks, and all other recipes, for threads without a runtime (feature `blocking`).
//!
//! A [`BlockingSession`] has a thread of its own, which keeps the session alive whatever its users do: a critical
//! section that computes for a minute without a break does not cost the lock.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use zk_locks::{ConnectOptions, blocking::BlockingSession};
//!
//! let session = BlockingSession::connect(ConnectOptions::new("zk1:2181,zk2:2181")?)?;
//! let lock = session.lock("/locks/report");
//! let guard = lock.acquire_timeout(Duration::from_secs(30))?;
//! println!("writing under token {}", guard.token());
//! guard.release()?;
//! # Ok(())
//! # }
//! ```
//!
//! Waiting calls block the thread, wherever they are made. In asynchronous code that stalls everything else on the
//! thread, and nothing else: only on the session's own thread, where tasks of its [client](zk_client::Client::spawn) run,
//! they panic, since they would wait for themselves. Guards can be dropped anywhere.

use std::{
    fmt, io,
    ops::Deref,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread, ThreadId},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::unconstrained,
};
use zk_client::{Client, ConnectError, ConnectOptions};

mod recipes;

/// How long a future stands still at most that has yielded on a thread of another runtime.
const YIELDED: Duration = Duration::from_millis(5);

/// A session for threads without a runtime. Cheap to clone; the session is closed when all clones, locks and guards are
/// dropped, and with them whatever else has its client.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use zk_locks::{ConnectOptions, Lock, blocking::BlockingSession};
///
/// let session = BlockingSession::connect(ConnectOptions::new("zk1:2181")?)?;
/// // What has no blocking form is waited for by `run`; a lock with settings is adopted.
/// let (report, _) = session.run(async { session.client().get("/report").await })?;
/// let lock = Lock::builder(session.client(), "/locks/report").max_waiters(10).build();
/// let guard = session.adopt(lock).acquire()?;
/// println!("{} bytes are there, read before token {}", report.len(), guard.token());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct BlockingSession {
    client: Client,
    driver: Arc<Driver>,
}

/// The thread that drives a session. It ends when this and all clients are dropped.
struct Driver {
    runtime: Handle,
    thread: ThreadId,
    /// Dropping it has the thread end with the session.
    _stop: oneshot::Sender<()>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The servers granted none.
    #[error("{0}")]
    Connect(#[from] ConnectError),
    /// The system could not start a thread for it.
    #[error("no thread for the session: {0}")]
    Thread(#[from] io::Error),
}

impl BlockingSession {
    /// Connects, on a new thread, and waits for the session.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn connect(options: ConnectOptions) -> Result<Self, SessionError> {
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = mpsc::channel();
        let drive = move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(SessionError::from(error)))),
            };
            runtime.block_on(async move {
                let client = match options.connect().await {
                    Ok(client) => client,
                    Err(error) => return drop(started.send(Err(SessionError::from(error)))),
                };
                let session = client.session();
                if started.send(Ok((client, Handle::current()))).is_err() {
                    return;
                }
                // Resolves when the sender is dropped.
                let _ = stopped.await;
                // The last client is dropped now, which closes the session, unless a value that is not `Blocking` has one.
                session.ended().await;
            });
        };
        let driving = thread::Builder::new().name("zk-session".to_owned()).spawn(drive)?;
        let thread = driving.thread().id();
        let gone = |_| io::Error::other("it has ended");
        let (client, runtime) = start.recv().map_err(gone)??;
        Ok(Self { client, driver: Arc::new(Driver { runtime, thread, _stop: stop }) })
    }

    /// The client, for operations without a blocking form: pass their futures to [`run`](BlockingSession::run).
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for any future of the client or of its recipes.
    ///
    /// Tasks that it starts run as long as this session and its clones: keep one as long as a
    /// [`PersistentNode`](crate::PersistentNode), which has a session of its own.
    ///
    /// # Panics
    /// If it would have to wait on the session's own thread, on which nothing could come then.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        let is_asynchronous = Handle::try_current().is_ok();
        // For timers, which the session's thread drives.
        let _entered = self.driver.runtime.enter();
        // What a task of the calling code may do in one go has nothing to do with this.
        let mut future = pin!(unconstrained(future));
        let unpark = Arc::new(Unpark { thread: thread::current(), woken: AtomicBool::new(false) });
        let waker = Waker::from(unpark.clone());
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            assert!(
                thread::current().id() != self.driver.thread,
                "a blocking call on the session's own thread waits for itself"
            );
            // What else parks on this thread, such as a blocking call within the future, may have been unparked for this.
            while !unpark.woken.swap(false, Ordering::Acquire) {
                if is_asynchronous {
                    // `yield_now` leaves waking to the runtime of this thread, which waits for us.
                    thread::park_timeout(YIELDED);
                    break;
                }
                thread::park();
            }
        }
    }

    /// An exclusive lock with default settings. Short for [`adopt`](Self::adopt), which works for all recipes.
    pub fn lock(&self, path: &str) -> Blocking<crate::Lock> {
        self.adopt(crate::Lock::new(&self.client, path))
    }

    /// Wraps a recipe of this session's [client](BlockingSession::client), or a value a recipe has returned, in
    /// blocking methods.
    pub fn adopt<T>(&self, inner: T) -> Blocking<T> {
        Blocking { inner, session: self.clone() }
    }
}

/// Unparks a waiting thread.
struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A recipe, or a value it returned, for threads: asynchronous methods block here, under the same names. Methods that
/// need no waiting and only look at the value are reached by dereferencing; those that change it or use it up, such as
/// [`carry_on`](crate::DurableGuard::carry_on) and [`share`](crate::Guard::share), need what is [within](Self::into_inner). Get
/// one from [`BlockingSession::adopt`].
///
/// | | blocking methods |
/// |---|---|
/// | locks of all kinds, [`Semaphore`](crate::Semaphore), [`MultiLock`](crate::MultiLock) | `acquire`, `acquire_timeout`, `try_acquire` |
/// | [`RwLock`](crate::RwLock) | `read`, `write`, with `_timeout` and `try_`; `downgrade`, `try_upgrade` of their guards |
/// | guards of all kinds | `check`, `lost_within`, `release` |
/// | [`Election`](crate::Election), [`Group`](crate::Group) | `campaign`, `latch`; `join`, `members` |
/// | [`Barrier`](crate::Barrier), [`DoubleBarrier`](crate::DoubleBarrier) | `set`, `remove`, `wait`; `enter`, `leave` |
/// | [`Follow`](crate::Follow) | `next` |
///
/// ```
/// # use std::time::Duration;
/// # fn example(session: zk_locks::blocking::BlockingSession) -> Result<(), Box<dyn std::error::Error>> {
/// use zk_locks::{Group, RwLock};
///
/// let catalog = session.adopt(RwLock::new(session.client(), "/locks/catalog"));
/// let guard = catalog.read_timeout(Duration::from_secs(30))?;
/// for page in 0..100 {
///     if let Some(lost) = guard.lost_within(Duration::ZERO) {
///         return Err(lost.into());
///     }
///     println!("page {page} under token {}", guard.token());
/// }
/// guard.release()?;
///
/// let group = session.adopt(Group::new(session.client(), "/groups/workers"));
/// let _member = group.join(b"10.0.0.7:8080")?;
/// println!("{} workers", group.members()?.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "dropping it gives back what is held"]
pub struct Blocking<T> {
    // Dropped before the session, which ends with its last user.
    inner: T,
    session: BlockingSession,
}

impl<T> Deref for Blocking<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> Blocking<T> {
    /// Returns the asynchronous value. The session's thread goes on as long as that has its client.
    pub fn into_inner(self) -> T {
        self.inner
    }

    fn adopted<G, E>(&self, work: impl Future<Output = Result<G, E>>) -> Result<Blocking<G>, E> {
        self.session.run(work).map(|guard| self.session.adopt(guard))
    }
}

impl fmt::Debug for BlockingSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingSession").field("client", &self.client).finish_non_exhaustive()
    }
}
