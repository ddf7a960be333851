//! What a client can be told before it connects.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use zk_proto::{
    Acl, AclList, Secret,
    session::{Auth, Config, Credentials, Lease},
};

use crate::{
    chroot::Chroot,
    clock::{self, Clock},
    error::ServersError,
    net::{
        connect::Connect,
        resolve::{Resolve, ResolvedConnect},
        sasl::SaslMechanism,
        servers::Servers,
    },
    report::observe::SessionObserver,
    request::{call_options::CallOptions, handle::SessionTask},
};

/// What a client can be told before it connects.
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
    pub(crate) connect_deadline: Option<Duration>,
    pub(crate) connector: Arc<dyn Connect>,
    pub(crate) sasl: Option<Arc<dyn SaslMechanism>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seed: Option<u64>,
    pub(crate) spawn: Option<Arc<dyn Fn(SessionTask) + Send + Sync>>,
}

/// Enough for a busy subtree while its reader reads a few nodes; with short paths about 100 KiB.
const WATCH_ITEMS_MAX: usize = 1024;

impl ConnectOptions {
    /// Options for a connection string `host:port,host:port/chroot`. The port defaults to 2181, IPv6
    /// addresses stand in brackets, and without a chroot paths are the servers' own.
    ///
    /// # Errors
    /// [`ServersError`] if the string is anything else.
    pub fn new(servers: &str) -> Result<Self, ServersError> {
        let Servers { addresses, chroot } = servers.parse()?;
        Ok(Self {
            config: Config::new(addresses),
            chroot: Chroot::new(&chroot),
            acl: AclList::from_iter([Acl::open_unsafe()]),
            watch_items_max: WATCH_ITEMS_MAX,
            call: CallOptions::new(),
            observer: None,
            connect_deadline: Some(Duration::from_secs(30)),
            connector: Arc::new(ResolvedConnect::default()),
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

    /// Wished session timeout: how long servers keep the session, its ephemeral nodes and its locks
    /// without hearing from it. Servers clamp it, by default to 2 to 20 of their ticks. Default 10 s.
    pub const fn session_timeout(mut self, timeout: Duration) -> Self {
        self.config.session_timeout = timeout;
        self
    }

    /// Bound on one connection attempt, handshake included. Default: the session timeout divided by the
    /// number of servers, and by three once there is a session to lose, so that every server gets several
    /// turns within its life; at least 1 s or a third of the session timeout.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.connect_timeout = Some(timeout);
        self
    }

    /// What the session's [lease](crate::Session::lease_left) is counted by, and with it whether locks and whatever
    /// else is held still are. Default: by what the leader has confirmed.
    ///
    /// A member that is cut off from its leader goes on answering for a while after the leader has ended the session
    /// and given its locks away. So as long as anything is held in the session, or waited for in a queue, it sends a
    /// `sync` where it would have sent a ping, unless writes or `sync`s are under way anyway: those pass the leader.
    /// A session that holds nothing sends pings.
    ///
    /// [`Lease::Connection`] is for a standalone server, and for those who do not mind: the whole session timeout, by
    /// any answer.
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

    /// Short for [`lease`](Self::lease) by [`Lease::Margin`]: how much earlier than by its timeout a session may end,
    /// whatever the leader has confirmed. It is for what lies between a server's answer and the leader's hearing of
    /// the session: half a tick, and what networks and schedulers add.
    ///
    /// One that leaves nothing of the session timeout is refused when it is [connected](Self::connect). If it is the
    /// servers that grant less than was wished for, a third of that is taken off instead, with a warning.
    pub const fn lease_margin(self, margin: Duration) -> Self {
        self.lease(Lease::Margin(margin))
    }

    /// How long [`connect`](Self::connect) tries before it gives up; `None` for ever. Default 30 s.
    pub const fn connect_deadline(mut self, deadline: Option<Duration>) -> Self {
        self.connect_deadline = deadline;
        self
    }

    /// Whether a server that is cut off from the quorum will do until a better one is found. Reads may
    /// then be stale, and writes are rejected with [`ReadOnly`](crate::Rejection::ReadOnly).
    pub const fn read_only(mut self, allowed: bool) -> Self {
        self.config.read_only = allowed;
        self
    }

    /// An identity to be proved on every connection, before anything else. For the scheme `digest` the
    /// bytes are `user:password`; they go over the network as they are.
    pub fn auth(mut self, scheme: &str, auth: impl Into<Bytes>) -> Self {
        self.config.auth.push(Auth { scheme: scheme.into(), auth: Secret(auth.into()) });
        self
    }

    /// Who may do what with nodes that are created without a [list](crate::Create::acl) of their own, the levels above
    /// them and the nodes of locks included. Lists of parents are not inherited.
    ///
    /// Default: [`Acl::open_unsafe`], everybody may do everything, as with all other clients.
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

    /// Who to be, and to be sure of, by SASL: on every connection, before identities of [`auth`](Self::auth), before
    /// watches, before anything else.
    ///
    /// Servers that refuse, and servers without SASL, end the session: see
    /// [`SessionEnd::AuthFailed`](crate::SessionEnd::AuthFailed). Servers that cannot prove who they are, if the
    /// mechanism asks for that, are left for the next one.
    pub fn sasl(mut self, mechanism: impl SaslMechanism) -> Self {
        self.sasl = Some(Arc::new(mechanism));
        self.config.sasl = true;
        self
    }

    /// Goes on with a session that another client has left, instead of making a new one.
    pub fn resume(mut self, credentials: Credentials) -> Self {
        self.config.resume = Some(credentials);
        self
    }

    /// How long requests are waited for, unless a client or a call has it otherwise: see
    /// [`Get::timeout`](crate::Get::timeout). Default: as long as the session lives.
    pub const fn request_timeout(mut self, timeout: Duration) -> Self {
        self.call.timeout = Some(timeout);
        self
    }

    /// Requests that may wait or be in flight. Awaiting one more waits for room, behind all who wait already;
    /// submitting it fails with [`QueueFull`](crate::Cause::QueueFull). Default 65 536.
    pub const fn requests_max(mut self, requests: usize) -> Self {
        self.config.requests_max = requests;
        self
    }

    /// Bytes of all those requests together, as with [`requests_max`](Self::requests_max). Default 64 MiB.
    pub const fn request_bytes_max(mut self, bytes: usize) -> Self {
        self.config.request_bytes_max = bytes;
        self
    }

    /// Events that are kept for a [`WatchStream`](crate::WatchStream) that nobody reads; one more, and all of them are
    /// replaced by one [`Resync::Lagged`](crate::Resync::Lagged). Default 1024.
    pub const fn watch_items_max(mut self, items: usize) -> Self {
        self.watch_items_max = items;
        self
    }

    /// Longest reply that is accepted, in bytes; a request that is answered with a longer one fails with
    /// [`ReplyTooLarge`](crate::Cause::ReplyTooLarge), and costs the connection. Default 64 MiB, a listing of a
    /// million locks: servers do not limit their listings.
    pub const fn reply_len_max(mut self, len: usize) -> Self {
        self.config.reply_len_max = len;
        self
    }

    /// Longest request that is sent, in bytes; longer ones fail with [`TooLarge`](crate::Cause::TooLarge).
    /// Default 1 MiB less one: what servers accept unless `jute.maxbuffer` says otherwise.
    pub const fn request_len_max(mut self, len: usize) -> Self {
        self.config.request_len_max = len;
        self
    }

    /// Secures all connections by TLS, with the server's name checked against the one in the connection string.
    /// There is no way back to plain connections: where TLS fails, so does the attempt.
    ///
    /// Short for a [`connector`](Self::connector) made of [`TlsConnect::new`](crate::TlsConnect::new), which see for
    /// certificates that change.
    ///
    /// # Errors
    /// [`TlsError`](crate::TlsError) if the certificates cannot be read, or make no sense.
    #[cfg(feature = "tls")]
    pub fn tls(self, options: crate::TlsOptions) -> Result<Self, crate::TlsError> {
        Ok(self.connector(crate::TlsConnect::new(options)?))
    }

    /// How names of servers become addresses. Default: by the system. Short for a [`connector`](Self::connector) made
    /// of [`ResolvedConnect`].
    pub fn resolver(self, resolver: impl Resolve) -> Self {
        self.connector(ResolvedConnect::new(resolver))
    }

    /// Who is to hear what happens with the session. Default: nobody.
    pub fn observer(mut self, observer: Arc<dyn SessionObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// How connections are made. Default: TCP, with names resolved at each attempt.
    pub fn connector(mut self, connector: impl Connect) -> Self {
        self.connector = Arc::new(connector);
        self
    }

    /// The clock that leases are measured with. Default: one that goes on while the machine sleeps.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Where chance comes from: order of servers, jitter, and the ids of [protected
    /// creates](crate::Create::protected). Default: the system.
    ///
    /// For simulations only: two sessions of the same seed take each other's nodes for their own.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Who runs the session's task: it must be polled, on a tokio runtime with time, until it has ended.
    /// Default: `tokio::spawn`. For task trackers, runtimes of one's own, simulations.
    pub fn spawn_with(mut self, spawn: impl Fn(SessionTask) + Send + Sync + 'static) -> Self {
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
