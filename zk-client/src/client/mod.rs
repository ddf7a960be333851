//! The client: one documented method for each operation.
//!
//! | module | concern |
//! |---|---|
//! | `nodes` | what can be done with nodes |
//! | `servers` | watches for good; what servers know of the session and of themselves |

mod nodes;
mod servers;

use std::{
    any::Any,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{oneshot, watch};
use tracing::Instrument as _;
use zk_proto::{
    AclList, SessionId, Time, Zxid,
    path::PathError,
    session::{Credentials, Session as Machine},
};

use crate::{
    call::{Command, Handle, Target},
    call_options::CallOptions,
    cleanup::Cleanup,
    clock::Clock,
    driver::{Driver, Parts},
    error::{Cause, ConnectError, ReadError, Rejection, SessionEnd},
    frames::Frames,
    ids::Ids,
    inbox::inbox,
    level::Level,
    operations::Sync,
    options::{ConnectOptions, SessionTask},
    session::{Lease, LeaseKeeper, Published, Session, SessionState},
    stats::{Counters, Stats},
    sweep::Unconfirmed,
};

/// A client of one session. Cheap to clone; all clones share the session.
///
/// Requests are carried out in the order of their submission, each client's and across clones as far as
/// they are ordered at all. Every operation is a builder: await it, or
/// [`submit`](crate::Get::submit) it to have it under way now and await the result later.
///
/// When the last clone is dropped, and with it all [`OwnedNode`](crate::OwnedNode)s, the session is closed
/// in the background; [`close`](Client::close) waits for that.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// use zk_client::Client;
///
/// let zk = Client::connect(&server.connect_string()).await?;
/// // A clone for each task: one session, one connection.
/// let writer = tokio::spawn({
///     let zk = zk.clone();
///     async move { zk.create("/greeting", b"hello").await }
/// });
/// writer.await??;
/// assert_eq!(zk.get("/greeting").await?.0, "hello");
/// zk.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) handle: Handle,
    session: Session,
    spawn: Spawn,
    extensions: Extensions,
}

/// What is kept for those who build on the session: one value of a type.
#[derive(Clone, Default)]
struct Extensions(Arc<Mutex<Vec<Arc<dyn Any + Send + std::marker::Sync>>>>);

impl std::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Extensions")
    }
}

/// Who runs tasks.
#[derive(Clone)]
struct Spawn(Arc<dyn Fn(SessionTask) + Send + std::marker::Sync>);

impl Spawn {
    fn new(chosen: Option<Arc<dyn Fn(SessionTask) + Send + std::marker::Sync>>) -> Self {
        Self(chosen.unwrap_or_else(|| {
            let runtime = tokio::runtime::Handle::current();
            Arc::new(move |task| drop(runtime.spawn(task)))
        }))
    }

    fn run(&self, task: SessionTask) {
        (self.0)(task);
    }
}

impl std::fmt::Debug for Spawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Spawn")
    }
}

impl Client {
    /// Connects with default options: see [`ConnectOptions`].
    ///
    /// # Errors
    /// [`ConnectError`] if the string makes no sense or if no session can be had.
    pub async fn connect(servers: &str) -> Result<Self, ConnectError> {
        ConnectOptions::new(servers)?.connect().await
    }

    pub(crate) async fn start(options: ConnectOptions) -> Result<Self, ConnectError> {
        let ConnectOptions { config, chroot, connect_deadline, connector, sasl, clock, .. } =
            options;
        let ConnectOptions { seed, spawn, call: options, acl, watch_items_max, observer, .. } =
            options;
        if let zk_proto::session::Lease::Margin(margin) = config.lease {
            if margin >= config.session_timeout {
                return Err(ConnectError::LeaseMargin { margin, timeout: config.session_timeout });
            }
        }
        let counters = Arc::new(Counters::new(observer));
        let ids = Arc::new(seed.map_or(Ids::Random, Ids::seeded));
        let seed = match seed {
            Some(seed) => seed,
            None => getrandom::u64().map_err(|error| ConnectError::Entropy(error.to_string()))?,
        };
        let first = Published {
            state: SessionState::Connecting,
            epoch: 0,
            id: SessionId(0),
            timeout: config.session_timeout,
            close_confirmed: false,
        };
        let (level, frames) = (Arc::new(Level::default()), Arc::new(Frames::default()));
        let (commands, inbox) = inbox(config.requests_max, config.request_bytes_max);
        let (publisher, published) = watch::channel(first);
        let (failure, last_failure) = watch::channel(None);
        let (lease, sweeps) = (Arc::new(Lease::default()), Arc::new(Unconfirmed::default()));
        let driver = Driver::new(Parts {
            lease_by: config.lease,
            close_timeout: config.close_timeout,
            session: Machine::new(config, seed, Time::new(clock.now())),
            weak_commands: commands.downgrade(),
            inbox,
            connector,
            sasl,
            clock: clock.clone(),
            published: publisher,
            lease: lease.clone(),
            sweeps: sweeps.clone(),
            level: level.clone(),
            last_failure: failure,
            counters: counters.clone(),
            frames: frames.clone(),
        });
        let span = tracing::info_span!(parent: None, "zk.session");
        let task = driver.run().instrument(span);
        let spawn = Spawn::new(spawn);
        spawn.run(Box::pin(task));

        let session = Session::new(published.clone(), lease, sweeps, clock);
        let client = Self {
            handle: Handle {
                commands,
                published,
                chroot,
                level,
                ids,
                counters: counters.clone(),
                frames: frames.clone(),
                options,
                told: options,
                acl,
                watch_items_max,
                cleanup: None,
                held: None,
            },
            session,
            spawn,
            extensions: Extensions::default(),
        };
        // Dropping the client, here or with the future, ends the driver.
        let connected = client.connected();
        let last = || ConnectError::TimedOut { last: last_failure.borrow().clone() };
        match connect_deadline {
            Some(deadline) => {
                tokio::time::timeout(deadline, connected).await.map_err(|_| last())??;
            }
            None => connected.await?,
        }
        Ok(client)
    }

    async fn connected(&self) -> Result<(), ConnectError> {
        let mut session = self.session();
        let mut state = session.state();
        loop {
            match state {
                SessionState::Connected { .. } => return Ok(()),
                SessionState::Ended(end) => return Err(ConnectError::SessionEnded(end)),
                SessionState::Connecting | SessionState::Disconnected | SessionState::Closing => {}
            }
            state = session.changed().await;
        }
    }

    /// A view of the session: where it stands, and how long it is sure to last.
    #[must_use]
    pub fn session(&self) -> Session {
        self.session.renewed()
    }

    /// A client of the same session whose requests are made like this unless a single one chooses otherwise.
    pub fn with(&self, options: CallOptions) -> Self {
        let mut client = self.clone();
        (client.handle.options, client.handle.told) = (options, options);
        client
    }

    /// A client of the same session whose requests end only when they are answered or the session ends: whatever
    /// this one was told, they have no timeout, do not fail fast, are not held back by a [cork](Client::cork), are
    /// asked again when a server [throttles](CallOptions::retry_throttled) them, and wait in turn for
    /// [room](crate::ConnectOptions::requests_max) also where they are submitted.
    ///
    /// For recipes and other work that goes on for as long as the session lives, and is bounded as a whole, as by
    /// `tokio::time::timeout`.
    pub fn patient(&self) -> Self {
        let mut client = self.clone();
        client.handle.options = CallOptions::patient();
        client.handle.held = None;
        client
    }

    /// The clock that the session's lease is measured with: see [`ConnectOptions::clock`].
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.session.clock()
    }

    const fn target(&self) -> Target<'_> {
        Target::new(&self.handle)
    }

    /// Who may do what with nodes that are created without a list of their own: see [`ConnectOptions::default_acl`].
    #[must_use]
    pub const fn default_acl(&self) -> &AclList {
        &self.handle.acl
    }

    /// What the session's clients have done so far, all of them together.
    ///
    /// ```no_run
    /// # fn example(zk: zk_client::Client) {
    /// let stats = zk.stats();
    /// let typical = stats.latency().quantile(0.5);
    /// println!("{} answers, half of them within {typical:?}; {} connections", stats.answered, stats.connects);
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.handle.counters.snapshot()
    }

    /// A client of the same session whose paths are relative to `path`. The node is not created.
    ///
    /// # Errors
    /// [`PathError`] if `path` is not a valid path.
    pub fn chrooted(&self, path: &str) -> Result<Self, PathError> {
        let mut client = self.clone();
        client.handle.chroot = self.handle.chroot.below(path)?;
        Ok(client)
    }

    /// Whether this and the other client are of one session, and mean the same by a path.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let Handle { commands, chroot, .. } = &self.handle;
        commands.is_like(&other.handle.commands) && *chroot == other.handle.chroot
    }

    /// Has a task run where the session's own task runs: by default on the runtime on which the client was
    /// connected, from wherever this is called. For what goes on beside the work with a session, such as
    /// watching over something.
    ///
    /// A task that keeps a client keeps the session alive.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn.run(Box::pin(task));
    }

    /// Has the session's [lease](Session::lease_left) confirmed by the leader until the returned value is dropped: for
    /// those who hold something that is none of this crate's [nodes](crate::OwnedNode), which see to it
    /// themselves.
    ///
    /// What has been confirmed so far counts, such as by the answer to a create. It is 0 if that was too long ago, until
    /// the leader is heard of.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::CreateMode;
    ///
    /// zk.create("/seat", b"").mode(CreateMode::Ephemeral).await?;
    /// let kept = zk.keep_lease();
    /// // Nobody else can have the seat for so long, whatever happens.
    /// assert!(!zk.session().lease_left().is_zero());
    /// drop(kept);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_lease(&self) -> LeaseKeeper {
        LeaseKeeper::new(self.session.lease())
    }

    /// Waits until servers refuse to delete a node of this session that nobody owns any more; resolves at once if they do
    /// already. It stays until they let it go: see [`Session::orphans`].
    pub async fn orphaned(&self, path: &str) -> Rejection {
        match self.handle.chroot.resolve(path, zk_proto::path::Naming::Exact) {
            Ok(absolute) => self.session.sweeps().until_refused(&absolute).await.into(),
            // There is none.
            Err(_) => std::future::pending().await,
        }
    }

    /// The value of this type that all clients of the session share, made when it is first asked for: where those
    /// who build on a session, such as recipes, keep what they have to know of all of it.
    ///
    /// It goes with the last of the clients. One that keeps a client keeps the session alive.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// #[derive(Default)]
    /// struct Turns(AtomicU64);
    ///
    /// zk.extension::<Turns>().0.fetch_add(1, Ordering::Relaxed);
    /// assert_eq!(zk.clone().extension::<Turns>().0.load(Ordering::Relaxed), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn extension<T: Default + Send + std::marker::Sync + 'static>(&self) -> Arc<T> {
        let mut known = self.extensions.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A clone of the one that is asked for alone: it costs an update of its count.
        let found = known.iter().find(|value| value.is::<T>()).cloned();
        if let Some(found) = found.and_then(|value| value.downcast().ok()) {
            return found;
        }
        let made = Arc::new(T::default());
        known.push(made.clone());
        made
    }

    /// A client of the same session for giving back what nobody but its user knows of, such as a node that was
    /// made by other means than a [protected create](crate::Create::protected). Until it and all its clones have
    /// gone, nobody [leaves](Client::detach) the session, and what is submitted by it is carried out although
    /// somebody wants to.
    ///
    /// For [tasks](Client::spawn) that give something back when its owner has gone: made where the owner goes, and
    /// handed to the task, it leaves no moment in between.
    #[must_use = "it is dropped when all is given back"]
    pub fn for_cleanup(&self) -> Self {
        let mut client = self.clone();
        client.handle.cleanup = Some(Cleanup::begin(&self.handle.commands));
        client
    }

    /// A new id that nobody else has, nor ever will: a random (version 4) UUID in its canonical form. For names
    /// and contents by which one's own node is told from others'.
    ///
    /// # Errors
    /// [`Cause::InvalidArgument`] if the system has no randomness to give.
    pub fn unique_id(&self) -> Result<String, Cause> {
        self.handle.ids.next()
    }

    /// A client of the same session that holds its submissions back until it is dropped, for them to
    /// leave together in one write: with nobody else's in between, and with one wake-up for all.
    #[must_use = "dropping it lets go"]
    pub fn cork(&self) -> Cork {
        let mut client = self.clone();
        client.handle.held = Some(Arc::new(Mutex::new(Some(Vec::new()))));
        Cork(client)
    }

    /// Waits until no write of this session that is in doubt can happen any more: until the same session
    /// is connected (again) and a `sync` sent after that has been answered. A read submitted after this has
    /// returned is conclusive about them.
    ///
    /// # Errors
    /// [`ReadError`] if the session ends before that, or if the server does not do `sync` (a read-only one
    /// does not).
    pub async fn settle(&self) -> Result<Zxid, ReadError> {
        Sync::new(self.target(), "/").for_zxid().await
    }

    /// Ends the session: its ephemeral nodes go, its watches resolve with [`SessionEnd::Closed`], and
    /// nothing can be submitted any more, by any clone. Requests submitted before are sent first. Before a
    /// server hears of it the state is [`Closing`](SessionState::Closing), and no lock of the session counts
    /// as held any more.
    ///
    /// This is what to wait for at the end of a program: it takes along all that is under way in the background. Locks whose
    /// guards have been dropped are free when it returns, as are nodes whose [owners](crate::OwnedNode) have gone, and
    /// those are waited for who [give something back](Client::for_cleanup). Where a program just ends, nothing of that
    /// may have left it, and locks stay until the session expires.
    ///
    /// Returns once a server has confirmed, or after two seconds if none can be reached; the session then
    /// ends by itself when it expires. A connection that is lost meanwhile is made again. Closing twice is fine.
    /// Dropping the future does not stop it once it has been polled.
    ///
    /// # Errors
    /// [`CloseError`] if no server has confirmed.
    pub async fn close(&self) -> Result<(), CloseError> {
        self.end(None).await
    }

    /// As [`close`](Client::close), for as long as this if no server can be reached. After the
    /// [session timeout](Session::timeout) there is nothing left to be closed.
    ///
    /// # Errors
    /// [`CloseError`] if no server has confirmed.
    pub async fn close_within(&self, limit: Duration) -> Result<(), CloseError> {
        self.end(Some(limit)).await
    }

    async fn end(&self, limit: Option<Duration>) -> Result<(), CloseError> {
        let (done, closed) = oneshot::channel();
        if self.handle.commands.send(Command::Close(done, limit)).is_ok() {
            // Whatever it says, the session ends.
            let _ = closed.await;
        }
        match self.session.ended().await {
            SessionEnd::Closed if self.session.is_close_confirmed() => Ok(()),
            SessionEnd::Closed => Err(CloseError::Unconfirmed),
            end => Err(CloseError::Ended(end)),
        }
    }

    /// Leaves the session without ending it, for another client to [resume](ConnectOptions::resume): its
    /// ephemeral nodes stay as long as servers keep it. `None` if there is no session to leave.
    ///
    /// Ends all clones: what is submitted from now on is refused, and what is under way ends as if the session
    /// were closed, though what was sent may still be carried out. Only what must not be left to nobody is
    /// done first, however long that takes: [protected creates](crate::Create::protected) come to their end,
    /// and nodes whose [owners](crate::OwnedNode) have gone are deleted, such as those of locks that were
    /// dropped (unless servers refuse to), and whoever has something to [give back](Client::for_cleanup) does so.
    ///
    /// Dropping the future before it is ready is dropping the client: the session is closed.
    pub async fn detach(mut self) -> Option<Credentials> {
        let (credentials, left) = oneshot::channel();
        // It does not wait for itself.
        self.handle.cleanup = None;
        self.handle.commands.send(Command::Detach(credentials)).ok()?;
        left.await.ok().flatten()
    }
}

/// Why a close was not confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseError {
    /// The session had ended otherwise.
    #[error("{0}")]
    Ended(SessionEnd),
    /// No server has confirmed; the session ends when it expires, if it has not been closed before.
    #[error("no server has confirmed the close")]
    Unconfirmed,
}

/// A [`Client`] that holds its submissions back: see [`Client::cork`].
#[derive(Debug)]
pub struct Cork(Client);

impl Deref for Cork {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Drop for Cork {
    fn drop(&mut self) {
        self.0.handle.send_held();
    }
}
