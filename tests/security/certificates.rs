//! Good and bad certificates, on both sides, and ports that are not what they seem.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use zk_client::{
    AclList, Client, ConnectError, ConnectOptions, Id, LinkError, Perms, ReadError, Rejection,
    ResolvedConnect, TlsFault, TlsOptions,
};
use zk_testkit::{
    TestServer,
    real::{Release, Server},
    server::{Config, Listening, Member},
    tls::{Authority, Blemish, ClientAuth, Issued, ServerTls},
};
use zk_tests::patience::closed;

/// How long clients try that are not let in. Only failures wait for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The servers that the matrix is tried on: one of each kind, showing this certificate.
enum Shown {
    InProcess { server: Listening, secured: SocketAddr },
    Real(Box<Server>),
}

impl Shown {
    async fn start(real: Option<Release>, certificate: &Issued, clients: ClientAuth<'_>) -> Self {
        match real {
            Some(release) => {
                let server = Server::builder().release(release).secure(certificate, clients);
                Self::Real(Box::new(server.start().await.unwrap()))
            }
            None => {
                let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let mut config = Config::default();
                config.x509 = true;
                let mut server = Listening::start(config, &[any]).await.unwrap();
                let tls = ServerTls::issued(certificate, clients);
                let secured = server.secure(Member(0), any, &tls).await.unwrap();
                Self::InProcess { server, secured }
            }
        }
    }

    fn addr(&self) -> SocketAddr {
        match self {
            Self::InProcess { secured, .. } => *secured,
            Self::Real(server) => server.secure_addr().unwrap(),
        }
    }

    fn plain_addr(&self) -> SocketAddr {
        match self {
            Self::InProcess { server, .. } => server.addrs()[0],
            Self::Real(server) => server.addr(),
        }
    }
}

const KINDS: [Option<Release>; 3] = [None, Some(Release::V3_8), Some(Release::V3_9)];

/// Side by side: most of the time is spent waiting for clients to give up.
async fn on_each_kind(test: impl AsyncFn(Option<Release>)) {
    let [front, older, newer] = KINDS;
    tokio::join!(Box::pin(test(front)), Box::pin(test(older)), Box::pin(test(newer)));
}

async fn connect(host: &str, addr: SocketAddr, tls: TlsOptions) -> Result<Client, ConnectError> {
    let options = ConnectOptions::new(&format!("{host}:{}", addr.port())).unwrap();
    outcome(options.tls(tls).unwrap()).await
}

/// A resolver and a connector say where connections go, not whether they are secured.
#[tokio::test]
async fn resolver_and_connector_do_not_take_tls_away() {
    let server = TestServer::start().await.unwrap();
    let addr: SocketAddr = server.connect_string().parse().unwrap();
    let authority = Authority::new("ca");
    let resolver = move |_: &str| std::future::ready(Ok(vec![addr]));
    let plain = || {
        let options = ConnectOptions::new("zk.example:2181").unwrap();
        options.connect_deadline(Some(Duration::from_secs(1)))
    };
    let tls = || TlsOptions::new().ca_pem(authority.pem());
    let _plain = plain().resolver(resolver).connect().await.expect("it is there, without TLS");
    let secured = [
        plain().tls(tls()).unwrap().resolver(resolver),
        plain().resolver(resolver).tls(tls()).unwrap(),
        plain().tls(tls()).unwrap().connector(ResolvedConnect::new(resolver)),
        plain().connector(ResolvedConnect::new(resolver)).tls(tls()).unwrap(),
    ];
    for options in secured {
        let error = options.connect().await.map(drop).unwrap_err();
        assert!(matches!(error, ConnectError::TimedOut { .. }), "{error:?}");
    }
    assert_eq!(server.sessions().len(), 1, "of the plain one");
}

/// Tries until the server has accepted or refused, which takes time if it has just started.
async fn outcome(options: ConnectOptions) -> Result<Client, ConnectError> {
    let options = options.connect_deadline(Some(PATIENCE));
    loop {
        match options.clone().connect().await {
            Err(ConnectError::TimedOut { last: None }) => {}
            outcome => return outcome,
        }
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

#[track_caller]
fn fault(outcome: Result<Client, ConnectError>) -> TlsFault {
    match why(outcome) {
        LinkError::Tls(fault) => fault,
        other => panic!("{other:?}"),
    }
}

fn trusting(authority: &Authority) -> TlsOptions {
    TlsOptions::new().ca_pem(authority.pem())
}

#[tokio::test]
async fn both_certificates_are_verified() {
    on_each_kind(async |real| {
        let authority = Authority::new("ours");
        let certificate = authority.server(&["localhost", "127.0.0.1"]);
        let shown = Shown::start(real, &certificate, ClientAuth::Need(&authority)).await;
        for host in ["localhost", "127.0.0.1"] {
            let me = authority.client("ann");
            let tls = trusting(&authority).identity_pem(me.chain, me.key);
            let zk = connect(host, shown.addr(), tls).await.unwrap();
            zk.create(&format!("/{host}"), b"x").await.unwrap();
            let path = format!("/{host}-own");
            let acl = AclList::from_iter([Id::x509("CN=ann").may(Perms::ALL)]);
            zk.create(&path, b"x").acl(&acl).await.unwrap();
            zk.get(&path).await.unwrap();
            let other = authority.client("bob");
            let tls = trusting(&authority).identity_pem(other.chain, other.key);
            let bob = connect(host, shown.addr(), tls).await.unwrap();
            let refused = ReadError::Rejected(Rejection::NoAuth);
            assert_eq!(bob.get(&path).await.unwrap_err(), refused, "{real:?}");
            closed(&bob).await;
            closed(&zk).await;
        }
    })
    .await;
}

/// Authorities add up, wherever they come from.
#[tokio::test]
async fn each_of_several_authorities_is_trusted() {
    on_each_kind(async |real| {
        let authorities = [Authority::new("first"), Authority::new("second")];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), authorities[1].pem()).unwrap();
        let both = [
            TlsOptions::new().ca_pem(authorities[0].pem()).ca_pem(authorities[1].pem()),
            TlsOptions::new().ca_pem(authorities[0].pem()).ca_file(file.path()),
            TlsOptions::new().ca_file(file.path()).ca_pem(authorities[0].pem()),
        ];
        for authority in &authorities {
            let certificate = authority.server(&["localhost"]);
            let shown = Shown::start(real, &certificate, ClientAuth::None).await;
            for tls in &both {
                let zk = connect("localhost", shown.addr(), tls.clone()).await.unwrap();
                closed(&zk).await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn bad_server_certificate_is_a_typed_fault() {
    on_each_kind(async |real| {
        let ours = Authority::new("ours");
        let good = ours.server(&["localhost"]);
        let cases = [
            (ours.blemished(&["localhost"], Blemish::Expired), TlsFault::Expired),
            (ours.blemished(&["localhost"], Blemish::NotYetValid), TlsFault::NotYetValid),
            (ours.server(&["elsewhere.example"]), TlsFault::WrongName),
            (ours.server(&["127.0.0.1"]), TlsFault::WrongName),
            (Authority::new("theirs").server(&["localhost"]), TlsFault::UnknownAuthority),
            (Authority::self_signed(&["localhost"]), TlsFault::UnknownAuthority),
            (good.clone(), TlsFault::Revoked),
        ];
        // A fault is the client's to find, whatever shows the certificate: a real server of each release shows one of them.
        let shown_by_real = match real {
            None => 0..cases.len(),
            Some(Release::V3_8) => 0..1,
            Some(_) => 3..4,
        };
        let revoked = ours.revoke(&[&good]);
        let tls = trusting(&ours).revoked_pem(revoked);
        for (certificate, expected) in &cases[shown_by_real] {
            let shown = Shown::start(real, certificate, ClientAuth::None).await;
            let found = fault(connect("localhost", shown.addr(), tls.clone()).await);
            assert_eq!(found, *expected, "{real:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn address_matches_no_other_name_or_address() {
    let ours = Authority::new("ours");
    for names in [&["127.0.0.2"][..], &["localhost"]] {
        let shown = Shown::start(None, &ours.server(names), ClientAuth::None).await;
        let found = fault(connect("127.0.0.1", shown.addr(), trusting(&ours)).await);
        assert_eq!(found, TlsFault::WrongName, "{names:?}");
    }
}

/// A server's answer to whatever it is asked: TLS 1.1, and the only cipher that all clients had.
fn old_hello() -> Vec<u8> {
    let random = [7; 32];
    let hello = [&[3, 2][..], &random, &[0], &[0, 0x2f], &[0]].concat();
    let len = u8::try_from(hello.len()).unwrap();
    [&[22, 3, 2, 0, len + 4][..], &[2, 0, 0, len], &hello].concat()
}

/// Why nothing comes of a port that says this to everybody.
async fn fault_of_saying(words: Vec<u8>) -> TlsFault {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(&words).await.unwrap();
            // Until the client has said why it goes.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let found = fault(connect("localhost", addr, trusting(&Authority::new("ours"))).await);
    serving.abort();
    found
}

#[tokio::test]
async fn obsolete_tls_versions_are_refused() {
    let found = fault_of_saying(old_hello()).await;
    assert!(matches!(found, TlsFault::Incompatible(_)), "{found:?}");
}

/// Such as a web server that is asked on the wrong port.
#[tokio::test]
async fn port_that_speaks_something_else_is_named() {
    let found = fault_of_saying(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).await;
    assert_eq!(found, TlsFault::NotSpoken);
}

#[tokio::test]
async fn client_certificate_is_no_server_identity() {
    let ours = Authority::new("ours");
    let certificate = ours.blemished(&["localhost"], Blemish::WrongPurpose);
    let shown = Shown::start(None, &certificate, ClientAuth::None).await;
    let found = fault(connect("localhost", shown.addr(), trusting(&ours)).await);
    assert!(matches!(found, TlsFault::NotAccepted(_)), "{found:?}");
}

#[tokio::test]
async fn unrevoked_certificate_passes_with_a_crl() {
    let ours = Authority::new("ours");
    let (good, bad) = (ours.server(&["localhost"]), ours.server(&["localhost"]));
    let shown = Shown::start(None, &good, ClientAuth::None).await;
    let tls = trusting(&ours).revoked_pem(ours.revoke(&[&bad]));
    connect("localhost", shown.addr(), tls).await.unwrap();

    let file = tempfile::NamedTempFile::new().unwrap();
    let from_file = trusting(&ours).revoked_file(file.path());
    std::fs::write(file.path(), ours.revoke(&[&bad])).unwrap();
    connect("localhost", shown.addr(), from_file.clone()).await.unwrap();
    std::fs::write(file.path(), ours.revoke(&[&good])).unwrap();
    let found = fault(connect("localhost", shown.addr(), from_file).await);
    assert_eq!(found, TlsFault::Revoked);
}

/// In TLS 1.3 the refusal comes behind the handshake, and can be overtaken by the end of the connection. What it never
/// is: a session.
#[tokio::test]
async fn missing_client_certificate_is_refused() {
    on_each_kind(async |real| {
        let ours = Authority::new("ours");
        let certificate = ours.server(&["localhost"]);
        let shown = Shown::start(real, &certificate, ClientAuth::Need(&ours)).await;
        let stranger = Authority::new("theirs").client("mallory");
        let strange = trusting(&ours).identity_pem(stranger.chain, stranger.key);
        let (nobody, somebody) = tokio::join!(
            connect("localhost", shown.addr(), trusting(&ours)),
            connect("localhost", shown.addr(), strange),
        );
        for outcome in [nobody, somebody] {
            let found = why(outcome);
            let refused = matches!(found, LinkError::Tls(TlsFault::Refused(_)));
            assert!(refused || matches!(found, LinkError::Closed | LinkError::Reset), "{found:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn no_fallback_to_plain_connections() {
    on_each_kind(async |real| {
        let ours = Authority::new("ours");
        let certificate = ours.server(&["localhost"]);
        let shown = Shown::start(real, &certificate, ClientAuth::None).await;
        let found = fault(connect("localhost", shown.plain_addr(), trusting(&ours)).await);
        assert_eq!(found, TlsFault::CutOff, "{real:?}");
    })
    .await;
}

#[tokio::test]
async fn plain_client_gets_no_session_on_tls_port() {
    on_each_kind(async |real| {
        let ours = Authority::new("ours");
        let certificate = ours.server(&["localhost"]);
        let shown = Shown::start(real, &certificate, ClientAuth::None).await;
        let options = ConnectOptions::new(&shown.addr().to_string()).unwrap();
        match (why(outcome(options).await), real) {
            (LinkError::Tls(TlsFault::Required), None) => {}
            // ZooKeeper says nothing.
            (LinkError::Closed | LinkError::Reset, Some(_)) => {}
            other => panic!("{other:?}"),
        }
    })
    .await;
}

#[tokio::test]
async fn a_paused_server_agrees_on_no_tls() {
    let authority = Authority::new("test");
    let certificate = authority.server(&["127.0.0.1"]);
    let shown = Shown::start(None, &certificate, ClientAuth::None).await;
    let Shown::InProcess { server, secured } = &shown else { panic!("{}", shown.addr()) };
    server.pause();
    let mut stream = TcpStream::connect(secured).await.unwrap();
    // It is an error at once to who reads it.
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let said = timeout(Duration::from_millis(100), stream.read_to_end(&mut answer)).await;
    assert!(said.is_err(), "{said:?} {answer:?}");
    server.resume();
    // However it ends the connection.
    let _ = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await.unwrap();
}
