//! A server in this process, and connections to it that take a millisecond each way: on a paused runtime without any
//! real time.
//!
//! | module | concern |
//! |---|---|
//! | `lane` | one connection: frames up, frames down |
//! | `disposition` | what may become of a request on its way |

mod disposition;
mod lane;

use std::{
    collections::BTreeMap,
    fmt, io,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use zk_client::{BoxFuture, Connect, ConnectOptions, OpCode, SessionId, Transport};
use zk_proto::Time;
use zk_testkit::server::{Config, Conn, Ensemble, Member, Output};

pub use self::disposition::Disposition;
use self::lane::Lane;

/// How long bytes are under way.
const LATENCY: Duration = Duration::from_millis(1);

/// Lets time pass.
pub async fn pass(time: Duration) {
    sleep_until(Instant::now() + time).await;
}

/// The connected clients: what goes wrong goes wrong for one of them.
pub type Name = &'static str;

/// Decides about each request that reaches the server.
pub type Director = Box<dyn FnMut(Name, OpCode) -> Disposition + Send>;

/// In which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Requests.
    ToServer,
    /// Replies and events.
    ToClient,
}

/// The server and the way to it. Clones share them.
#[derive(Clone)]
pub struct Network(Arc<Shared>);

struct Shared {
    began: Instant,
    state: Mutex<State>,
    /// The server has something new to wait for.
    moved: Notify,
}

struct State {
    ensemble: Ensemble,
    lanes: BTreeMap<Conn, Lane>,
    /// Which member each client reaches, if it is not the first one.
    doors: BTreeMap<Name, Member>,
    /// Clients that cannot connect, and until when if that will end by itself.
    refused: BTreeMap<Name, Option<Instant>>,
    links: Arc<Links>,
    director: Option<Director>,
}

/// What the links of each client are like. Those who wait for an end of being held go on in the order in which they came,
/// each time.
#[derive(Default)]
struct Links {
    /// Whose bytes stay where they are.
    held: Mutex<Vec<Name>>,
    released: Notify,
    /// Bytes in each second, of those that are slow.
    rates: Mutex<BTreeMap<(Name, Way), u32>>,
}

impl Links {
    fn held(&self) -> MutexGuard<'_, Vec<Name>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rates(&self) -> MutexGuard<'_, BTreeMap<(Name, Way), u32>> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self) {
        self.held().clear();
        self.released.notify_waiters();
    }

    /// Waits for as long as `name` is held.
    async fn passes(&self, name: Name) {
        while self.held().contains(&name) {
            // Only this thread could release it in between.
            self.released.notified().await;
        }
    }

    /// Waits for as long as so many bytes take.
    async fn carries(&self, name: Name, way: Way, len: usize) {
        let rate = self.rates().get(&(name, way)).copied();
        if let Some(rate) = rate {
            let len = u32::try_from(len).expect("a part of a frame");
            pass(Duration::from_secs(1) * len / rate).await;
        }
    }
}

impl Network {
    /// A server with nothing on it.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let state = State {
            ensemble: Ensemble::new(config),
            lanes: BTreeMap::new(),
            doors: BTreeMap::new(),
            refused: BTreeMap::new(),
            links: Arc::default(),
            director: None,
        };
        let shared =
            Shared { began: Instant::now(), state: Mutex::new(state), moved: Notify::new() };
        let network = Self(Arc::new(shared));
        tokio::spawn(network.clone().tick());
        network
    }

    /// How `name` connects.
    #[must_use]
    pub fn connector(&self, name: Name) -> Connector {
        Connector { network: self.clone(), name }
    }

    /// Options for a session of `name`, with the runtime's clock; all paths are relative to `chroot`.
    ///
    /// # Panics
    /// If `chroot` is no path.
    pub fn options(&self, name: Name, chroot: &str, seed: u64) -> ConnectOptions {
        let start = Instant::now();
        ConnectOptions::new(&format!("server{chroot}"))
            .expect("it is one")
            .connector(self.connector(name))
            .clock(move || start.elapsed())
            .seed(seed)
    }

    /// Lets `name` reach another member than the first one, with its next connections.
    pub fn reach_by(&self, name: Name, member: Member) {
        self.state().doors.insert(name, member);
    }

    /// Installs a function that decides about all requests from now on.
    pub fn direct(&self, director: impl FnMut(Name, OpCode) -> Disposition + Send + 'static) {
        self.state().director = Some(Box::new(director));
    }

    /// Cuts all connections of `name`, with what is under way on them, and refuses new ones.
    pub fn cut(&self, name: Name) {
        let now = self.now();
        let mut state = self.state();
        state.refused.insert(name, None);
        let lanes = state.lanes.iter().filter(|(_, lane)| lane.name == name);
        for conn in lanes.map(|(conn, _)| *conn).collect::<Vec<_>>() {
            state.hang_up(now, conn);
        }
        self.moved(state, now);
    }

    /// Lets nothing through for `name`, in either direction.
    pub fn hold(&self, name: Name) {
        self.state().links.held().push(name);
    }

    /// Lets no more than so many bytes through in each second, one way.
    pub fn slow(&self, name: Name, way: Way, rate: u32) {
        self.state().links.rates().insert((name, way), rate);
    }

    /// Everything is well again.
    pub fn heal(&self) {
        let mut state = self.state();
        state.refused.clear();
        state.links.release();
        state.links.rates().clear();
    }

    /// Ends a session on the server, and its connection.
    pub fn expire(&self, session: SessionId) {
        let now = self.now();
        let mut state = self.state();
        state.ensemble.expire(now, session);
        self.moved(state, now);
    }

    /// Looks at the server.
    pub fn look<T>(&self, at: impl FnOnce(&Ensemble) -> T) -> T {
        at(&self.state().ensemble)
    }

    fn now(&self) -> Time {
        Time::new(self.0.began.elapsed())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something has happened to the server: passes on what it says.
    fn moved(&self, mut state: MutexGuard<'_, State>, now: Time) {
        state.ensemble.elapsed(now);
        while let Some(output) = state.ensemble.poll() {
            match output {
                Output::Write { conn, bytes } => state.send(now, conn, &bytes),
                Output::Close { conn } => {
                    if let Some(lane) = state.lanes.remove(&conn) {
                        lane.close();
                    }
                }
            }
        }
        self.0.moved.notify_one();
    }

    /// Tells the server the time whenever it wants to know.
    async fn tick(self) {
        loop {
            let deadline = self.state().ensemble.deadline();
            let due = async {
                match deadline {
                    Some(at) => sleep_until(self.0.began + at.since_epoch()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.0.moved.notified() => {}
                () = due => self.moved(self.state(), self.now()),
            }
        }
    }

    fn connect(&self, name: Name) -> io::Result<Box<dyn Transport>> {
        let now = self.now();
        let mut state = self.state();
        if state.refuses(name) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let member = state.doors.get(name).copied().unwrap_or(Member(0));
        let Some(conn) = state.ensemble.accept(now, member, peer) else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let links = state.links.clone();
        let (lane, client) = Lane::open(self, name, conn, links);
        state.lanes.insert(conn, lane);
        Ok(Box::new(client))
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl State {
    fn refuses(&mut self, name: Name) -> bool {
        let now = Instant::now();
        self.refused.retain(|_, until| until.is_none_or(|until| until > now));
        self.refused.contains_key(name)
    }

    fn hang_up(&mut self, now: Time, conn: Conn) {
        if let Some(lane) = self.lanes.remove(&conn) {
            lane.cut();
            self.ensemble.hung_up(now, conn);
        }
    }
}

/// How one client connects.
#[derive(Debug)]
pub struct Connector {
    network: Network,
    name: Name,
}

impl Connect for Connector {
    fn connect(&self, _: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let (network, name) = (self.network.clone(), self.name);
        Box::pin(async move {
            pass(LATENCY).await;
            network.connect(name)
        })
    }

    fn fails_whole(&self) -> bool {
        true
    }
}
