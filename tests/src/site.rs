//! Where a test takes place: on a real server, or on the one of this process.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use zk_testkit::{
    real::{Release, Server},
    server::{Config, Listening, Member},
};

/// Which server a test takes place on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process of this release line.
    Real(Release),
    /// The server of this process, behaving as that release line does.
    InProcess(Release),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real(release) => write!(f, "ZooKeeper {release}"),
            Self::InProcess(release) => write!(f, "the in-process server, as {release}"),
        }
    }
}

/// A server that a test takes place on.
#[derive(Debug)]
pub enum Site {
    /// A process of its own.
    Real(Box<Server>),
    /// In this process.
    InProcess(Listening),
}

impl Site {
    /// Every kind of server that a test of the client should pass on.
    pub const ALL: [Kind; 4] = [
        Kind::InProcess(Release::V3_8),
        Kind::InProcess(Release::V3_9),
        Kind::Real(Release::V3_8),
        Kind::Real(Release::V3_9),
    ];

    /// Starts a server.
    ///
    /// # Panics
    /// It does not start.
    pub async fn start(kind: Kind) -> Self {
        match kind {
            Kind::Real(release) => Self::Real(Box::new(Server::start(release).await.unwrap())),
            Kind::InProcess(release) => {
                let mut config = Config::default();
                config.release = release;
                config.extended_types = true;
                config.tick = std::time::Duration::from_millis(200);
                let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                Self::InProcess(Listening::start(config, &[any]).await.unwrap())
            }
        }
    }

    /// Where clients connect.
    pub fn addr(&self) -> SocketAddr {
        match self {
            Self::Real(server) => server.addr(),
            Self::InProcess(listening) => listening.addrs()[0],
        }
    }

    /// The same, as a client's connection string.
    pub fn connect_string(&self) -> String {
        self.addr().to_string()
    }

    /// Ends the server as SIGKILL does.
    ///
    /// # Panics
    /// It cannot be ended.
    pub async fn kill(&self) {
        match self {
            Self::Real(server) => server.kill().await.unwrap(),
            Self::InProcess(listening) => {
                listening.with(|ensemble, now| ensemble.stop(now, Member(0)));
            }
        }
    }

    /// Starts it again, with what it had on its disk.
    ///
    /// # Panics
    /// It does not start.
    pub async fn restart(&self) {
        match self {
            Self::Real(server) => server.restart().await.unwrap(),
            Self::InProcess(listening) => {
                listening.with(|ensemble, now| ensemble.start(now, Member(0)));
            }
        }
    }

    /// Asks a question in four letters.
    ///
    /// # Panics
    /// There is no answer.
    pub async fn four_letter(&self, word: &str) -> String {
        let mut stream = TcpStream::connect(self.addr()).await.unwrap();
        stream.write_all(word.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}
