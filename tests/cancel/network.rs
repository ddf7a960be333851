//! A server in this process, and connections to it that take a millisecond each way.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf},
    sync::{Notify, mpsc, watch},
    task::AbortHandle,
    time::{Instant, sleep_until},
};
use zk_client::{Connect, Dial, SessionId, Stream};
use zk_proto::Time;
use zk_testkit::server::{Config, Conn, Ensemble, Member, Output};

/// How long bytes are under way.
const LATENCY: Duration = Duration::from_millis(1);

/// Lets time pass.
pub(crate) async fn pass(time: Duration) {
    sleep_until(Instant::now() + time).await;
}

/// Who is connected: what goes wrong goes wrong for one of them.
pub(crate) type Name = &'static str;

/// The server and the way to it. Clones share them.
#[derive(Clone)]
pub(crate) struct Network(Arc<Shared>);

struct Shared {
    began: Instant,
    state: Mutex<State>,
    /// The server has something new to wait for.
    moved: Notify,
}

struct State {
    ensemble: Ensemble,
    lanes: BTreeMap<Conn, Lane>,
    refused: Vec<Name>,
    /// Whose bytes stay where they are.
    held: watch::Sender<Vec<Name>>,
}

struct Lane {
    name: Name,
    down: mpsc::UnboundedSender<Option<Bytes>>,
    pump: AbortHandle,
}

impl Network {
    /// A server with nothing on it.
    pub(crate) fn new(config: Config) -> Self {
        let state = State {
            ensemble: Ensemble::new(config),
            lanes: BTreeMap::new(),
            refused: Vec::new(),
            held: watch::Sender::new(Vec::new()),
        };
        let shared =
            Shared { began: Instant::now(), state: Mutex::new(state), moved: Notify::new() };
        let network = Self(Arc::new(shared));
        tokio::spawn(network.clone().tick());
        network
    }

    /// How `name` connects.
    pub(crate) fn connector(&self, name: Name) -> Connector {
        Connector { network: self.clone(), name }
    }

    /// Cuts all connections of `name`, with what is under way on them, and refuses new ones.
    pub(crate) fn cut(&self, name: Name) {
        let now = self.now();
        let mut state = self.state();
        state.refused.push(name);
        let lanes = state.lanes.iter().filter(|(_, lane)| lane.name == name);
        for conn in lanes.map(|(conn, _)| *conn).collect::<Vec<_>>() {
            state.hang_up(now, conn);
        }
        self.moved(state, now);
    }

    /// Lets nothing through for `name`, in either direction.
    pub(crate) fn hold(&self, name: Name) {
        self.state().held.send_modify(|held| held.push(name));
    }

    /// Everything is well again.
    pub(crate) fn heal(&self) {
        let mut state = self.state();
        state.refused.clear();
        state.held.send_modify(Vec::clear);
    }

    /// Ends a session on the server, and its connection.
    pub(crate) fn expire(&self, session: SessionId) {
        let now = self.now();
        let mut state = self.state();
        state.ensemble.expire(now, session);
        self.moved(state, now);
    }

    /// Looks at the server.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&Ensemble) -> T) -> T {
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
                Output::Write { conn, bytes } => state.send(conn, Some(bytes)),
                Output::Close { conn } => state.send(conn, None),
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

    fn connect(&self, name: Name) -> io::Result<Box<dyn Stream>> {
        let now = self.now();
        let mut state = self.state();
        if state.refused.contains(&name) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let Some(conn) = state.ensemble.accept(now, Member(0), peer) else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let (client, server) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(server);
        let (down, replies) = mpsc::unbounded_channel();
        let held = state.held.subscribe();
        let up = self.clone().up(name, conn, reader, held.clone());
        let down_pump = pump_down(name, replies, writer, held);
        let pump = tokio::spawn(async move {
            tokio::select! {
                () = up => {}
                () = down_pump => {}
            }
        });
        state.lanes.insert(conn, Lane { name, down, pump: pump.abort_handle() });
        Ok(Box::new(client))
    }

    async fn up(
        self,
        name: Name,
        conn: Conn,
        mut reader: ReadHalf<DuplexStream>,
        mut held: watch::Receiver<Vec<Name>>,
    ) {
        let mut buffer = [0; 4096];
        loop {
            let len = reader.read(&mut buffer).await.unwrap_or(0);
            pass(LATENCY).await;
            let _ = held.wait_for(|held| !held.contains(&name)).await;
            let now = self.now();
            let mut state = self.state();
            if len == 0 {
                state.ensemble.hung_up(now, conn);
                state.lanes.remove(&conn);
                self.moved(state, now);
                return;
            }
            state.ensemble.received(now, conn, &buffer[..len]);
            self.moved(state, now);
        }
    }
}

async fn pump_down(
    name: Name,
    mut replies: mpsc::UnboundedReceiver<Option<Bytes>>,
    mut writer: WriteHalf<DuplexStream>,
    mut held: watch::Receiver<Vec<Name>>,
) {
    while let Some(Some(bytes)) = replies.recv().await {
        pass(LATENCY).await;
        let _ = held.wait_for(|held| !held.contains(&name)).await;
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // A close takes as long as anything else.
    pass(LATENCY).await;
}

impl State {
    fn send(&mut self, conn: Conn, bytes: Option<Bytes>) {
        let closes = bytes.is_none();
        if let Some(lane) = self.lanes.get(&conn) {
            // The client may have gone.
            let _ = lane.down.send(bytes);
        }
        if closes {
            self.lanes.remove(&conn);
        }
    }

    fn hang_up(&mut self, now: Time, conn: Conn) {
        if let Some(lane) = self.lanes.remove(&conn) {
            lane.pump.abort();
            self.ensemble.hung_up(now, conn);
        }
    }
}

/// How one client connects.
pub(crate) struct Connector {
    network: Network,
    name: Name,
}

impl Connect for Connector {
    fn connect(&self, _: &str) -> Dial {
        let (network, name) = (self.network.clone(), self.name);
        Box::pin(async move {
            pass(LATENCY).await;
            network.connect(name)
        })
    }
}
