//! The resource that the lock protects: contenders visit it over loopback.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::{Mutex, Notify},
    time::timeout,
};
use zk_client::{Client, ConnectOptions, ReadError, Rejection, SessionState};

use super::{
    checker::Checker,
    claim::{Claim, Party},
    counts::Counts,
    lines::{LineConnection, LineServer},
    request::{Answer, Request},
};

/// Of the session that asks for the truth.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The node that the same session writes.
const WITNESS: &str = "/witness";

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long no contender may come before the resource checks whether one is there.
const LOOK: Duration = Duration::from_millis(20);

/// What the lock protects. Contenders talk to it over loopback.
#[derive(Debug)]
pub struct Resource {
    shared: Arc<Shared>,
    /// Connections are closed, and so contenders ended, when this is dropped.
    server: LineServer,
}

#[derive(Debug)]
struct Shared {
    /// One request at a time, also while the servers are asked about it: no contender leaves meanwhile, and so
    /// none releases a lock whose node is being looked for.
    state: Mutex<State>,
    entered: Notify,
    connections: AtomicU64,
    ending: AtomicBool,
}

#[derive(Debug)]
struct State {
    checker: Checker,
    witness: Witness,
    pace: Pace,
    /// The names of the connected contenders.
    names: BTreeMap<u64, String>,
}

/// How long no contender came.
#[derive(Clone, Copy, Debug)]
struct Pace {
    last: Instant,
    longest: Pause,
}

/// A time in which no contender was granted the lock.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// Since when.
    pub begun: Instant,
    /// How long.
    pub time: Duration,
}

impl Pace {
    fn new() -> Self {
        let now = Instant::now();
        Self { last: now, longest: Pause { begun: now, time: Duration::ZERO } }
    }

    /// The longest one so far, which may still go on.
    fn longest(&self) -> Pause {
        let present = Pause { begun: self.last, time: self.last.elapsed() };
        if present.time > self.longest.time { present } else { self.longest }
    }

    fn granted(&mut self) {
        *self = Self { longest: self.longest(), last: Instant::now() };
    }
}

/// The client that asks the servers whose nodes are still there.
#[derive(Debug)]
struct Witness {
    servers: String,
    client: Option<Client>,
}

impl Resource {
    /// Opens the resource of a lock on these servers, with so many permits for contenders for a lease, on loopback.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn open(servers: &str, permits: usize) -> io::Result<Self> {
        Self::open_at(Ipv4Addr::LOCALHOST.into(), servers, permits).await
    }

    /// The same at another address of this machine.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn open_at(here: IpAddr, servers: &str, permits: usize) -> io::Result<Self> {
        let state = State {
            checker: Checker::new(permits),
            witness: Witness { servers: servers.to_owned(), client: None },
            pace: Pace::new(),
            names: BTreeMap::new(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            entered: Notify::new(),
            connections: AtomicU64::new(0),
            ending: AtomicBool::new(false),
        });
        let serving = shared.clone();
        let server = LineServer::open(here, move |lines| serving.clone().attend(lines)).await?;
        Ok(Self { shared, server })
    }

    /// Where contenders find it.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// What has happened so far.
    pub async fn counts(&self) -> Counts {
        self.shared.state.lock().await.checker.counts().clone()
    }

    /// How many are connected, inside or not.
    pub async fn contenders(&self) -> usize {
        self.shared.state.lock().await.names.len()
    }

    /// Counts from 0 again, but for violations.
    pub async fn begin_counting(&self) {
        let mut state = self.shared.state.lock().await;
        state.checker.begin_counting();
        state.pace = Pace::new();
    }

    /// The longest time in which no contender came, since counting began.
    pub async fn longest_pause(&self) -> Pause {
        self.shared.state.lock().await.pace.longest()
    }

    /// From now on contenders are stopped when they come.
    pub fn end(&self) {
        self.shared.ending.store(true, Ordering::SeqCst);
    }

    /// Waits until one of the given contenders is inside, and does something to it while it cannot leave. It
    /// goes by the name that it has given.
    pub async fn to_somebody_inside<T>(
        &self,
        wanted: impl Fn(&Claim) -> bool,
        act: impl FnOnce(&str) -> T,
    ) -> T {
        loop {
            let state = self.shared.state.lock().await;
            let inside = state.checker.present().find(|claim| wanted(claim));
            if let Some(name) = inside.and_then(|claim| state.names.get(&claim.connection)) {
                return act(name);
            }
            drop(state);
            let _ = timeout(LOOK, self.shared.entered.notified()).await;
        }
    }

    /// The children that these nodes still have, together.
    pub async fn left_behind(&self, paths: &[String]) -> Vec<String> {
        self.shared.state.lock().await.witness.children(paths).await
    }
}

impl Shared {
    /// Serves a contender until it has gone.
    async fn attend(self: Arc<Self>, lines: LineConnection) -> io::Result<()> {
        let connection = self.connections.fetch_add(1, Ordering::Relaxed);
        let served = self.serve(lines, connection).await;
        let mut state = self.state.lock().await;
        state.checker.disconnected(connection);
        state.names.remove(&connection);
        served
    }

    async fn serve(&self, mut lines: LineConnection, connection: u64) -> io::Result<()> {
        let mut party = None;
        while let Some(line) = lines.hear().await? {
            let request = line.parse().map_err(io::Error::other)?;
            let answer = match (request, party) {
                (Request::Hello { party: said, name }, _) => {
                    party = Some(said);
                    self.state.lock().await.names.insert(connection, name);
                    Answer::Ok
                }
                (request, Some(party)) => self.answer(connection, party, request).await,
                (_, None) => return Err(io::Error::other("no hello")),
            };
            lines.say(&answer.to_string()).await?;
        }
        Ok(())
    }

    async fn answer(&self, connection: u64, party: Party, request: Request) -> Answer {
        let mut state = self.state.lock().await;
        let State { checker, witness, pace, .. } = &mut *state;
        match request {
            Request::Hello { .. } => Answer::Ok,
            Request::Enter { .. } if self.ending.load(Ordering::SeqCst) => Answer::End,
            Request::Enter { mode, token, node } => {
                let newcomer = Claim { connection, party, mode, token, node };
                let there = witness.there(checker.nodes_in_question(&newcomer)).await;
                let answer = checker.enter(newcomer, &there);
                if answer == Answer::Ok {
                    pace.granted();
                    self.entered.notify_waiters();
                }
                answer
            }
            Request::Downgrade { .. } => checker.downgrade(connection, party),
            Request::Moved { node, .. } => {
                let there = witness.there(vec![node.clone()]).await.contains(&node);
                checker.moved(connection, party, &node, there)
            }
            Request::Leave { .. } => checker.leave(connection, party),
            Request::Note { word } => {
                checker.note(party, word);
                Answer::Ok
            }
        }
    }
}

impl Witness {
    /// Which of these nodes exist, in the state that the servers had agreed on when this was called, or later.
    async fn there(&mut self, nodes: Vec<String>) -> BTreeSet<String> {
        let mut there = BTreeSet::new();
        for node in nodes {
            while !there.contains(&node) {
                match exists(&self.session().await, &node).await {
                    Ok(true) => _ = there.insert(node.clone()),
                    Ok(false) => break,
                    // Members may be down, and sessions may end over it: there will be an answer.
                    Err(_) => {}
                }
            }
        }
        there
    }

    /// The children that these nodes have, as paths.
    async fn children(&mut self, parents: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for parent in parents {
            let children = loop {
                if let Ok(children) = children(&self.session().await, parent).await {
                    break children;
                }
            };
            found.extend(children.into_iter().map(|child| format!("{parent}/{child}")));
        }
        found
    }

    /// A session that goes on.
    async fn session(&mut self) -> Client {
        loop {
            let goes_on =
                |client: &&Client| !matches!(client.session().state(), SessionState::Ended(_));
            if let Some(client) = self.client.as_ref().filter(goes_on) {
                return client.clone();
            }
            self.client = connect(&self.servers).await.ok();
        }
    }
}

/// Brings the session's server up to now. A leader that has been cut off from a majority, and does not know it yet, still
/// answers a `sync`; but it cannot commit a write.
async fn agree(client: &Client) -> Result<(), Failure> {
    Ok(client.set(WITNESS, b"").await.map(drop)?)
}

async fn exists(client: &Client, node: &str) -> Result<bool, Failure> {
    agree(client).await?;
    Ok(client.exists(node).await?.is_some())
}

async fn children(client: &Client, parent: &str) -> Result<Vec<String>, Failure> {
    agree(client).await?;
    match client.children(parent).await {
        Ok((children, _)) => Ok(children),
        Err(ReadError::Rejected(Rejection::NoNode)) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

async fn connect(servers: &str) -> Result<Client, Failure> {
    let options = ConnectOptions::new(servers)?.session_timeout(SESSION_TIMEOUT);
    let client = options.connect().await?;
    client.create(WITNESS, b"").or_exists().await?;
    Ok(client)
}
