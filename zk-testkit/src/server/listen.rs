//! The same ensemble on real sockets, in real time.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc, watch},
    task::JoinSet,
    time::Instant,
};
use zk_proto::Time;

use super::{Config, Conn, Ensemble, Member, Output};

/// Unsent bytes from which a connection is not read any more, as servers stop reading from clients
/// that do not listen.
const UNSENT_MAX: usize = 1 << 20;

/// An ensemble that listens. Dropping it closes everything at once.
#[derive(Debug)]
pub struct Listening {
    core: Arc<Core>,
    addrs: Vec<SocketAddr>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Core {
    state: Mutex<State>,
    /// Those that wait for the next deadline are to look again.
    changed: Notify,
    paused: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    ensemble: Ensemble,
    epoch: Instant,
    clients: BTreeMap<Conn, mpsc::UnboundedSender<Bytes>>,
}

impl Listening {
    /// Has one member listen on each of these addresses; port 0 means any free one.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub async fn start(mut config: Config, addrs: &[SocketAddr]) -> io::Result<Self> {
        config.members = addrs.len();
        config.seed = config.seed.wrapping_add(unlike_others());
        let state = State {
            ensemble: Ensemble::new(config),
            epoch: Instant::now(),
            clients: BTreeMap::new(),
        };
        let core = Arc::new(Core {
            state: Mutex::new(state),
            changed: Notify::new(),
            paused: watch::Sender::new(false),
        });
        let mut tasks = JoinSet::new();
        let mut bound = Vec::new();
        for (member, addr) in addrs.iter().enumerate() {
            let listener = TcpListener::bind(addr).await?;
            bound.push(listener.local_addr()?);
            tasks.spawn(accept(core.clone(), listener, Member(member)));
        }
        tasks.spawn(keep_time(core.clone()));
        Ok(Self { core, addrs: bound, _tasks: tasks })
    }

    /// Where the members listen.
    #[must_use]
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// Looks at the ensemble, or does something to it; what that makes it say is sent.
    ///
    /// The ensemble stands still meanwhile: do not call back into this from inside.
    pub fn with<T>(&self, act: impl FnOnce(&mut Ensemble, Time) -> T) -> T {
        self.core.with(act)
    }

    /// Stops everything, as SIGSTOP would: nothing is read, answered or expired. Time goes on.
    pub fn pause(&self) {
        self.core.paused.send_replace(true);
    }

    /// Goes on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.core.paused.send_replace(false);
    }
}

/// Where the numbers of sessions begin is something like the time, as with real servers: a client that dials a port of
/// which another server has come into possession has no session there. With one that it seems to have it would take
/// another client's over.
fn unlike_others() -> u64 {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let time = now.as_secs() << 30 | u64::from(now.subsec_nanos());
    let process = u64::from(std::process::id()) << 32;
    time ^ process ^ STARTED.fetch_add(1, Ordering::Relaxed)
}

impl Core {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Ensemble, Time) -> T) -> T {
        let mut state = self.state();
        let now = Time::new(state.epoch.elapsed());
        let outcome = act(&mut state.ensemble, now);
        let State { ensemble, clients, .. } = &mut *state;
        while let Some(output) = ensemble.poll() {
            match output {
                Output::Write { conn, bytes } => {
                    // Whose task has ended has hung up; the ensemble will hear of it.
                    let _ = clients.get(&conn).map(|client| client.send(bytes));
                }
                Output::Close { conn } => drop(clients.remove(&conn)),
            }
        }
        self.changed.notify_one();
        outcome
    }

    async fn unpaused(&self) {
        let mut paused = self.paused.subscribe();
        // The sender lives as long as `self`.
        let _ = paused.wait_for(|paused| !paused).await;
    }
}

/// Wakes the ensemble whenever something happens by the clock alone.
async fn keep_time(core: Arc<Core>) {
    loop {
        core.unpaused().await;
        let due = {
            let state = core.state();
            state.ensemble.deadline().map(|at| state.epoch + at.since_epoch())
        };
        let reached = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = core.changed.notified() => {}
            () = reached => {
                core.unpaused().await;
                core.with(|ensemble, now| ensemble.elapsed(now));
            }
        }
    }
}

async fn accept(core: Arc<Core>, listener: TcpListener, member: Member) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = clients.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    core.unpaused().await;
                    // Without Nagle's wait; a socket that refuses this is slower, and works.
                    let _ = stream.set_nodelay(true);
                    let (sender, receiver) = mpsc::unbounded_channel();
                    let conn = core.with(|ensemble, now| ensemble.accept(now, member, peer.ip()));
                    if let Some(conn) = conn {
                        core.state().clients.insert(conn, sender);
                        clients.spawn(carry(core.clone(), stream, conn, receiver));
                    }
                }
                // Out of descriptors, or the client has gone already: others may fare better.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }
}

/// Moves bytes between one client and the ensemble, until either hangs up.
async fn carry(
    core: Arc<Core>,
    mut stream: TcpStream,
    conn: Conn,
    mut says: mpsc::UnboundedReceiver<Bytes>,
) {
    let (mut reader, mut writer) = stream.split();
    let mut inbound = BytesMut::with_capacity(16 << 10);
    let mut outbound = BytesMut::new();
    loop {
        tokio::select! {
            biased;
            said = says.recv() => match said {
                Some(bytes) => outbound.extend_from_slice(&bytes),
                None => {
                    // Closed by the ensemble: what was said before still goes out.
                    let _ = writer.write_all(&outbound).await;
                    let _ = writer.shutdown().await;
                    return;
                }
            },
            written = writer.write(&outbound), if !outbound.is_empty() => match written {
                Ok(len) => outbound.advance(len),
                Err(_) => break,
            },
            read = reader.read_buf(&mut inbound), if outbound.len() < UNSENT_MAX => {
                if !matches!(read, Ok(len) if len > 0) {
                    break;
                }
                core.unpaused().await;
                core.with(|ensemble, now| ensemble.received(now, conn, &inbound));
                inbound.clear();
            }
        }
    }
    core.unpaused().await;
    core.with(|ensemble, now| ensemble.hung_up(now, conn));
    core.state().clients.remove(&conn);
}
