//! The options of a client.

use std::{fmt, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use zk_proto::{
    Acl, AclList, Secret,
    session::{Auth, Config, Credentials, Lease},
};

#[cfg(feature = "metrics")]
use crate::report::metrics::session::UNNAMED;
use crate::{
    chroot::Chroot,
    clock::{self, Clock},
    error::ConnectError,
    net::{connect::Connect, resolve::ResolvedConnect, sasl::SaslMechanism, servers::Servers},
    report::observe::SessionObserver,
    request::call_options::CallOptions,
};

/// Options of a client, set before it connects.
///
/// ```no_run
/// # async fn example() -> Result<(), zk_client::ConnectError> {
/// use std::time::Duration;
/// use zk_client::ConnectOptions;
///
/// let zk = ConnectOptions::new("zk1:2181,zk2:2181/app")?
///     .session_timeout(Duration::from_secs(15))
///     .connect()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "options do nothing until `connect` is called"]
pub struct ConnectOptions {
    pub(crate) config: Config,
    pub(crate) chroot: Chroot,
    pub(crate) acl: AclList,
    pub(crate) watch_items_max: usize,
    pub(crate) call: CallOptions,
    pub(crate) observer: Option<Arc<dyn SessionObserver>>,
    #[cfg(feature = "metrics")]
    pub(crate) metrics_name: metrics::SharedString,
    pub(crate) connect_deadline: Option<Duration>,
    connector: Arc<dyn Connect>,
    #[cfg(feature = "tls")]
    tls: Option<crate::TlsConnect>,
    pub(crate) sasl: Option<Arc<dyn SaslMechanism>>,
    pub(crate) clock: Clock,
    pub(crate) seed: Option<u64>,
    pub(crate) spawn: Option<Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>>,
}

/// Enough for a busy subtree while its reader reads a few nodes; about 100 KiB with short paths.
const WATCH_ITEMS_MAX: usize = 1024;

impl ConnectOptions {
    /// Options for a connection string `host:port,host:port/chroot`. The port defaults to 2181, IPv6 addresses are in
    /// brackets, and without a chroot paths are absolute.
    ///
    /// # Errors
    /// [`ConnectError`] if the string is anything else.
    pub fn new(servers: &str) -> Result<Self, ConnectError> {
        let Servers { addresses, chroot } = servers.parse()?;
        Ok(Self {
            config: Config::new(addresses),
            chroot: Chroot::new(&chroot),
            acl: AclList::from_iter([Acl::open_unsafe()]),
            watch_items_max: WATCH_ITEMS_MAX,
            call: CallOptions::new(),
            observer: None,
            #[cfg(feature = "metrics")]
            metrics_name: UNNAMED.into(),
            connect_deadline: Some(Duration::from_secs(30)),
            connector: Arc::new(ResolvedConnect::default()),
            #[cfg(feature = "tls")]
            tls: None,
            sasl: None,
            clock: clock::production(),
            seed: None,
            spawn: None,
        })
    }

    /// The servers of the connection string, each as `host:port`.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.config.servers.iter().map(|server| &**server)
    }

    /// Sets the requested session timeout: how long servers keep the session, its ephemeral nodes and its locks without
    /// hearing from it. Servers clamp it, by default to 2 to 20 of their ticks. Default 10 s.
    pub const fn session_timeout(mut self, timeout: Duration) -> Self {
        self.config.session_timeout = timeout;
        self
    }

    /// Bounds one connection attempt, handshake included. Default: the session timeout divided by the number of
    /// servers, and by three once a session exists, so that every server is tried several times within its life; at
    /// least 1 s or a third of the session timeout.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.connect_timeout = Some(timeout);
        self
    }

    /// Sets how the session's [lease](crate::Session::lease_left) is measured, and with it whether locks and other
    /// holdings are still valid. Default: by the leader's confirmations.
    ///
    /// A member that is cut off from its leader keeps answering for a while after the leader has expired the session
    /// and released its locks. So while anything is held in the session, or waited for in a queue, it sends a `sync`,
    /// which passes through the leader, five times in the time that a lease lasts: unless a write or another `sync` has
    /// been answered since. A session that holds nothing sends pings.
    ///
    /// [`Lease::Connection`] is for standalone servers, and for applications that accept the risk: any reply renews the
    /// whole session timeout.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), zk_client::ConnectError> {
    /// use zk_client::{ConnectOptions, Lease};
    ///
    /// let zk = ConnectOptions::new("zk1:2181")?.lease(Lease::Connection).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn lease(mut self, by: Lease) -> Self {
        self.config.lease = by;
        self
    }

    /// Short for [`lease`](Self::lease) with [`Lease::Margin`]: how much earlier than its timeout a session may end,
    /// whatever the leader has confirmed. It must cover a tick of the servers, plus delays of networks and schedulers: a
    /// leader that is cut off finds out up to a tick after the others have begun to look for another.
    ///
    /// [Connecting](Self::connect) fails with a margin of more than three quarters of the session timeout. If servers grant a
    /// timeout that short, half of it is used as the margin instead, with a warning.
    pub const fn lease_margin(self, margin: Duration) -> Self {
        self.lease(Lease::Margin(margin))
    }

    /// Sets how long [`connect`](Self::connect) tries before it gives up; `None` means forever. Default 30 s.
    pub const fn connect_deadline(mut self, deadline: Option<Duration>) -> Self {
        self.connect_deadline = deadline;
        self
    }

    /// Sets whether to accept a server that is cut off from the quorum until a better one is found. Reads may then be
    /// stale, and writes are rejected with [`ReadOnly`](crate::Rejection::ReadOnly). Locks are not granted by what such a server
    /// shows: those that wait go on when a better one is found.
    pub const fn read_only(mut self, allowed: bool) -> Self {
        self.config.read_only = allowed;
        self
    }

    /// Adds an identity to prove on every connection, before anything else. For the scheme `digest` the bytes are
    /// `user:password`; they are sent in plain text.
    pub fn auth(mut self, scheme: &str, auth: impl Into<Bytes>) -> Self {
        self.config.auth.push(Auth { scheme: scheme.into(), auth: Secret(auth.into()) });
        self
    }

    /// Sets the access control list of nodes created without a [list](crate::Create::acl) of their own, created parents
    /// and the nodes of locks included. Nodes do not inherit their parents' lists.
    ///
    /// Default: [`Acl::open_unsafe`], all permissions for all clients, as in all other client libraries.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), zk_client::ConnectError> {
    /// use zk_client::{Acl, AclList, ConnectOptions};
    ///
    /// let zk = ConnectOptions::new("zk1:2181")?
    ///     .auth("digest", "ann:long and secret")
    ///     .default_acl(&AclList::from_iter([Acl::creator_all()]))
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn default_acl(mut self, acl: &AclList) -> Self {
        self.acl = acl.clone();
        self
    }

    /// Sets the SASL mechanism by which client and server authenticate each other: on every connection, before the
    /// identities of [`auth`](Self::auth), before watches, before anything else.
    ///
    /// A server that refuses, or has no SASL, ends the session: see
    /// [`SessionEnd::AuthFailed`](crate::SessionEnd::AuthFailed). If the mechanism requires the server to prove its
    /// identity and it cannot, the next server is tried.
    pub fn sasl(mut self, mechanism: impl SaslMechanism) -> Self {
        self.sasl = Some(Arc::new(mechanism));
        self.config.sasl = true;
        self
    }

    /// Resumes a session that another client has left, instead of creating a new one. If no server can be reached in time,
    /// the session stays as it is, for another attempt.
    pub fn resume(mut self, credentials: Credentials) -> Self {
        self.config.resume = Some(credentials);
        self
    }

    /// Sets how long to wait for replies, unless a client or a call overrides it: see
    /// [`Request::timeout`](crate::Request::timeout). Default: as long as the session lives, as recipes and caches always
    /// wait.
    pub const fn request_timeout(mut self, timeout: Duration) -> Self {
        self.call.timeout = Some(timeout);
        self
    }

    /// Limits the requests that are pending or in flight. Awaiting one more waits for room, behind all that already
    /// wait; submitting it fails with [`QueueFull`](crate::Cause::QueueFull). What waits when the session is
    /// [closed](crate::Client::close) is sent at once. Default 65 536.
    pub const fn requests_max(mut self, requests: usize) -> Self {
        self.config.requests_max = requests;
        self
    }

    /// Limits the bytes of all those requests together, as with [`requests_max`](Self::requests_max). Default 64 MiB.
    pub const fn request_bytes_max(mut self, bytes: usize) -> Self {
        self.config.request_bytes_max = bytes;
        self
    }

    /// Sets how many events are kept for a [`WatchStream`](crate::WatchStream) that is not being read; one more
    /// replaces all of them by one [`Resync::Lagged`](crate::Resync::Lagged), and makes a [`Cache`](crate::Cache) read
    /// everything again. Default 1024.
    pub const fn watch_items_max(mut self, items: usize) -> Self {
        self.watch_items_max = items;
        self
    }

    /// Limits the length of replies, in bytes; a request with a longer reply fails with
    /// [`ReplyTooLarge`](crate::Cause::ReplyTooLarge), and costs the connection. Default 64 MiB, a listing of a million
    /// locks: servers do not limit their listings.
    pub const fn reply_len_max(mut self, len: usize) -> Self {
        self.config.reply_len_max = len;
        self
    }

    /// Limits the length of requests, in bytes; longer ones fail with [`TooLarge`](crate::Cause::TooLarge). Default 1
    /// MiB less one: the servers' limit unless `jute.maxbuffer` is set.
    pub const fn request_len_max(mut self, len: usize) -> Self {
        self.config.request_len_max = len;
        self
    }

    /// Secures all connections by TLS, and checks the server's name against the one in the connection string. There is
    /// no fallback to plain connections: if TLS fails, the attempt fails. What a [`resolver`](Self::resolver) or a
    /// [`connector`](Self::connector) connects to is secured too, in whichever order they are set.
    ///
    /// For certificates that change, set a connector made of [`TlsConnect::new`](crate::TlsConnect::new) instead.
    ///
    /// # Errors
    /// [`TlsError`](crate::TlsError) if the certificates cannot be read or are invalid.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, options: crate::TlsOptions) -> Result<Self, crate::TlsError> {
        self.tls = Some(crate::TlsConnect::new(options)?);
        Ok(self)
    }

    /// How connections are made, as all of these options say together.
    pub(super) fn connects(&self) -> Arc<dyn Connect> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return Arc::new(tls.clone().over_shared(self.connector.clone()));
        }
        self.connector.clone()
    }

    /// Sets how a server, given as `host:port` as in the connection string, is resolved to its addresses. Default: by
    /// the system. Called for each connection attempt, so that servers may change their addresses; the session bounds
    /// the time. Short for a [`connector`](Self::connector) made of [`ResolvedConnect`].
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::{collections::HashMap, future::ready, io, net::SocketAddr};
    /// use zk_client::ConnectOptions;
    ///
    /// // Servers whose names are in no directory.
    /// let table: HashMap<&str, SocketAddr> =
    ///     HashMap::from([("east:2181", "10.0.0.1:2181".parse()?), ("west:2181", "10.1.0.1:2181".parse()?)]);
    /// let options = ConnectOptions::new("east:2181,west:2181")?
    ///     .resolver(move |server| ready(Ok(table.get(server).copied().into_iter().collect())));
    /// let zk = options.connect().await?;
    /// # drop(zk);
    /// # Ok(())
    /// # }
    /// ```
    pub fn resolver<F>(self, resolver: impl Fn(&str) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        self.connector(ResolvedConnect::new(resolver))
    }

    /// Sets an observer of the session. Default: none.
    pub fn observer(mut self, observer: Arc<dyn SessionObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Names the session in its [metrics](crate::metrics): the value of their label `client`. Sessions of one purpose
    /// should have the same name, so that names stay few. Default: `default`.
    ///
    /// Metrics go to the recorder that is installed when the session begins. Without one they go nowhere.
    #[cfg(feature = "metrics")]
    pub fn metrics_name(mut self, name: impl Into<String>) -> Self {
        self.metrics_name = name.into().into();
        self
    }

    /// Sets how connections are made. Default: TCP, with names resolved at each attempt. Replaces a
    /// [`resolver`](Self::resolver), and is replaced by one.
    pub fn connector(mut self, connector: impl Connect) -> Self {
        self.connector = Arc::new(connector);
        self
    }

    /// Sets the clock that measures leases: the time since a moment of its choice. Default: `CLOCK_BOOTTIME` on Linux,
    /// elsewhere tokio's monotonic clock.
    ///
    /// It must never go back, and should advance while the machine sleeps: a session expires on the servers' clocks
    /// meanwhile, and a lock holder must notice on waking.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), zk_client::ConnectError> {
    /// use tokio::time::Instant;
    /// use zk_client::ConnectOptions;
    ///
    /// // In a test with `#[tokio::test(start_paused = true)]`: pauses with the runtime.
    /// let start = Instant::now();
    /// let options = ConnectOptions::new("zk1:2181")?.clock(move || start.elapsed());
    /// # drop(options);
    /// # Ok(())
    /// # }
    /// ```
    pub fn clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Seeds all random choices: order of servers, jitter, and the ids of [protected
    /// creates](crate::Create::protected). Default: the system's randomness.
    ///
    /// For simulations only: two sessions with the same seed take each other's nodes for their own.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets how the session's task is spawned: it must be polled, on a tokio runtime with time, until it has ended.
    /// Default: `tokio::spawn`. For task trackers, custom runtimes, simulations.
    pub fn spawn_with(
        mut self,
        spawn: impl Fn(BoxFuture<'static, ()>) + Send + Sync + 'static,
    ) -> Self {
        self.spawn = Some(Arc::new(spawn));
        self
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("config", &self.config)
            .field("chroot", &self.chroot)
            .field("connect_deadline", &self.connect_deadline)
            .finish_non_exhaustive()
    }
}
