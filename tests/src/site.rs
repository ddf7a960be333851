//! Where a test takes place: on a real server, or on the one of this process.

use std::{
    fmt,
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime,
    sync::OnceCell,
    time::timeout,
};
use zk_client::{ConnectOptions, TlsOptions};
use zk_testkit::{
    real::{Release, Server},
    server::{Config, Listening, Member},
    tls::{Authority, ClientAuth, TlsFront},
};

/// Which server a test takes place on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process of this release line.
    Real(Release),
    /// The server of this process, behaving as that release line does.
    InProcess(Release),
    /// Like `Real`, with clients that come by TLS and show a certificate.
    RealSecured(Release),
    /// Like `InProcess`, with clients that come by TLS and show a certificate.
    InProcessSecured(Release),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Real(release) => write!(f, "ZooKeeper {release}"),
            Self::InProcess(release) => write!(f, "the in-process server, as {release}"),
            Self::RealSecured(release) => write!(f, "{}, by TLS", Self::Real(release)),
            Self::InProcessSecured(release) => write!(f, "{}, by TLS", Self::InProcess(release)),
        }
    }
}

impl Kind {
    /// The release line that it is of, or behaves as.
    #[must_use]
    pub const fn release(self) -> Release {
        match self {
            Self::Real(release)
            | Self::InProcess(release)
            | Self::RealSecured(release)
            | Self::InProcessSecured(release) => release,
        }
    }

    /// Whether it is a process, which takes a second to start.
    #[must_use]
    pub const fn is_real(self) -> bool {
        matches!(self, Self::Real(_) | Self::RealSecured(_))
    }

    /// Its place in [`Site::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        let place = Site::ALL.iter().position(|kind| *kind == self);
        place.expect("every kind is there")
    }
}

/// A server that a test takes place on.
#[derive(Debug)]
pub struct Site {
    server: Backend,
    secured: Option<Secured>,
}

#[derive(Debug)]
enum Backend {
    /// A process of its own.
    Real(Box<Server>),
    /// In this process.
    InProcess(Listening),
}

/// One real server of each kind for all tests of a process: they keep apart by their paths. Nothing ever drops
/// them; their watchdogs end them with the process.
static SHARED: [OnceCell<Site>; Site::ALL.len()] =
    [const { OnceCell::const_new() }; Site::ALL.len()];

/// Longest session that servers grant: it outlives a restart of a server on a busy machine.
pub const SESSION_TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// What sessions ask for that do not have to end: more than a client on a busy machine is kept waiting.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// How many clients there have been that came by TLS.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// The way in by TLS.
#[derive(Debug)]
struct Secured {
    addr: SocketAddr,
    authority: Authority,
    _front: Option<TlsFront>,
}

/// Far longer than any test takes on a busy machine, its turn at a server that tests restart included: one that waits for
/// what never comes fails by its name.
const TEST_TIME_MAX: Duration = Duration::from_secs(600);

/// How many lines of its log are told.
const LINES_TOLD: usize = 80;

/// Runs a test once for each of these kinds, side by side. Each has a thread to itself, which is named after it.
///
/// # Panics
/// The test does, or it waits for what does not come.
pub fn on_each(kinds: &[Kind], test: impl AsyncFn(Kind) + Sync) {
    on_each_with(kinds, runtime::Builder::new_current_thread, &|kind| Box::pin(test(kind)));
}

/// The same for a test whose tasks need several threads.
///
/// # Panics
/// The test does, or it waits for what does not come.
pub fn on_each_threaded(kinds: &[Kind], test: impl AsyncFn(Kind) + Sync) {
    let threaded = || {
        let mut builder = runtime::Builder::new_multi_thread();
        builder.worker_threads(2);
        builder
    };
    on_each_with(kinds, threaded, &|kind| Box::pin(test(kind)));
}

/// A test that is compiled by itself: threads and runtimes, which take longer, are compiled once for all tests.
type Boxed<'a> = dyn Fn(Kind) -> Pin<Box<dyn Future<Output = ()> + 'a>> + Sync + 'a;

fn on_each_with(kinds: &[Kind], runtime: fn() -> runtime::Builder, test: &Boxed<'_>) {
    thread::scope(|scope| {
        for &kind in kinds {
            let runtime = runtime().enable_all().build().unwrap();
            let thread = thread::Builder::new().name(kind.to_string());
            let run = move || {
                let _said = WhatItSaid(kind);
                let ended = runtime.block_on(async { timeout(TEST_TIME_MAX, test(kind)).await });
                ended.expect("the test waits for what does not come");
            };
            thread.spawn_scoped(scope, run).unwrap();
        }
    });
}

/// Tells, when a test fails on a real server that it shares, what that has logged last: whatever it has done to a client
/// is there.
struct WhatItSaid(Kind);

impl Drop for WhatItSaid {
    fn drop(&mut self) {
        let site = SHARED[self.0.index()].get().filter(|_| thread::panicking());
        if let Some(Site { server: Backend::Real(server), .. }) = site {
            eprintln!("the last lines of {}:\n{}", self.0, server.log_tail(LINES_TOLD));
        }
    }
}

impl Site {
    /// Every kind of server that a test of the client should pass on.
    pub const ALL: [Kind; 14] = {
        let [a, b, c, d, e, f] = Release::ALL;
        [
            Kind::InProcess(a),
            Kind::InProcess(b),
            Kind::InProcess(c),
            Kind::InProcess(d),
            Kind::InProcess(e),
            Kind::InProcess(f),
            Kind::Real(a),
            Kind::Real(b),
            Kind::Real(c),
            Kind::Real(d),
            Kind::Real(e),
            Kind::Real(f),
            Kind::InProcessSecured(f),
            Kind::RealSecured(f),
        ]
    };

    /// Those whose clients come without TLS: enough for what is built on the client, and has no say in how it connects.
    pub const PLAIN: [Kind; 4] = [
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
            Kind::Real(release) => {
                let server = Box::new(Server::start(release).await.unwrap());
                Self { server: Backend::Real(server), secured: None }
            }
            Kind::InProcess(release) => {
                Self { server: Backend::InProcess(in_process(release).await), secured: None }
            }
            Kind::RealSecured(release) => {
                let authority = Authority::new("test");
                let builder = Server::builder()
                    .release(release)
                    .secure(&authority.server(&["127.0.0.1"]), ClientAuth::Need(&authority));
                let server = builder.start().await.unwrap();
                let addr = server.secure_addr().unwrap();
                let secured = Secured { addr, authority, _front: None };
                Self { server: Backend::Real(Box::new(server)), secured: Some(secured) }
            }
            Kind::InProcessSecured(release) => {
                let authority = Authority::new("test");
                let certificate = authority.server(&["127.0.0.1"]);
                let listening = in_process(release).await;
                let (addr, clients) = (listening.addrs()[0], ClientAuth::Need(&authority));
                let front = TlsFront::start(addr, &certificate, clients).await.unwrap();
                let secured = Secured { addr: front.addr(), authority, _front: Some(front) };
                Self { server: Backend::InProcess(listening), secured: Some(secured) }
            }
        }
    }

    /// A server that others use too, at the same time, until the process ends: it must not be restarted. One in this
    /// process is the caller's alone: it lives as long as the caller's runtime, and starts at once.
    ///
    /// # Panics
    /// It does not start.
    pub async fn shared(kind: Kind) -> &'static Self {
        match kind.is_real() {
            true => SHARED[kind.index()].get_or_init(|| Self::start(kind)).await,
            false => Box::leak(Box::new(Self::start(kind).await)),
        }
    }

    /// What clients connect with.
    pub fn options(&self) -> ConnectOptions {
        self.options_for(&self.connect_string())
    }

    /// The same for a connection string that somehow contains [`connect_string`](Self::connect_string).
    ///
    /// # Panics
    /// It is none.
    pub fn options_for(&self, servers: &str) -> ConnectOptions {
        let options = ConnectOptions::new(servers).unwrap().session_timeout(SESSION_TIMEOUT);
        match &self.secured {
            Some(secured) => options.tls(secured.tls()).unwrap(),
            None => options,
        }
    }

    /// Where clients connect.
    pub fn connect_string(&self) -> String {
        self.secured.as_ref().map_or_else(|| self.addr(), |secured| secured.addr).to_string()
    }

    /// Where clients connect that come without TLS.
    pub fn addr(&self) -> SocketAddr {
        match &self.server {
            Backend::Real(server) => server.addr(),
            Backend::InProcess(listening) => listening.addrs()[0],
        }
    }

    /// Ends the server as SIGKILL does.
    ///
    /// # Panics
    /// It cannot be ended.
    pub async fn kill(&self) {
        match &self.server {
            Backend::Real(server) => server.kill().await.unwrap(),
            Backend::InProcess(listening) => {
                listening.with(|ensemble, now| ensemble.stop(now, Member(0)));
            }
        }
    }

    /// Starts it again, with what it had on its disk.
    ///
    /// # Panics
    /// It does not start.
    pub async fn restart(&self) {
        match &self.server {
            Backend::Real(server) => server.restart().await.unwrap(),
            Backend::InProcess(listening) => {
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

async fn in_process(release: Release) -> Listening {
    let mut config = Config::default();
    config.release = release;
    config.extended_types = true;
    config.tick = Duration::from_millis(200);
    // As real ones are set up here: sessions that are to outlive a busy machine do.
    config.session_timeout_max = Some(SESSION_TIMEOUT_MAX);
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Listening::start(config, &[any]).await.unwrap()
}

impl Secured {
    /// What a client needs that the authority knows, and that trusts no other. Each has its own identity: by
    /// their certificates servers tell who they are.
    fn tls(&self) -> TlsOptions {
        let number = CLIENTS.fetch_add(1, Ordering::Relaxed);
        let me = self.authority.client(&format!("tester {number}"));
        TlsOptions::new().ca_pem(self.authority.pem()).identity_pem(me.chain, me.key)
    }
}
