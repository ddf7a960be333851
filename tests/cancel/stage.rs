//! What a future is dropped on, and what must be true afterwards.

use std::time::Duration;

use tokio::{runtime::Handle, time::Instant};
use zk_client::{
    Cause, Client, ConnectOptions, OwnedNode, ReadError, Session, SessionState, Watch, WatchStream,
};
use zk_locks::{Guard, Lock};
use zk_testkit::server::{Config, Member};

use zk_tests::network::{Name, Network, pass};

/// Whose futures are dropped, and whose troubles they are.
pub(crate) const CLIENT: Name = "client";

/// Another client, which has no trouble.
const OUTSIDER: Name = "outsider";

/// The servers' tick: sessions live for six of them.
const TICK: Duration = Duration::from_millis(100);
const SESSION_TIMEOUT: Duration = Duration::from_millis(600);

/// Requests that a client may have under way: few, so that one that is never given back is missed.
const REQUESTS_MAX: usize = 24;

/// Where recipes have nodes whose names do not tell whose they are.
const OF_RECIPES: [&str; 3] = ["/double/", "/group/", "/kept"];

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What there is before a future begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing but the nodes that all clients read.
    Nothing,
    /// The lock's path.
    LockPath,
    /// Another client has the lock, for so many milliseconds.
    HeldFor(u64),
    /// We have the lock.
    Guard,
    /// We have a node.
    Node,
    /// We watch a node, and another client writes it after so many milliseconds.
    WatchFor(u64),
    /// The same, watched for good.
    StreamFor(u64),
}

/// A server, two clients, and what a future is about.
pub(crate) struct Stage {
    pub(crate) network: Network,
    pub(crate) client: Client,
    outsider: Client,
}

/// What a future is about.
pub(crate) struct Props {
    pub(crate) network: Network,
    pub(crate) client: Client,
    pub(crate) session: Session,
    pub(crate) lock: Lock,
    pub(crate) guard: Option<Guard>,
    pub(crate) node: Option<OwnedNode>,
    pub(crate) watch: Option<Watch>,
    pub(crate) stream: Option<WatchStream>,
}

/// The same options for all clients, with the runtime's clock and a fixed seed.
pub(crate) fn options(network: &Network, name: Name) -> ConnectOptions {
    let options = network.options(name, "", 7);
    options.session_timeout(SESSION_TIMEOUT).requests_max(REQUESTS_MAX)
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let mut config = Config::default();
        config.tick = TICK;
        let network = Network::new(config);
        let client = options(&network, CLIENT).connect().await.expect("a session");
        let outsider = options(&network, OUTSIDER).connect().await.expect("a session");
        outsider.create("/data", b"").await.expect("a node");
        Self { network, client, outsider }
    }

    /// Prepares what a future is about. `path` is where its lock is.
    pub(crate) async fn props(&self, needs: Needs, path: &'static str) -> Props {
        let client = self.client.clone();
        let (session, lock) =
            (client.session(), Lock::builder(&client, path).recheck(None).build());
        let theirs = Lock::builder(&self.outsider, path).description("outsider").build();
        let mut props = Props {
            network: self.network.clone(),
            client,
            session,
            lock,
            guard: None,
            node: None,
            watch: None,
            stream: None,
        };
        match needs {
            Needs::Nothing => {}
            Needs::LockPath => {
                self.outsider.create(path, b"").await.expect("a node");
            }
            Needs::HeldFor(millis) => {
                let guard = theirs.acquire().await.expect("it is free");
                tokio::spawn(async move {
                    pass(Duration::from_millis(millis)).await;
                    drop(guard);
                });
            }
            Needs::Guard => props.guard = Some(props.lock.acquire().await.expect("it is free")),
            Needs::Node => {
                let mode = zk_client::CreateMode::EphemeralSequential;
                let create = props.client.create("/mine-", b"").mode(mode).protected();
                props.node = create.await.expect("a node").owned;
            }
            Needs::WatchFor(millis) => {
                let (_, watch) = props.client.get("/data").watch().await.expect("a node");
                props.watch = Some(watch);
                self.write_after(millis);
            }
            Needs::StreamFor(millis) => {
                let stream = props.client.watch("/data").await;
                props.stream = Some(stream.expect("a watch"));
                self.write_after(millis);
            }
        }
        props
    }

    /// Another client writes what all clients read.
    fn write_after(&self, millis: u64) {
        let outsider = self.outsider.clone();
        tokio::spawn(async move {
            pass(Duration::from_millis(millis)).await;
            outsider.set("/data", b"changed").await.expect("a write");
        });
    }

    /// Nothing of it is left, and the next call works. `about` is for the failure message.
    pub(crate) async fn nothing_is_left(self, props: Vec<Props>, about: &str) {
        let all = async {
            self.network.heal();
            let locks: Vec<Lock> = props.into_iter().map(|props| props.lock).collect();
            settled(&self.client).await;
            match self.client.session().state() {
                SessionState::Ended(_) => over(&self.client, &locks).await,
                _ => alive(&self, &locks).await,
            }
            drop(locks);
            self.everybody_goes().await;
        };
        let in_time = tokio::time::timeout(PATIENCE, all).await;
        assert!(in_time.is_ok(), "nothing more happens after {about}");
    }

    /// With the last client the sessions go, and every task but the server's own.
    async fn everybody_goes(self) {
        let Self { network, client, outsider } = self;
        // The outsider's nodes and guards go when their tasks do.
        drop((client, outsider));
        let tasks = || Handle::current().metrics().num_alive_tasks();
        let sessions = || network.look(|server| server.sessions().count());
        let nodes = || network.look(|server| protected_nodes(server.tree(Member(0))));
        while tasks() > 1 || sessions() > 0 || !nodes().is_empty() {
            pass(Duration::from_millis(10)).await;
        }
    }
}

/// Waits until the client's session is connected or over.
async fn settled(client: &Client) {
    let mut session = client.session();
    let mut state = session.state();
    while !matches!(state, SessionState::Connected { .. } | SessionState::Ended(_)) {
        state = session.changed().await;
    }
}

/// The session lives: no node, no watch, no request is left, and it works.
async fn alive(stage: &Stage, locks: &[Lock]) {
    let Stage { network, client, .. } = stage;
    // What was in doubt is settled and swept; what others hold goes when they let go.
    let nodes = || network.look(|server| protected_nodes(server.tree(Member(0))));
    let lock_watches = || watched(network, client).into_iter().any(|path| path.contains("lock-"));
    loop {
        if client.resolve_in_doubt().await.is_err() {
            return over(client, locks).await;
        }
        if nodes().is_empty() && !lock_watches() {
            break;
        }
        pass(Duration::from_millis(10)).await;
    }
    // There is room for as many requests as ever, once tasks that end what was begun have ended.
    while !has_room(client).await {
        pass(Duration::from_millis(10)).await;
    }
    for lock in locks {
        let guard = lock.acquire().await.expect("it is free");
        guard.release().await.expect("a connection");
    }
    // A new connection restores only those watches that still have a listener.
    let mut session = client.session();
    let epoch = session.epoch();
    network.cut(CLIENT);
    network.heal();
    while session.epoch() == epoch {
        session.changed().await;
    }
    client.resolve_in_doubt().await.expect("a connection");
    assert_eq!(watched(network, client), Vec::<String>::new(), "watches without a listener");
}

/// Whether there is room for as many requests as ever.
async fn has_room(client: &Client) -> bool {
    let cork = client.cork();
    let reads: Vec<_> = (0..REQUESTS_MAX).map(|_| cork.exists("/data").submit()).collect();
    drop(cork);
    let mut full = false;
    for read in reads {
        match read.await {
            Ok(_) => {}
            Err(ReadError::Unavailable(Cause::QueueFull)) => full = true,
            Err(error) => panic!("{error:?}"),
        }
    }
    !full
}

/// The session is over: everything says so, at once.
async fn over(client: &Client, locks: &[Lock]) {
    client.session().ended().await;
    let began = Instant::now();
    client.get("/data").await.expect_err("the session is over");
    client.set("/data", b"").await.expect_err("the session is over");
    client.resolve_in_doubt().await.expect_err("the session is over");
    client.close().await.ok();
    for lock in locks {
        lock.acquire().await.expect_err("the session is over");
        lock.try_acquire().await.expect_err("the session is over");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
}

fn protected_nodes(tree: Option<&zk_testkit::server::Tree>) -> Vec<String> {
    let paths = tree.into_iter().flat_map(|tree| tree.iter().map(|(path, _)| path.to_owned()));
    let is_ours = |path: &str| {
        let of_recipe = OF_RECIPES.iter().any(|recipe| path.starts_with(recipe));
        path.contains("/_c_") || path.ends_with("/simple") || of_recipe && !path.ends_with("/ready")
    };
    paths.filter(|path| is_ours(path)).collect()
}

/// What the server watches for the client.
fn watched(network: &Network, client: &Client) -> Vec<String> {
    let session = client.session().id();
    network.look(|server| {
        let conns = server.connections(Member(0));
        let ours = conns.filter(|(_, of)| *of == Some(session));
        let watches = ours.flat_map(|(conn, _)| {
            let (data, children) = server.watches(conn);
            data.into_iter().chain(children)
        });
        watches.map(str::to_owned).collect()
    })
}
