//! The same ensemble on real sockets, in real time.

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc, watch},
    task::JoinSet,
    time::{Instant, timeout},
};
use zk_proto::Time;

use super::{
    Config, Conn, Ensemble, Member, Output,
    member_port::{MemberPort, Running},
    server_line::ServerLine,
};

/// Unsent bytes from which a connection is not read any more, as servers stop reading from clients
/// that do not listen.
const UNSENT_MAX: usize = 1 << 20;

/// How long a client whose connection is being closed has for reading what was said before. One that reads nothing any more
/// would keep the connection for good.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An ensemble that listens. Dropping it closes everything at once.
#[derive(Debug)]
pub struct Listening {
    pub(super) core: Arc<Core>,
    addrs: Vec<SocketAddr>,
    pub(super) tasks: JoinSet<()>,
}

#[derive(Debug)]
pub(super) struct Core {
    state: Mutex<State>,
    /// Those that wait for the next deadline are to look again.
    changed: Notify,
    paused: watch::Sender<bool>,
    running: watch::Sender<Running>,
}

/// The tasks that talk to them.
type Clients = BTreeMap<Conn, mpsc::UnboundedSender<Said>>;

#[derive(Debug)]
struct State {
    ensemble: Ensemble,
    epoch: Instant,
    clients: Clients,
}

impl Listening {
    /// Has one member listen on each of these addresses; port 0 means any free one.
    ///
    /// # Errors
    /// An address cannot be listened on, or a line of [`Config::servers`] cannot be read.
    pub async fn start(mut config: Config, addrs: &[SocketAddr]) -> io::Result<Self> {
        if let Some(line) =
            config.servers.iter().find(|line| ServerLine::parse_entry(line).is_err())
        {
            let why = format!("{line:?} names no server of an ensemble");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut listeners = Vec::new();
        let mut bound = Vec::new();
        for addr in addrs {
            let listener = TcpListener::bind(addr).await?;
            bound.push(listener.local_addr()?);
            listeners.push(listener);
        }
        config.members = addrs.len();
        if config.servers.is_empty() && addrs.len() > 1 {
            config.servers = server_lines(&bound);
        }
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
            running: watch::Sender::new(vec![true; listeners.len()]),
        });
        let mut tasks = JoinSet::new();
        for (member, listener) in listeners.into_iter().enumerate() {
            let port = core.port(listener, Member(member))?;
            tasks.spawn(accept(core.clone(), port, plain));
        }
        tasks.spawn(keep_time(core.clone()));
        Ok(Self { core, addrs: bound, tasks })
    }

    /// Where the members listen.
    #[must_use]
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// [Adds](Ensemble::add) a server that listens on this address; port 0 means any free one.
    ///
    /// # Errors
    /// The address cannot be listened on, or the ensemble does not take it.
    pub async fn add(&mut self, number: i64, addr: SocketAddr) -> io::Result<Member> {
        let listener = TcpListener::bind(addr).await?;
        let bound = listener.local_addr()?;
        let refused = || io::Error::other("no leader, or there is one of that number already");
        let member = self.with(|ensemble, now| ensemble.add(now, number)).ok_or_else(refused)?;
        self.addrs.push(bound);
        let port = self.core.port(listener, member)?;
        self.tasks.spawn(accept(self.core.clone(), port, plain));
        Ok(member)
    }

    /// Looks at the ensemble, or does something to it; what that makes it say is sent.
    ///
    /// The ensemble stands still meanwhile: do not call back into this from inside.
    pub fn with<T>(&self, act: impl FnOnce(&mut Ensemble, Time) -> T) -> T {
        self.core.with(act)
    }

    /// Stops everything, as SIGSTOP would: nothing is read, answered or expired. Time goes on, and what is done
    /// [by hand](Self::with) is done at once; clients hear of it afterwards.
    pub fn pause(&self) {
        self.core.paused.send_replace(true);
    }

    /// Goes on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.core.paused.send_replace(false);
    }
}

/// What a configuration says of members that clients reach at these addresses.
pub(crate) fn server_lines(addrs: &[SocketAddr]) -> Vec<String> {
    addrs.iter().enumerate().map(line).collect()
}

/// How a configuration names a member. Members have no ports for each other; they need some in that line.
fn line((member, addr): (usize, &SocketAddr)) -> String {
    let host = match addr.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let (number, port) = (member + 1, addr.port());
    format!("server.{number}={host}:{}:{}:participant;{host}:{port}", 2888 + member, 3888 + member)
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
        self.with_clients(|ensemble, _, now| act(ensemble, now))
    }

    /// A new connection, whose client hears at once of whatever becomes of it.
    fn accept(
        &self,
        member: Member,
        peer: SocketAddr,
        subject: Option<&str>,
        sender: mpsc::UnboundedSender<Said>,
    ) -> Option<Conn> {
        self.with_clients(|ensemble, clients, now| {
            let conn = ensemble.accept_as(now, member, peer, subject)?;
            clients.insert(conn, sender);
            Some(conn)
        })
    }

    fn with_clients<T>(&self, act: impl FnOnce(&mut Ensemble, &mut Clients, Time) -> T) -> T {
        let mut state = self.state();
        let State { ensemble, clients, epoch } = &mut *state;
        let elapsed = epoch.elapsed();
        let outcome = act(ensemble, clients, Time::new(elapsed));
        let latency = ensemble.config().latency;
        let due = (!latency.is_zero()).then(|| *epoch + elapsed + latency);
        while let Some(output) = ensemble.poll() {
            match output {
                Output::Write { conn, bytes } => {
                    // Whose task has ended has hung up; the ensemble will hear of it.
                    let _ = clients.get(&conn).map(|client| client.send(Said { due, bytes }));
                }
                Output::Close { conn } => drop(clients.remove(&conn)),
            }
        }
        let runs = ensemble.running();
        self.running.send_if_modified(|running| {
            let changes = runs.ne(running.iter().copied());
            if changes {
                *running = ensemble.running().collect();
            }
            changes
        });
        self.changed.notify_one();
        outcome
    }

    pub(super) fn port(&self, listener: TcpListener, member: Member) -> io::Result<MemberPort> {
        MemberPort::new(listener, member, self.running.subscribe())
    }

    pub(super) async fn unpaused(&self) {
        if !*self.paused.borrow() {
            return;
        }
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

/// Serves all clients of a port, once their connections are as they are to be.
pub(super) async fn accept<S, F>(
    core: Arc<Core>,
    mut port: MemberPort,
    prepare: impl Fn(TcpStream) -> F,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
    F: Future<Output = Option<(S, Option<String>)>> + Send + 'static,
{
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = clients.join_next() => {}
            (stream, peer) = port.accept() => {
                // Without Nagle's wait; a socket that refuses this is slower, and works.
                let _ = stream.set_nodelay(true);
                let (core, member, prepared) = (core.clone(), port.member, prepare(stream));
                clients.spawn(async move {
                    // Before anything of it is read, as in agreeing on TLS.
                    core.unpaused().await;
                    if let Some((stream, subject)) = prepared.await {
                        serve(core, stream, member, peer, subject.as_deref()).await;
                    }
                });
            }
        }
    }
}

/// As it is, of a client that has shown no certificate.
async fn plain(stream: TcpStream) -> Option<(TcpStream, Option<String>)> {
    Some((stream, None))
}

/// Has the ensemble talk to a client until either hangs up.
async fn serve(
    core: Arc<Core>,
    stream: impl AsyncRead + AsyncWrite,
    member: Member,
    peer: SocketAddr,
    subject: Option<&str>,
) {
    core.unpaused().await;
    let (sender, channel) = mpsc::unbounded_channel();
    let Some(conn) = core.accept(member, peer, subject, sender) else { return };
    carry(core, stream, conn, Says { channel, held: None }).await;
}

/// Something that the ensemble says, and when it reaches the client.
#[derive(Debug)]
struct Said {
    due: Option<Instant>,
    bytes: Bytes,
}

/// What the ensemble says to one client, at the time at which it reaches it.
#[derive(Debug)]
struct Says {
    channel: mpsc::UnboundedReceiver<Said>,
    held: Option<Said>,
}

impl Says {
    /// The next; dropping the future loses nothing.
    async fn next(&mut self, core: &Core) -> Option<Bytes> {
        if self.held.is_none() {
            self.held = self.channel.recv().await;
        }
        if let Some(due) = self.held.as_ref().and_then(|said| said.due) {
            tokio::time::sleep_until(due).await;
        }
        // A server that stands still says nothing, whatever the test does to it meanwhile.
        core.unpaused().await;
        self.held.take().map(|said| said.bytes)
    }
}

/// Moves bytes between one client and the ensemble, until either hangs up.
async fn carry(core: Arc<Core>, stream: impl AsyncRead + AsyncWrite, conn: Conn, mut says: Says) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut inbound = BytesMut::with_capacity(16 << 10);
    let mut outbound = BytesMut::new();
    loop {
        tokio::select! {
            biased;
            said = says.next(&core) => match said {
                Some(bytes) => outbound.extend_from_slice(&bytes),
                None => {
                    // Closed by the ensemble: what was said before still goes out.
                    let _ = timeout(LAST_WORDS, async {
                        let _ = writer.write_all(&outbound).await;
                        writer.shutdown().await
                    })
                    .await;
                    return;
                }
            },
            written = writer.write(&outbound), if !outbound.is_empty() => match written {
                Ok(len) => {
                    outbound.advance(len);
                    if outbound.is_empty() && writer.flush().await.is_err() {
                        break;
                    }
                }
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn client_that_reads_nothing_is_closed_to() {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listening = Listening::start(Config::default(), &[addr]).await.unwrap();
        let core = listening.core.clone();
        let accept = |ensemble: &mut Ensemble, now| ensemble.accept(now, Member(0), addr.ip());
        let conn = core.with(accept).unwrap();
        let (sender, channel) = mpsc::unbounded_channel();
        let bytes = Bytes::from_static(b"more than is taken");
        sender.send(Said { due: None, bytes }).unwrap();
        drop(sender);
        let (_client, stream) = tokio::io::duplex(1);
        let carried = carry(core, stream, conn, Says { channel, held: None });
        let limit = Duration::from_secs(60);
        timeout(limit, carried).await.unwrap();
    }
}
