//! The in-process server as tests use it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use zk_proto::SessionId;

use crate::{
    proxy::{Match, On, Proxy},
    server::{Config, Ensemble, Listening, Member, server_lines},
};

/// A ZooKeeper in this process, on a free port of the loopback interface.
///
/// It is up in about a millisecond, keeps everything in memory, and is gone when dropped. In front of
/// each member stands a [`Proxy`], so that everything that can happen to a connection can happen here
/// on demand.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zk_testkit::TestServer;
///
/// let server = TestServer::start().await?;
/// println!("connect to {}", server.connect_string());
///
/// // Later: what does the service do when its connections break?
/// server.drop_connections();
/// # Ok(())
/// # }
/// ```
///
/// Not for tests with a paused clock (`start_paused`): answers come through sockets, while the client's timeouts would
/// pass at once. Whole systems in virtual time are what the feature `sim` is for.
#[derive(Debug)]
pub struct TestServer {
    listening: Listening,
    proxies: Vec<Proxy>,
}

impl TestServer {
    /// Starts a standalone server of the newest release line, which grants session timeouts from 200 ms
    /// to a minute.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(Config {
            tick: Duration::from_millis(100),
            session_timeout_max: Some(Duration::from_secs(60)),
            ..Config::default()
        })
        .await
    }

    /// Starts a server or an ensemble as described.
    ///
    /// # Errors
    /// There are not enough free ports.
    pub async fn start_with(mut config: Config) -> io::Result<Self> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut proxies = Vec::new();
        for _ in 0..config.members.max(1) {
            // The members have their ports in a moment.
            proxies.push(Proxy::start_before(any, config.request_len_max).await?);
        }
        if config.servers.is_empty() && proxies.len() > 1 {
            // A client that goes by the configuration is not to get past the proxies.
            let addrs: Vec<_> = proxies.iter().map(Proxy::addr).collect();
            config.servers = server_lines(&addrs);
        }
        let listening = Listening::start(config, &vec![any; proxies.len()]).await?;
        for (proxy, addr) in proxies.iter().zip(listening.addrs()) {
            proxy.set_target(*addr);
        }
        Ok(Self { listening, proxies })
    }

    /// All members, as a client's connection string.
    #[must_use]
    pub fn connect_string(&self) -> String {
        self.proxies.iter().map(Proxy::connect_string).collect::<Vec<_>>().join(",")
    }

    /// What stands in front of a standalone server, or of the first member: rules about frames, and a
    /// log of them.
    #[must_use]
    pub fn proxy(&self) -> &Proxy {
        self.proxy_of(Member(0))
    }

    /// What stands in front of a member.
    ///
    /// # Panics
    /// There is no such member.
    #[must_use]
    pub fn proxy_of(&self, member: Member) -> &Proxy {
        self.proxies.get(member.0).expect("a member of this ensemble")
    }

    /// Begins a rule about these frames at a standalone server, or at the first member.
    pub fn on(&self, condition: Match) -> On<'_> {
        self.proxy().on(condition)
    }

    /// Ends a session at once, as if its time were over: its ephemeral nodes go, and its client gets the expiry.
    ///
    /// A session that is over already stays so.
    ///
    /// # Panics
    /// There is no leader to end it.
    pub fn expire(&self, session: SessionId) {
        let decided = self.with(|ensemble, now| {
            ensemble.expire(now, session);
            ensemble.sessions().all(|(id, _)| id != session)
        });
        assert!(decided, "no leader that could end session {session}");
    }

    /// Breaks all connections. No session ends of it, if its client comes back in time.
    pub fn drop_connections(&self) {
        self.proxies.iter().for_each(Proxy::reset_all);
    }

    /// Stops the process, so to speak (SIGSTOP): nothing is answered, no session expires, time goes on.
    pub fn pause(&self) {
        self.listening.pause();
    }

    /// Goes on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.listening.resume();
    }

    /// Looks at the nodes, sessions and watches, or does something to the members.
    ///
    /// Nothing else happens meanwhile; do not call the server from inside.
    pub fn with<T>(&self, act: impl FnOnce(&mut Ensemble, zk_proto::Time) -> T) -> T {
        self.listening.with(act)
    }

    /// The paths of all nodes, in order, but for the server's own: as the leader has them, or, while there is none, the member
    /// that has applied most.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let own =
            |path: &str| path == "/" || path == "/zookeeper" || path.starts_with("/zookeeper/");
        self.with(|ensemble, _| {
            let newest = ensemble.leader().unwrap_or_else(|| ensemble.newest());
            let nodes = ensemble.tree(newest).into_iter().flat_map(|tree| tree.iter());
            nodes.map(|(path, _)| path).filter(|path| !own(path)).map(str::to_owned).collect()
        })
    }

    /// All sessions that have not ended.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionId> {
        self.with(|ensemble, _| ensemble.sessions().map(|(id, _)| id).collect())
    }
}
