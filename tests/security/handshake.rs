//! Connections that break in the middle of a handshake, after every single byte.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use zk_client::{
    BoxFuture, Client, Connect, ConnectOptions, CreateMode, ResolvedConnect, TlsConnect, Transport,
    WriteError,
    rustls::{
        ClientConfig, RootCertStore,
        client::Resumption,
        crypto::ring,
        pki_types::{CertificateDer, pem::PemObject as _},
    },
};
use zk_testkit::{
    TestServer,
    tls::{Authority, ClientAuth, TlsFront},
};

/// Connections of which the first ones break, each after one byte more than the one before, and the first after
/// `from`.
#[derive(Clone)]
struct Breaking {
    /// Which direction's bytes are counted.
    direction: Direction,
    from: usize,
    /// How many connections break.
    breaks: usize,
    connections: Arc<AtomicUsize>,
    /// Bytes of all connections.
    bytes: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Read,
    Written,
}

impl Breaking {
    fn new(direction: Direction, breaks: usize) -> Self {
        let (connections, bytes) = (Arc::default(), Arc::default());
        Self { direction, from: 0, breaks, connections, bytes }
    }
}

struct BreakingStream {
    inner: Box<dyn Transport>,
    direction: Direction,
    left: usize,
    bytes: Arc<AtomicUsize>,
}

impl BreakingStream {
    /// How many bytes may still go in that direction.
    fn limit(&self, direction: Direction) -> usize {
        if self.direction == direction { self.left } else { usize::MAX }
    }

    fn passed(&mut self, direction: Direction, len: usize) {
        if self.direction == direction {
            self.left -= len;
            self.bytes.fetch_add(len, Ordering::Relaxed);
        }
    }
}

impl Connect for Breaking {
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let left = if number < self.breaks { self.from + number } else { usize::MAX };
        let (inner, direction) = (ResolvedConnect::default().connect(server), self.direction);
        let bytes = self.bytes.clone();
        Box::pin(async move {
            let inner = inner.await?;
            Ok(Box::new(BreakingStream { inner, direction, left, bytes }) as Box<dyn Transport>)
        })
    }
}

impl AsyncRead for BreakingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let limit = self.limit(Direction::Read);
        if limit == 0 {
            // As if the server had hung up.
            return Poll::Ready(Ok(()));
        }
        let mut part = vec![0; limit.min(buf.remaining())];
        let mut part = ReadBuf::new(&mut part);
        let polled = Pin::new(&mut self.inner).poll_read(cx, &mut part);
        buf.put_slice(part.filled());
        self.passed(Direction::Read, part.filled().len());
        polled
    }
}

impl AsyncWrite for BreakingStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let limit = self.limit(Direction::Written);
        if limit == 0 {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let part = &bytes[..bytes.len().min(limit)];
        let polled = Pin::new(&mut self.inner).poll_write(cx, part);
        if let Poll::Ready(Ok(len)) = polled {
            self.passed(Direction::Written, len);
        }
        polled
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Handshakes that are all alike: none goes on from an earlier one.
fn config(authority: &Authority) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

/// How much handshakes differ in length: signatures are a few bytes longer or shorter.
const LEN_VARIES: usize = 12;

/// A server behind TLS.
struct Secured {
    authority: Authority,
    front: TlsFront,
    _server: TestServer,
}

impl Secured {
    async fn start() -> Self {
        let authority = Authority::new("ours");
        let certificate = authority.server(&["127.0.0.1"]);
        let server = TestServer::start().await.unwrap();
        let front = TlsFront::start(server.proxy().addr(), &certificate, ClientAuth::None);
        Self { authority, front: front.await.unwrap(), _server: server }
    }

    async fn connect(&self, breaking: &Breaking) -> Client {
        // A client tries all servers before it pauses.
        let servers = vec![self.front.addr().to_string(); breaking.breaks + 1].join(",");
        let tls = TlsConnect::with_config(config(&self.authority)).over(breaking.clone());
        let options = ConnectOptions::new(&servers).unwrap().connector(tls);
        // There are many to break.
        options.connect_deadline(None).connect().await.unwrap()
    }

    /// How many bytes a connection takes that is not used for anything.
    async fn handshake_len(&self, direction: Direction) -> usize {
        let whole = Breaking::new(direction, 0);
        self.connect(&whole).await;
        whole.bytes.load(Ordering::Relaxed)
    }
}

/// Up to the session's own handshake, which goes inside. One client goes through all of that.
async fn survives_breaks(direction: Direction) {
    let secured = Secured::start().await;
    let breaks = secured.handshake_len(direction).await - LEN_VARIES;
    assert!(breaks > 300, "the handshake is not where this test looks: {breaks} bytes");

    let breaking = Breaking::new(direction, breaks);
    let zk = secured.connect(&breaking).await;
    assert_eq!(breaking.connections.load(Ordering::Relaxed), breaks + 1, "{direction:?}");
    zk.create("/a", b"x").await.unwrap();
    assert_eq!(&*zk.get("/a").await.unwrap().0, b"x");
}

#[tokio::test]
async fn handshake_cut_while_reading_is_retried() {
    survives_breaks(Direction::Read).await;
}

#[tokio::test]
async fn handshake_cut_while_writing_is_retried() {
    survives_breaks(Direction::Written).await;
}

/// TLS says goodbye before it hangs up. A connection that ends without was cut: what has come of an answer
/// does not count, and the session goes on over the next connection.
#[tokio::test]
async fn close_without_tls_alert_loses_requests() {
    let secured = Secured::start().await;
    let handshake = secured.handshake_len(Direction::Read).await;
    // In the middle of the answer to the first request, however long the handshake was.
    let from = handshake + 2 * LEN_VARIES;
    let cut = Breaking { from, ..Breaking::new(Direction::Read, 1) };
    let zk = secured.connect(&cut).await;
    let session = zk.session().id();
    assert_eq!(cut.connections.load(Ordering::Relaxed), 1);
    let (children, _) = zk.children("/").await.unwrap();
    assert_eq!(children, ["zookeeper"]);
    assert_eq!(cut.connections.load(Ordering::Relaxed), 2);
    assert_eq!(zk.session().id(), session);
}

/// TLS takes a long write in parts, and does not tell which of them have left when one fails: what was in it is in doubt.
#[tokio::test]
async fn requests_of_a_write_that_failed_in_parts_are_not_sent_again() {
    const CREATES: usize = 3000;
    let secured = Secured::start().await;
    let handshake = secured.handshake_len(Direction::Written).await;
    let cut = Breaking { from: handshake + 100 * 1024, ..Breaking::new(Direction::Written, 1) };
    let zk = secured.connect(&cut).await;
    zk.create("/created", b"").await.unwrap();
    let create = || zk.create("/created/n-", b"").mode(CreateMode::PersistentSequential).submit();
    let creates: Vec<_> = (0..CREATES).map(|_| create()).collect();
    let (mut done, mut in_doubt) = (0, 0);
    for create in creates {
        match create.await {
            Ok(_) => done += 1,
            Err(WriteError::InDoubt { .. }) => in_doubt += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(cut.connections.load(Ordering::Relaxed), 2);
    assert!(in_doubt > 0, "{done} are done");
    zk.sync("/created").await.unwrap();
    let made = zk.children("/created").await.unwrap().0.len();
    assert!((done..=done + in_doubt).contains(&made), "{made}: {done} done, {in_doubt} in doubt");
}
