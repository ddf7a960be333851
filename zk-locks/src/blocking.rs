//! Locks for threads without a runtime (feature `blocking`).
//!
//! A [`Session`] has a thread of its own, which keeps it alive whatever the threads that use it do: a critical
//! section that computes for a minute without a break does not cost the lock.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use zk_locks::{ConnectOptions, blocking::Session};
//!
//! let session = Session::connect(ConnectOptions::new("zk1:2181,zk2:2181")?)?;
//! let lock = session.lock("/locks/report");
//! let guard = lock.acquire_timeout(Duration::from_secs(30))?;
//! println!("writing under token {}", guard.token());
//! guard.release()?;
//! # Ok(())
//! # }
//! ```
//!
//! Calls that wait block the thread, wherever they are made; in asynchronous code that is a stall of everything
//! else on that thread, though never a panic or a deadlock with the session. Guards can be dropped anywhere.

use std::{
    fmt, io,
    ops::Deref,
    pin::pin,
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    time::timeout,
};
use zk_client::{Client, ConnectError, ConnectOptions};

use crate::error::{AcquireError, CheckError, Lost, ReleaseError};

/// How long a thread waits for the end of its session to be confirmed before it ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// A session that threads without a runtime can use. Cheap to clone; the session is closed when all clones,
/// locks and guards are gone.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use zk_locks::{ConnectOptions, Lock, blocking::Session};
///
/// let session = Session::connect(ConnectOptions::new("zk1:2181")?)?;
/// // What has no blocking form is waited for by `run`; a lock with settings is adopted.
/// let (report, _) = session.run(async { session.client().get("/report").await })?;
/// let lock = Lock::builder(session.client(), "/locks/report").max_waiters(10).build();
/// let guard = session.adopt(lock).acquire()?;
/// println!("{} bytes are there, read before token {}", report.len(), guard.token());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session {
    client: Client,
    driver: Arc<Driver>,
}

/// The thread that drives a session. It ends when this goes.
struct Driver {
    runtime: Handle,
    /// Sends by being dropped.
    _stop: oneshot::Sender<()>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Servers give none.
    #[error("{0}")]
    Connect(#[from] ConnectError),
    /// The system gives no thread for it.
    #[error("no thread for the session: {0}")]
    Thread(#[from] io::Error),
}

impl Session {
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
                // Nobody sends anything: it goes.
                let _ = stopped.await;
                // The last client goes with it, and closes the session.
                let _ = timeout(FAREWELL, session.ended()).await;
            });
        };
        thread::Builder::new().name("zk-session".to_owned()).spawn(drive)?;
        let gone = |_| io::Error::other("it has ended");
        let (client, runtime) = start.recv().map_err(gone)??;
        Ok(Self { client, driver: Arc::new(Driver { runtime, _stop: stop }) })
    }

    /// The client, for what has no blocking form: pass what is to be awaited to [`run`](Session::run).
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for a future: any that the client or a recipe of it returns.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        // For timers, which the session's thread drives.
        let _entered = self.driver.runtime.enter();
        let mut future = pin!(future);
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            // Returns at once if it was woken meanwhile.
            thread::park();
        }
    }

    /// An exclusive lock, with default settings.
    #[must_use]
    pub fn lock(&self, path: &str) -> Lock {
        self.adopt(crate::Lock::new(&self.client, path))
    }

    /// A lock of this session's [client](Session::client), with whatever settings.
    #[must_use]
    pub fn adopt(&self, lock: crate::Lock) -> Lock {
        Lock { session: self.clone(), lock }
    }

    fn guarded(&self, guard: crate::Guard) -> Guard {
        Guard { guard, session: self.clone() }
    }
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// An exclusive lock: see [`zk_locks::Lock`](crate::Lock).
///
/// ```
/// # fn example(session: zk_locks::blocking::Session) -> Result<(), Box<dyn std::error::Error>> {
/// let lock = session.lock("/locks/report");
/// match lock.try_acquire()? {
///     Some(guard) => guard.release()?,
///     None => println!("somebody else is at it"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    session: Session,
    lock: crate::Lock,
}

impl Lock {
    /// Waits for the lock, behind all who asked before.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn acquire(&self) -> Result<Guard, AcquireError> {
        self.session.run(self.lock.acquire()).map(|guard| self.session.guarded(guard))
    }

    /// As [`acquire`](Lock::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn acquire_timeout(&self, time: Duration) -> Result<Guard, AcquireError> {
        self.session.run(self.lock.acquire_timeout(time)).map(|guard| self.session.guarded(guard))
    }

    /// Takes the lock if nobody has it and nobody waits for it.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let guard = self.session.run(self.lock.try_acquire())?;
        Ok(guard.map(|guard| self.session.guarded(guard)))
    }
}

/// A lock that is held until this is released or dropped: what a [`zk_locks::Guard`](crate::Guard) knows
/// without waiting, it knows too.
///
/// ```
/// # use std::time::Duration;
/// # fn example(lock: zk_locks::blocking::Lock) -> Result<(), Box<dyn std::error::Error>> {
/// let guard = lock.acquire_timeout(Duration::from_secs(30))?;
/// for page in 0..100 {
///     if let Some(lost) = guard.lost_within(Duration::ZERO) {
///         return Err(lost.into());
///     }
///     println!("page {page} under token {}", guard.token());
/// }
/// guard.release()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub struct Guard {
    // Before the session, which ends with its last user.
    guard: crate::Guard,
    session: Session,
}

impl Deref for Guard {
    type Target = crate::Guard;
    fn deref(&self) -> &crate::Guard {
        &self.guard
    }
}

impl Guard {
    /// Asks the servers whether the lock is held: see [`zk_locks::Guard::check`](crate::Guard::check).
    ///
    /// # Errors
    /// [`CheckError`].
    pub fn check(&self) -> Result<(), CheckError> {
        self.session.run(self.guard.check())
    }

    /// Waits for the loss of the lock for at most so long; `None` if it is still held then.
    #[must_use]
    pub fn lost_within(&self, time: Duration) -> Option<Lost> {
        self.session.run(async { timeout(time, self.guard.lost()).await.ok() })
    }

    /// Releases the lock, and waits until the next one can have it.
    ///
    /// # Errors
    /// [`ReleaseError`]. The lock is released in any case.
    pub fn release(self) -> Result<(), ReleaseError> {
        let Self { guard, session } = self;
        session.run(guard.release())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("client", &self.client).finish_non_exhaustive()
    }
}
