//! Where a test takes place: a part of a server's tree that is its own.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::sync::{Mutex, MutexGuard};
use zk_client::{Client, ConnectOptions, OpCode, SessionState, Stat};
use zk_testkit::proxy::Proxy;
use zk_tests::{
    feature::Feature,
    patience::closed,
    site::{Kind, SESSION_TIMEOUT_MAX, Site, on_each},
};

/// A server of each kind for the tests that restart theirs, one after the other.
static RESTARTED: [Mutex<Option<Site>>; Site::ALL.len()] =
    [const { Mutex::const_new(None) }; Site::ALL.len()];

/// How many places there have been.
static PLACES: AtomicU64 = AtomicU64::new(0);

/// Where a test takes place.
#[derive(Debug)]
pub(crate) struct Place {
    site: Hold,
    kind: Kind,
    /// The chroot of every client.
    root: String,
}

#[derive(Debug)]
enum Hold {
    /// Others use it at the same time.
    Shared(&'static Site),
    /// No other test does as long as this is held.
    Alone(MutexGuard<'static, Option<Site>>),
}

/// Runs a test on a server of each kind, side by side with other tests there. Each kind has a thread to itself, which
/// is named after it.
pub(crate) fn on_each_release(test: impl AsyncFn(&Place) + Sync) {
    on_each_of(&Site::ALL, test);
}

/// The same on servers of some kinds.
pub(crate) fn on_each_of(kinds: &[Kind], test: impl AsyncFn(&Place) + Sync) {
    on_each(kinds, async |kind| test(&Place::shared(kind).await).await);
}

/// The same for a test that restarts its server, and has it to itself for that.
pub(crate) fn on_each_release_to_restart(test: impl AsyncFn(&Place) + Sync) {
    on_each(&Site::ALL, async |kind| test(&Place::alone(kind).await).await);
}

impl Place {
    /// On a server that other tests use at the same time.
    pub(crate) async fn shared(kind: Kind) -> Self {
        Self::new(Hold::Shared(Site::shared(kind).await), kind).await
    }

    /// On a server that may be restarted.
    async fn alone(kind: Kind) -> Self {
        let mut site = RESTARTED[kind.index()].lock().await;
        // One in this process goes with the runtime that it was started on.
        if site.is_none() || !kind.is_real() {
            *site = Some(Site::start(kind).await);
        }
        Self::new(Hold::Alone(site), kind).await
    }

    async fn new(site: Hold, kind: Kind) -> Self {
        let root = format!("/place-{}", PLACES.fetch_add(1, Ordering::Relaxed));
        let place = Self { site, kind, root };
        let zk = place.site().options().connect().await.unwrap();
        zk.create(&place.root, b"").or_exists().await.unwrap();
        closed(&zk).await;
        place
    }

    fn site(&self) -> &Site {
        match &self.site {
            Hold::Shared(site) => site,
            Hold::Alone(site) => site.as_ref().expect("it was started"),
        }
    }

    /// Whether servers of this release have it.
    pub(crate) fn has(&self, feature: Feature) -> bool {
        feature.is_in(self.kind.release())
    }

    /// Whether it is a process, which is slower than one in this process.
    pub(crate) fn is_real(&self) -> bool {
        self.kind.is_real()
    }

    /// By what the client asks for nodes that are not of a special kind.
    pub(crate) fn create_op(&self) -> OpCode {
        if self.has(Feature::StatAtBirth) { OpCode::CREATE2 } else { OpCode::CREATE }
    }

    /// Asserts that what a create returns of a node is what a read returns, as far as servers send it.
    pub(crate) fn assert_told(&self, created: &Stat, read: &Stat) {
        let known = Stat { czxid: read.czxid, mzxid: read.mzxid, pzxid: read.pzxid, ..*created };
        assert_eq!(created, if self.has(Feature::StatAtBirth) { read } else { &known });
    }

    /// What clients connect with.
    pub(crate) fn options(&self) -> ConnectOptions {
        self.options_for(&self.connect_string())
    }

    /// The same for a connection string that somehow contains [`connect_string`](Self::connect_string).
    pub(crate) fn options_for(&self, servers: &str) -> ConnectOptions {
        self.lasting(self.site().options_for(servers))
    }

    /// The same for other servers in front of this one, by their names.
    pub(crate) fn options_by(&self, servers: &str) -> ConnectOptions {
        self.lasting(ConnectOptions::new(&format!("{servers}{}", self.root)).unwrap())
    }

    /// With a session that outlives a restart, if there is to be one.
    fn lasting(&self, options: ConnectOptions) -> ConnectOptions {
        match self.site {
            Hold::Shared(_) => options,
            Hold::Alone(_) => options.session_timeout(SESSION_TIMEOUT_MAX),
        }
    }

    /// Where clients connect, and the root of what is theirs.
    pub(crate) fn connect_string(&self) -> String {
        format!("{}{}", self.site().connect_string(), self.root)
    }

    /// Where clients connect that come without TLS.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.site().addr()
    }

    /// Kills the server and starts it again, and waits until this client has come back to it. A server in this process
    /// is back before its absence was noticed.
    pub(crate) async fn restart_under(&self, zk: &Client) {
        assert!(matches!(self.site, Hold::Alone(_)), "others use this server");
        let mut session = zk.session();
        let before = session.epoch();
        self.site().kill().await;
        self.site().restart().await;
        while session.epoch() == before {
            let state = session.changed().await;
            assert!(
                !matches!(state, SessionState::Ended(_)),
                "the server was away for too long: {state:?}"
            );
        }
    }
}

pub(crate) async fn client(server: &Place) -> Client {
    ready(server, server.options().connect().await.unwrap()).await
}

/// A client that talks to the server through a proxy of its own.
pub(crate) async fn behind_proxy(server: &Place) -> (Proxy, Client) {
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let zk = server.options_by(&proxy.connect_string()).connect().await.unwrap();
    (proxy, ready(server, zk).await)
}

/// The first create tells a session that its servers are of before 3.5, and costs the connection. What is made of that
/// has a test to itself.
async fn ready(server: &Place, zk: Client) -> Client {
    if !server.has(Feature::StatAtBirth) {
        zk.create("/", b"").or_exists().await.unwrap();
        zk.sync("/").await.unwrap();
    }
    zk
}
