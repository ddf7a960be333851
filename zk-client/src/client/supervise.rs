//! Running a service under a session, and again under a new one when the session ends.

use std::{
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};

use crate::{
    carry::{published::SessionState, session::Session},
    client::ConnectOptions,
    error::{ConnectError, SessionEnd},
    ids::mixed,
    request::client::Client,
};

/// The pause after a first failure: long enough to spread out a fleet that lost its sessions together.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest pause, and how long a session must have lasted for the pauses to start over.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Runs a service under a session, and again under a new one when the session ends.
///
/// A client never gets another session, because the contents of the old one are gone: ephemeral nodes, locks,
/// memberships, watches. So a service that must outlive its session is written as a function of the session: it is
/// given a connected [`Client`], registers whatever it needs, and works until it is done or the session ends. It is
/// called again with the next session, and registers everything again.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use zk_client::{ConnectOptions, CreateMode, Supervise};
///
/// let options = ConnectOptions::new("zk1:2181,zk2:2181/app")?;
/// Supervise::new(options)
///     .run(|zk| async move {
///         let register = zk.create("/workers/worker-", b"10.0.0.7:8080");
///         let _here = register.mode(CreateMode::EphemeralSequential).protected().await?;
///         let mut changes = zk.watch("/jobs").recursive().await?;
///         while let Some(change) = changes.next().await {
///             println!("{change:?}");
///         }
///         Ok::<(), zk_client::Error>(())
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// # What ends a run, and what follows
///
/// | event | result |
/// |---|---|
/// | the service returns `Ok` | the session is closed, and [`run`](Self::run) returns the value |
/// | it returns `Err` | the session is closed, and the service is run again after a pause |
/// | the session expires | the service is dropped, or given a [`grace`](Self::grace) first, and is run again after a pause. A late result counts if it is `Ok` |
/// | no session can be established in time | another attempt after a pause |
/// | the credentials are refused, or a clone of the client was closed | `run` returns that |
/// | the service panics | so does `run`; the session is closed in the background |
///
/// [`stop_if`](Self::stop_if) overrides this: by default an error that no repetition mends, such as an invalid path, is
/// met again and again. It also is the place to report what a service has failed with: an error need not be printable, and so
/// is not logged. Interruptions themselves are logged, with `tracing`, at the level of warnings.
///
/// The service is dropped at an `await`: work without one, such as a long computation, continues without its session,
/// as in any dropped future. A lost *connection* ends nothing; locks report for themselves when they are not certain
/// any more.
///
/// # Between two sessions
///
/// A session that the service leaves is closed before the next one is created, so that fixed names are free again. When
/// the servers expire a session, they delete its nodes. But a client that is cut off considers its session over by its
/// own clock; then servers may show the old nodes for a moment longer. Unique names, as those of protected creates and
/// recipes, never collide with them.
///
/// Pauses double from [`pause`](Self::pause) to [`pause_max`](Self::pause_max), and each is shortened at random by up
/// to a half. They start over after a session that has lasted longer than the longest pause.
///
/// # Dropping
///
/// Everything runs in the future that `run` returns, in the task that awaits it. Dropping the future drops the service,
/// and then the session, which is closed in the background; [`run_until`](Self::run_until) waits for the close.
#[must_use = "nothing happens until it is run"]
pub struct Supervise<E> {
    options: ConnectOptions,
    pause: Duration,
    pause_max: Duration,
    grace: Duration,
    /// Replaces [`Interruption::is_lasting`].
    stop_if: Option<StopIf<E>>,
}

/// Decides which interruptions end the run.
type StopIf<E> = Box<dyn FnMut(&Interruption<E>) -> bool + Send>;

/// Why a service is not running: the argument of [`Supervise::stop_if`].
///
/// ```
/// use zk_client::{Interruption, SessionEnd};
///
/// fn needs_a_person<E>(interruption: &Interruption<E>) -> bool {
///     matches!(interruption, Interruption::SessionEnded(SessionEnd::AuthFailed))
/// }
/// assert!(!needs_a_person(&Interruption::<()>::SessionEnded(SessionEnd::Expired)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Interruption<E> {
    /// No session could be established.
    #[error("no session: {0}")]
    NoSession(ConnectError),
    /// The session has ended. The service's own result, if any, is discarded: also an error that it returned shortly before
    /// the end was known, if servers turn out to have ended the session by themselves.
    #[error("{0}")]
    SessionEnded(SessionEnd),
    /// The service returned an error although its session had not ended.
    #[error("service failed: {0}")]
    Failed(E),
}

impl<E> Supervise<E> {
    /// Creates sessions with these options. [Credentials](ConnectOptions::resume) are used for the first one only.
    pub fn new(options: ConnectOptions) -> Self {
        Self { options, pause: PAUSE, pause_max: PAUSE_MAX, grace: Duration::ZERO, stop_if: None }
    }

    /// Sets the pause after a first failure. Default 200 ms.
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sets the longest pause between two runs. Default 30 s.
    pub const fn pause_max(mut self, pause: Duration) -> Self {
        self.pause_max = pause;
        self
    }

    /// Sets how long the service may continue after its session has ended, for example to save its progress. Default:
    /// not at all.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Decides which interruptions end the run, in place of [`Interruption::is_lasting`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let options = zk_client::ConnectOptions::new(&server.connect_string())?;
    /// use zk_client::{Interruption, Supervise};
    ///
    /// // An error of the service is final, as after `?` in `main`.
    /// let ended = Supervise::new(options)
    ///     .stop_if(|why| why.is_lasting() || matches!(why, Interruption::Failed(_)))
    ///     .run(|zk| async move { zk.get("/config").await.map(|(config, _)| config) })
    ///     .await;
    /// assert!(matches!(ended, Err(Interruption::Failed(_))), "there is none");
    /// # Ok(())
    /// # }
    /// ```
    pub fn stop_if(mut self, stop: impl FnMut(&Interruption<E>) -> bool + Send + 'static) -> Self {
        self.stop_if = Some(Box::new(stop));
        self
    }

    /// Runs the service until it returns `Ok`.
    ///
    /// The service may be an `async fn`, an `async |zk|` closure, or a closure that returns an `async` block. Only the
    /// last can change or own what it captures, in front of the block; the compiler says of others that they do not
    /// implement `FnMut`. A run that is to be spawned owns all of it:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let options = zk_client::ConnectOptions::new(&server.connect_string())?;
    /// use std::sync::{
    ///     Arc,
    ///     atomic::{AtomicUsize, Ordering},
    /// };
    /// use zk_client::{Error, Supervise};
    ///
    /// let (mut runs, done) = (0, Arc::new(AtomicUsize::new(0)));
    /// let counted = done.clone();
    /// let service = move |zk: zk_client::Client| {
    ///     runs += 1;
    ///     let counted = counted.clone();
    ///     async move {
    ///         println!("run {runs}, in session {:?}", zk.session().id());
    ///         counted.fetch_add(1, Ordering::Relaxed);
    ///         Ok::<(), Error>(())
    ///     }
    /// };
    /// tokio::spawn(Supervise::new(options).run(service)).await??;
    /// assert_eq!(done.load(Ordering::Relaxed), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The [`Interruption`] that [ends it](Self::stop_if).
    pub async fn run<F, T>(self, service: impl FnMut(Client) -> F) -> Result<T, Interruption<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.rounds(service, &Progress::default()).await
    }

    /// As [`run`](Self::run), until `stopped` completes, with whatever result: then the service is dropped, at
    /// whichever `await` it is, and the session [closed](Client::close). Resolves to `None` in that case, unless the service
    /// was done already. To stop at Ctrl-C, pass `tokio::signal::ctrl_c()`.
    ///
    /// The close waits for a server's confirmation, for 2 s at most.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let options = zk_client::ConnectOptions::new(&server.connect_string())?;
    /// use zk_client::{CreateMode, Supervise};
    ///
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let mut stop = Some(stop);
    /// let service = |zk: zk_client::Client| {
    ///     let stop = stop.take();
    ///     async move {
    ///         zk.create("/here", b"").mode(CreateMode::Ephemeral).await?;
    ///         drop(stop); // In a real program the signal handler does this.
    ///         std::future::pending::<Result<(), zk_client::Error>>().await
    ///     }
    /// };
    /// let ended = Supervise::new(options).run_until(service, stopped).await?;
    /// assert_eq!(ended, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until<F, T>(
        self,
        service: impl FnMut(Client) -> F,
        stopped: impl Future,
    ) -> Result<Option<T>, Interruption<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let progress = Progress::default();
        let ended = {
            let rounds = pin!(self.rounds(service, &progress));
            let stopped = async {
                stopped.await;
                if progress.is_done.load(Ordering::Relaxed) {
                    pending::<()>().await;
                }
            };
            unless(stopped, rounds).await
        };
        let client = progress.client.into_inner().unwrap_or_else(PoisonError::into_inner);
        match (ended, client) {
            (Ok(ended), _) => ended.map(Some),
            (Err(_), Some(client)) => {
                close(&client).await;
                Ok(None)
            }
            (Err(_), None) => Ok(None),
        }
    }

    /// Shows the client whose session is to be closed if this is dropped.
    async fn rounds<F, T>(
        mut self,
        mut service: impl FnMut(Client) -> F,
        progress: &Progress,
    ) -> Result<T, Interruption<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let keep = |client: Option<Client>| {
            *progress.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
        };
        let mut failures = 0;
        loop {
            let (interruption, lasted) = match self.connect(failures).await {
                Ok(client) => {
                    keep(Some(client.clone()));
                    let (ended, lasted) = round(&client, service(client.clone()), self.grace).await;
                    progress.is_done.store(ended.is_ok(), Ordering::Relaxed);
                    close(&client).await;
                    keep(None);
                    match (ended, client.session().end()) {
                        (Ok(done), _) => return Ok(done),
                        // The service may hear of it before the client does: in an answer, or as a lost connection.
                        (
                            Err(Interruption::Failed(_)),
                            Some(end @ (SessionEnd::Expired | SessionEnd::AuthFailed)),
                        ) => (Interruption::SessionEnded(end), lasted),
                        (Err(interruption), _) => (interruption, lasted),
                    }
                }
                Err(error) => (Interruption::NoSession(error), Duration::ZERO),
            };
            let stops = match &mut self.stop_if {
                Some(stop_if) => stop_if(&interruption),
                None => interruption.is_lasting(),
            };
            if stops {
                return Err(interruption);
            }
            failures = if lasted > self.pause_max { 1 } else { failures + 1 };
            let pause = self.pause_behind(failures);
            tracing::warn!(why = interruption.kind(), failures, ?pause, "service interrupted");
            sleep(pause).await;
        }
    }

    /// Connects with a session of its own for each run.
    async fn connect(&mut self, failures: u32) -> Result<Client, ConnectError> {
        let connected = self.options.clone().connect().await;
        if !matches!(connected, Err(ConnectError::TimedOut { .. })) {
            self.options.config.resume = None;
        }
        // Sessions with the same seed would take each other's nodes for their own.
        self.options.seed = self.options.seed.map(|seed| mixed(seed ^ u64::from(failures)));
        connected
    }

    /// Doubles for each failure in a row; a random half to all of that.
    fn pause_behind(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let pause = self.pause.saturating_mul(1 << doublings).min(self.pause_max);
        let chance = match self.options.seed {
            Some(seed) => mixed(seed),
            // Without randomness every client waits for the maximum.
            None => getrandom::u64().unwrap_or(0),
        };
        let sixteenths = u32::try_from(chance % 16).unwrap_or(0);
        pause - pause / 32 * sixteenths
    }
}

/// How far a run is.
#[derive(Default)]
struct Progress {
    /// The client whose session is under way.
    client: Mutex<Option<Client>>,
    /// Whether the service has returned its result, and nothing is left but the end of the session.
    is_done: AtomicBool,
}

impl<E> Interruption<E> {
    /// Whether a retry cannot help: refused credentials, a closed client, invalid options.
    pub const fn is_lasting(&self) -> bool {
        match self {
            Self::NoSession(ConnectError::TimedOut { .. }) | Self::Failed(_) => false,
            Self::NoSession(ConnectError::SessionEnded(end)) | Self::SessionEnded(end) => {
                !matches!(end, SessionEnd::Expired)
            }
            Self::NoSession(_) => true,
        }
    }

    /// A description for logs, whatever the service's error type is.
    fn kind(&self) -> String {
        match self {
            Self::NoSession(error) => error.to_string(),
            Self::SessionEnded(end) => end.to_string(),
            Self::Failed(_) => "it returned an error".to_owned(),
        }
    }
}

/// Runs the service until it is done, or is dropped because its session has ended. Returns how long it had its session, too.
async fn round<F, T, E>(
    client: &Client,
    service: F,
    grace: Duration,
) -> (Result<T, Interruption<E>>, Duration)
where
    F: Future<Output = Result<T, E>>,
{
    let (session, began) = (client.session(), Instant::now());
    let mut service = pin!(service);
    let first = unless(session.ended(), service.as_mut()).await;
    let lasted = began.elapsed();
    let (returned, end) = match first {
        Ok(returned) => (Some(returned), over(&session)),
        Err(end) if grace.is_zero() => (None, Some(end)),
        Err(end) => (timeout(grace, service).await.ok(), Some(end)),
    };
    let ended = match (returned, end) {
        (Some(Ok(done)), _) => Ok(done),
        (_, Some(end)) => Err(Interruption::SessionEnded(end)),
        (Some(Err(error)), None) => Err(Interruption::Failed(error)),
        // Neither result exists only if the session has ended.
        (None, None) => Err(Interruption::SessionEnded(SessionEnd::Closed)),
    };
    (ended, lasted)
}

/// How the session is over, or will be: the service may hear that it is being closed before it is.
fn over(session: &Session) -> Option<SessionEnd> {
    match session.state() {
        SessionState::Ended(end) => Some(end),
        SessionState::Closing => Some(SessionEnd::Closed),
        _ => None,
    }
}

/// Runs `work` until it or `end` completes. Each step polls `end` first.
async fn unless<E, F: Future>(
    end: impl Future<Output = E>,
    mut work: Pin<&mut F>,
) -> Result<F::Output, E> {
    let mut end = pin!(end);
    poll_fn(|cx| match end.as_mut().poll(cx) {
        Poll::Ready(end) => Poll::Ready(Err(end)),
        Poll::Pending => work.as_mut().poll(cx).map(Ok),
    })
    .await
}

/// Ends a session if it has not ended, whether or not a server confirms it.
async fn close(client: &Client) {
    if client.close().await.is_err() {
        tracing::debug!("no server has confirmed the end of the session");
    }
}

impl<E> std::fmt::Debug for Supervise<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervise")
            .field("options", &self.options)
            .field("pause", &self.pause)
            .field("pause_max", &self.pause_max)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
