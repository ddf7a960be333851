//! Servers, clients, and clients behind a proxy.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use zk_client::Credentials;
use zk_locks::{Client, ConnectOptions};
use zk_proto::{Secret, Xid, Zxid, jute::decode_prefix, request::ConnectResponse};
use zk_testkit::proxy::{self, Proxy};
use zk_tests::{
    patience::in_standing_time,
    site::{SESSION_TIMEOUT_MAX, Site, on_each, on_each_threaded},
};

use super::{closed, within};

/// How many of them there have been.
static SETUPS: AtomicU64 = AtomicU64::new(0);

/// Longer than any test waits: what is found gone has been deleted, and not expired.
const SESSION_TIMEOUT: Duration = SESSION_TIMEOUT_MAX;

/// What a test begins with: a server, and a part of its tree that belongs to the test alone.
#[derive(Debug)]
pub(crate) struct Setup {
    server: &'static Site,
    root: String,
    /// An outsider, who observes and does what no client should.
    pub(crate) outsider: Client,
}

/// Runs a test on a server of each kind, side by side.
pub(crate) fn on_each_release(test: impl AsyncFn(Setup) + Sync) {
    on_each(&Site::PLAIN, async |kind| test(Setup::new(Site::shared(kind).await).await).await);
}

/// The same in time that stands still: for what counts requests, of which recipes make some more after a second, and what no timer
/// may end.
pub(crate) fn on_each_release_timeless(test: impl AsyncFn(Setup) + Sync) {
    on_each(&Site::PLAIN, async |kind| {
        let setup = Setup::new(Site::shared(kind).await).await;
        in_standing_time(test(setup)).await;
    });
}

/// The same for a test whose tasks need several threads.
pub(crate) fn on_each_release_threaded(test: impl AsyncFn(Setup) + Sync) {
    on_each_threaded(&Site::PLAIN, async |kind| {
        test(Setup::new(Site::shared(kind).await).await).await;
    });
}

impl Setup {
    async fn new(server: &'static Site) -> Self {
        let root = format!("/setup-{}", SETUPS.fetch_add(1, Ordering::Relaxed));
        let outsider = options(&server.connect_string()).connect().await.unwrap();
        outsider.create(&root, b"").await.unwrap();
        Self { server, root, outsider }
    }

    /// A path below an existing node that is this test's own.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    /// The path of a node that exists, and whose children are this test's own.
    pub(crate) async fn existing(&self, name: &str) -> String {
        let path = self.path(name);
        self.outsider.create(&path, b"").await.unwrap();
        path
    }

    /// The server's address, as a client's connection string.
    pub(crate) fn servers(&self) -> String {
        self.server.connect_string()
    }

    /// The nodes of this test on whose data or existence the server has watches.
    pub(crate) async fn watched(&self) -> Vec<String> {
        let by_path = self.server.four_letter("wchp").await;
        let own = format!("{}/", self.root);
        by_path.lines().filter(|line| line.starts_with(&own)).map(str::to_owned).collect()
    }

    /// Options for a session with the server.
    pub(crate) fn options(&self) -> ConnectOptions {
        options(&self.servers())
    }

    /// A client with a session of its own.
    pub(crate) async fn client(&self) -> Client {
        self.options().connect().await.unwrap()
    }

    /// A proxy in front of the server.
    pub(crate) async fn proxy(&self) -> Proxy {
        Proxy::start(self.server.addr()).await.unwrap()
    }

    /// A proxy, and a client behind it.
    pub(crate) async fn proxied(&self) -> (Proxy, Client) {
        let proxy = self.proxy().await;
        let zk = client_behind(&proxy).await;
        (proxy, zk)
    }
}

/// A client behind a proxy.
pub(crate) async fn client_behind(proxy: &Proxy) -> Client {
    options_for(proxy).connect().await.unwrap()
}

/// Options for a session through a proxy.
pub(crate) fn options_for(proxy: &Proxy) -> ConnectOptions {
    options(&proxy.connect_string())
}

/// Ends the newest session behind a proxy on the server, as expiry would, while its client cannot reach it.
pub(crate) async fn end_session_behind(setup: &Setup, proxy: &Proxy) {
    proxy.refuse_connections().await;
    end_session(setup, proxy).await;
}

/// The same while it is connected.
pub(crate) async fn end_session(setup: &Setup, proxy: &Proxy) {
    within(proxy.wait_for(|frame| frame.kind == proxy::Kind::ConnectResponse)).await;
    let frames = proxy.frames();
    let greeting = frames.iter().rfind(|frame| frame.kind == proxy::Kind::ConnectResponse);
    let greeting: ConnectResponse = decode_prefix(greeting.unwrap().payload()).unwrap();
    let credentials = Credentials {
        id: greeting.session_id,
        password: Secret(greeting.passwd.0.unwrap()),
        last_zxid: Zxid(0),
        next_xid: Xid::FIRST,
        timeout: SESSION_TIMEOUT,
    };
    let usurper = setup.options().resume(credentials).connect().await.unwrap();
    closed(&usurper).await;
}

fn options(servers: &str) -> ConnectOptions {
    ConnectOptions::new(servers).unwrap().session_timeout(SESSION_TIMEOUT)
}
