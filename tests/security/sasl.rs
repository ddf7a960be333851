//! Identities by SASL's DIGEST-MD5, on real servers that have it, and on servers that only pretend.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use zk_client::{
    AclList, BoxFuture, Client, ConnectError, ConnectOptions, DigestMd5, ErrorCode, Id, LinkError,
    OpCode, Perms, ReadError, Rejection, SaslExchange, SaslFault, SaslInput, SaslMechanism, Secret,
    SessionEnd,
};
use zk_testkit::{
    proxy::{Direction, Proxy},
    real::{Release, Server},
    server::{Config, Listening},
};
use zk_tests::patience::closed;
use zk_tests::pretender::{Says, pretender};

const RELEASES: [Release; 2] = [Release::V3_8, Release::V3_9];

/// One name that fits into ASCII, one password that fits into Latin-1, one that fits into neither.
const USERS: [(&str, &str); 3] =
    [("ann", "secret"), ("bob", "p\u{e4}ssw\u{f6}rd"), ("eve", "\u{5bc6}\u{7801}")];

pub(crate) async fn server(release: Release, lines: &[&str]) -> Server {
    let users = USERS.map(|(user, password)| format!("user_{user}=\"{password}\"")).join("\n");
    let module = "org.apache.zookeeper.server.auth.DigestLoginModule";
    let provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider";
    let builder = Server::builder()
        .release(release)
        .file("jaas.conf", format!("Server {{\n{module} required\n{users};\n}};\n"))
        .property("java.security.auth.login.config", "{files}/jaas.conf")
        .config(format!("authProvider.1={provider}"));
    let builder = lines.iter().fold(builder, |builder, line| builder.config(*line));
    builder.start().await.unwrap()
}

/// A server that knows the users: a real one, or the one that is in process.
enum Host {
    Real(Box<Server>),
    InProcess(Listening),
}

impl Host {
    /// `strict`: it serves no others.
    async fn start(real: Option<Release>, strict: bool) -> Self {
        let lines = ["sessionRequireClientSASLAuth=true"];
        if let Some(release) = real {
            let real = server(release, &lines[..usize::from(strict)]).await;
            return Self::Real(Box::new(real));
        }
        let mut config = Config::default();
        config.sasl_users = USERS.map(|(user, password)| (user.into(), password.into())).into();
        config.enforce_sasl = strict;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::InProcess(Listening::start(config, &[any]).await.unwrap())
    }

    fn addr(&self) -> SocketAddr {
        match self {
            Self::Real(server) => server.addr(),
            Self::InProcess(server) => server.addrs()[0],
        }
    }

    fn connect_string(&self) -> String {
        self.addr().to_string()
    }
}

const HOSTS: [Option<Release>; 3] = [None, Some(Release::V3_8), Some(Release::V3_9)];

pub(crate) fn options(servers: &str) -> ConnectOptions {
    ConnectOptions::new(servers).unwrap().connect_deadline(Some(Duration::from_secs(10)))
}

fn only(user: &str) -> AclList {
    AclList::from_iter([Id::sasl(user).may(Perms::ALL)])
}

#[tokio::test]
async fn user_is_known_on_every_connection() {
    for host in HOSTS {
        let server = Host::start(host, false).await;
        let proxy = Proxy::start(server.addr()).await.unwrap();
        for (user, password) in USERS {
            let sasl = DigestMd5::new(user, password);
            let zk = options(&proxy.connect_string()).sasl(sasl).connect().await.unwrap();
            let path = format!("/{user}");
            zk.create(&path, b"x").acl(&only(user)).await.unwrap();
            zk.get(&path).await.unwrap();
            let mut session = zk.session();
            let epoch = session.epoch();
            proxy.reset_all();
            while session.epoch() == epoch {
                session.changed().await;
            }
            zk.get(&path).await.unwrap();
            closed(&zk).await;
        }
        let zk = options(&server.connect_string()).sasl(DigestMd5::new("ann", "secret"));
        let zk = zk.connect().await.unwrap();
        let refused = ReadError::Rejected(Rejection::NoAuth);
        assert_eq!(zk.get("/bob").await.unwrap_err(), refused);
    }
}

#[tokio::test]
async fn sasl_auth_watches_and_requests_in_order() {
    for release in RELEASES {
        let server = server(release, &[]).await;
        let proxy = Proxy::start(server.addr()).await.unwrap();
        let options = options(&proxy.connect_string()).sasl(DigestMd5::new("ann", "secret"));
        let zk = options.auth("digest", "x:y").connect().await.unwrap();
        zk.create("/a", b"").await.unwrap();
        let (_, watch) = zk.get("/a").watch().await.unwrap();
        proxy.reset_all();
        // The second goes out with the next connection, whatever becomes of the first.
        let (_, read) = (zk.set("/a", b"x").await, zk.get("/a").await);
        read.unwrap();
        let frames = proxy.frames();
        let last = frames.iter().map(|frame| frame.connection).max().unwrap();
        let told = frames.of_connection(last);
        let told = told.iter().filter(|frame| frame.direction == Direction::ToServer);
        let told: Vec<OpCode> = told.filter_map(|frame| frame.op).collect();
        let begin = [OpCode::SASL, OpCode::SASL, OpCode::AUTH, OpCode::SET_WATCHES];
        let told = told.strip_prefix(&[OpCode::CREATE_SESSION]).unwrap_or(&told);
        assert_eq!(told[..4], begin, "{told:?}");
        drop(watch);
    }
}

#[tokio::test]
async fn wrong_password_ends_the_session() {
    for host in HOSTS {
        let server = Host::start(host, false).await;
        // Not with the password of another user: for users whom it does not know, 3.8.0 asks for that of the last one.
        for sasl in [DigestMd5::new("ann", "wrong"), DigestMd5::new("nobody", "wrong")] {
            let outcome = options(&server.connect_string()).sasl(sasl).connect().await;
            let failed = ConnectError::SessionEnded(SessionEnd::AuthFailed);
            assert_eq!(outcome.unwrap_err(), failed, "{host:?}");
        }
    }
}

#[tokio::test]
async fn server_without_sasl_is_no_success() {
    for release in RELEASES {
        let server = Server::start(release).await.unwrap();
        let sasl = DigestMd5::new("ann", "secret");
        let outcome = options(&server.connect_string()).sasl(sasl).connect().await;
        let failed = ConnectError::SessionEnded(SessionEnd::AuthFailed);
        assert_eq!(outcome.unwrap_err(), failed, "{release}");
    }
}

#[tokio::test]
async fn sasl_required_server_serves_sasl_clients() {
    for host in HOSTS {
        let server = Host::start(host, true).await;
        let with = options(&server.connect_string()).sasl(DigestMd5::new("ann", "secret"));
        let zk = with.connect().await.unwrap();
        zk.create("/a", b"").await.unwrap();
        let stranger = options(&server.connect_string()).connect().await.unwrap();
        let error = stranger.exists("/a").await.unwrap_err();
        assert!(
            matches!(error, ReadError::Rejected(_)) || error.session_end().is_some(),
            "{error:?}"
        );
        assert_eq!(stranger.session().ended().await, SessionEnd::AuthFailed);
    }
}

/// Why the last attempt failed.
#[track_caller]
fn why(outcome: Result<Client, ConnectError>) -> LinkError {
    match outcome {
        Err(ConnectError::TimedOut { last: Some((_, error)) }) => error,
        other => panic!("{other:?}"),
    }
}

async fn beside(says: Says, sasl: impl SaslMechanism) -> Result<Client, ConnectError> {
    let (addr, _tasks) = pretender(says).await;
    let options = options(&addr.to_string()).connect_deadline(Some(Duration::from_secs(2)));
    options.sasl(sasl).connect().await
}

const FORGED: &[u8] = b"rspauth=00000000000000000000000000000000";
const CHALLENGE: &[u8] = b"realm=\"zk-sasl-md5\",nonce=\"x\",charset=utf-8,algorithm=md5-sess";

fn token(bytes: &'static [u8]) -> Option<(ErrorCode, Option<Bytes>)> {
    Some((ErrorCode::OK, Some(Bytes::from_static(bytes))))
}

#[tokio::test]
async fn server_without_proof_gets_no_session() {
    let ann = || DigestMd5::new("ann", "secret");
    let says: Says = |number| token(if number == 0 { CHALLENGE } else { FORGED });
    assert_eq!(why(beside(says, ann()).await), LinkError::Sasl(SaslFault::Unproved));
    let says: Says = |number| token(if number == 0 { CHALLENGE } else { b"" });
    assert_eq!(why(beside(says, ann()).await), LinkError::Sasl(SaslFault::Unproved));
    let says: Says = |_| token(b"\xFF\x00garbage");
    let garbage = why(beside(says, ann()).await);
    assert!(matches!(garbage, LinkError::Sasl(SaslFault::Malformed(_))), "{garbage:?}");
}

#[tokio::test]
async fn connection_lost_in_sasl_is_no_refusal() {
    let says: Says = |number| if number == 0 { token(CHALLENGE) } else { None };
    let found = why(beside(says, DigestMd5::new("ann", "secret")).await);
    assert!(matches!(found, LinkError::Closed | LinkError::Reset), "{found:?}");
}

/// A mechanism that goes on for as long as the server does.
#[derive(Debug)]
struct Chatty;

impl SaslMechanism for Chatty {
    fn begin(&self, _server: &str) -> Box<dyn SaslExchange> {
        Box::new(Self)
    }
}

impl SaslExchange for Chatty {
    fn step(
        &mut self,
        _said: SaslInput,
    ) -> BoxFuture<'_, Result<Option<Secret<Bytes>>, SaslFault>> {
        Box::pin(std::future::ready(Ok(Some(Secret(Bytes::from_static(b"go on"))))))
    }
}

#[tokio::test]
async fn an_exchange_without_end_is_ended() {
    let found = why(beside(|_| token(b"and on"), Chatty).await);
    assert_eq!(found, LinkError::Sasl(SaslFault::Endless(16)));
}

#[tokio::test]
async fn unproved_server_may_send_only_a_little() {
    let says: Says = |_| token(&[0; 1 << 17]);
    let found = why(beside(says, Chatty).await);
    assert!(matches!(found, LinkError::Protocol(_)), "{found:?}");
}

#[tokio::test]
async fn a_pretender_is_left_for_a_genuine_server() {
    let says: Says = |number| token(if number == 0 { CHALLENGE } else { FORGED });
    let (addr, _tasks) = pretender(says).await;
    let genuine = server(Release::V3_9, &[]).await;
    let servers = format!("{addr},{}", genuine.connect_string());
    // Whichever is asked first: a session that the pretender has made up is never shown.
    for seed in 0..4 {
        let options = options(&servers).seed(seed).sasl(DigestMd5::new("ann", "secret"));
        let zk = options.connect().await.unwrap();
        zk.exists("/a").await.unwrap();
    }
}
