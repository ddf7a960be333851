//! The demo's surroundings: a server, a proxy in front of it that counts, and a referee beside it.

use std::{
    collections::BTreeMap,
    fmt,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::lookup_host;
use zk_client::{
    Client, ConnectOptions, CreateMode, Created, OpCode, ReadError, Rejection, WriteError,
    path::ancestors,
};
use zk_testkit::{
    proxy::Proxy,
    real::{self, Install, Locator, Server, Source, Wanted},
    server::{Config, Listening},
};

use crate::exit::{Exit, Failure};

/// How long to try to reach a server that is said to run.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Where the demo takes place.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) proxy: Proxy,
    pub(crate) description: String,
    referee: Client,
    /// The lock's path.
    path: String,
    /// The levels of it that did not exist before, lowest first.
    made: Vec<String>,
    /// Dropped last, and ended by that.
    _server: Option<Owned>,
}

/// A server that was started for the demo: nothing is asked of it but to be there.
type Owned = Box<dyn fmt::Debug + Send + Sync>;

/// Which server to use.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// One that runs already.
    Running(String),
    /// The one of this process, which needs nothing installed.
    InProcess,
    /// Any real one that can be started here.
    Start(Install),
}

impl Stage {
    /// Finds or starts the server, and makes the lock's path, so that this is not counted.
    pub(crate) async fn set(choice: Choice, path: &str) -> Result<Self, Failure> {
        allow_connections();
        let (addr, description, server) = match choice {
            Choice::Running(server) => {
                let addr = resolve(&server).await?;
                (addr, format!("server {server}"), None)
            }
            Choice::InProcess => listen().await?,
            Choice::Start(install) => start(install).await?,
        };
        let proxy = Proxy::start(addr).await.map_err(Failure::local("proxy"))?;
        let referee = ConnectOptions::new(&addr.to_string())?
            .connect_deadline(Some(CONNECT_DEADLINE))
            .connect()
            .await?;
        let path = path.to_owned();
        let mut stage =
            Self { proxy, description, referee, path, made: Vec::new(), _server: server };
        stage.make_path().await?;
        Ok(stage)
    }

    /// Makes the lock's path, and remembers what of it was new.
    async fn make_path(&mut self) -> Result<(), Failure> {
        let levels: Vec<&str> = ancestors(&self.path).take_while(|path| *path != "/").collect();
        for path in levels.into_iter().rev() {
            match self.make_level(path).await {
                Ok(_) => self.made.insert(0, path.to_owned()),
                Err(WriteError::Rejected(Rejection::NodeExists)) => {}
                Err(error) => return Err(Failure::write(path)(error)),
            }
        }
        match self.children().await? {
            0 => Ok(()),
            count => Err(Failure::new(
                Exit::Usage,
                format_args!("{}: has {count} children; choose another --path", self.path),
            )),
        }
    }

    /// Makes a node as the lock itself would: a container, or what old servers have instead.
    async fn make_level(&self, path: &str) -> Result<Created, WriteError> {
        let level = || self.referee.create(path, b"");
        match level().mode(CreateMode::Container).await {
            Err(WriteError::Rejected(Rejection::Unimplemented)) => level().await,
            made => made,
        }
    }

    /// Children of the lock's path now, seen from a session that takes no part.
    pub(crate) async fn children(&self) -> Result<usize, Failure> {
        let Self { referee, path, .. } = self;
        // The referee may be connected to a server that is behind the contenders'.
        let synced = referee.sync(path).submit();
        let children = referee.children(path).submit();
        synced.await.map_err(Failure::read(path))?;
        match children.await {
            Ok((names, _)) => Ok(names.len()),
            Err(ReadError::Rejected(Rejection::NoNode)) => Ok(0),
            Err(error) => Err(Failure::read(path)(error)),
        }
    }

    /// Requests that have passed the proxy so far, by operation: every frame from a client but the
    /// handshake, heartbeats, and the closing of sessions.
    pub(crate) fn requests(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.proxy.counts();
        let operations = OpCode::KNOWN.iter().filter(|op| **op != OpCode::CLOSE_SESSION);
        operations
            .filter_map(|op| Some((op.name()?, counts.requests(*op))))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Removes what was made of the lock's path, and ends the referee's session.
    pub(crate) async fn clear(self) -> Result<(), Failure> {
        for path in &self.made {
            match self.referee.delete(path).await {
                // Orphans have been reported; another client may use an upper level by now; and a
                // container may have been removed already.
                Ok(()) | Err(WriteError::Rejected(Rejection::NotEmpty | Rejection::NoNode)) => {}
                Err(error) => return Err(Failure::write(path)(error)),
            }
        }
        self.referee.close().await.map_err(|error| Failure::new(Exit::Unavailable, error))
    }
}

/// Every contender takes three file descriptors, its own and the proxy's two: take all that we may have.
fn allow_connections() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If that is refused, the usual number may still do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

async fn resolve(server: &str) -> Result<SocketAddr, Failure> {
    let refuse = |why: &dyn fmt::Display| {
        Failure::new(Exit::Usage, format_args!("--server: {server:?}: {why}"))
    };
    let mut addrs = lookup_host(server).await.map_err(|error| refuse(&error))?;
    addrs.next().ok_or_else(|| refuse(&"no address"))
}

/// Starts the server that is part of this program.
async fn listen() -> Result<(SocketAddr, String, Option<Owned>), Failure> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listening = Listening::start(Config::default(), &[any]).await;
    let listening = listening.map_err(Failure::local("in-process server"))?;
    let addr = listening.addrs()[0];
    let release = Config::default().release;
    let description =
        format!("in-process server (as ZooKeeper {release}), started for this at {addr}");
    Ok((addr, description, Some(Box::new(listening))))
}

/// Starts whatever ZooKeeper can be had.
async fn start(install: Install) -> Result<(SocketAddr, String, Option<Owned>), Failure> {
    let unavailable = |error: real::Error| Failure::new(Exit::Unavailable, error);
    let mut locator = Locator::from_env();
    if install == Install::Allowed {
        locator = locator.install(install);
    }
    // Looked up by itself for its source, which a server does not tell; the second time is quick.
    let search = locator.clone();
    let found = tokio::task::spawn_blocking(move || search.locate(Wanted::Any)).await;
    let found = found.expect("locating neither panics nor is cancelled");
    let found = found.map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("{error}, or by --install"))
    })?;
    let server = Server::builder().locator(locator).start().await.map_err(unavailable)?;
    let source = match found.source() {
        Source::Home => "from ZK_TESTKIT_HOME",
        Source::Maven => "fetched by Maven",
        Source::Debian => "from Debian's package",
    };
    let addr = server.addr();
    let description =
        format!("ZooKeeper {} ({source}), started for this at {addr}", server.version());
    Ok((addr, description, Some(Box::new(server))))
}
