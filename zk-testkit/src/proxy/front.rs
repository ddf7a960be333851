use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use zk_proto::frame::LEN_REPLY_MAX;

use super::connection::Connection;
use super::frame::{Direction, Frame};
use super::handle::On;
use super::log::{Counts, Frames, Mark};
use super::rule::{Forward, Match};
use super::shared::{Door, Ending, Shared};
use crate::port::HeldPort;

/// A proxy on a loopback port in front of one server.
///
/// It runs on the runtime that started it, and closes all its connections when dropped. See the
/// [module](super) for what it can do.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use zk_proto::OpCode;
/// use zk_testkit::proxy::{Match, Proxy};
/// use zk_testkit::real::{Release, Server};
///
/// let server = Server::start(Release::V3_9).await?;
/// let proxy = Proxy::start(server.addr()).await?;
/// // The third node is created, but its creator never hears of it.
/// let rule = proxy.on(Match::reply(OpCode::CREATE2).nth(3)).reset();
/// // ... a client at proxy.connect_string() creates nodes ...
/// println!("lost: {}", rule.fired().await);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    port: Arc<HeldPort>,
    accepting: AbortHandle,
    runtime: Handle,
}

/// How long no other process gets the port of a proxy that has been dropped: clients dropped with it may still
/// dial it, to close their sessions, and are not to come upon the proxy of another test.
const PORT_KEPT: Duration = Duration::from_secs(10);

/// Pause before the next client is accepted, if one could not be.
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);

impl Proxy {
    /// Starts a proxy on any free loopback port.
    ///
    /// The target need not exist yet: it is connected to once for each connection that is
    /// accepted. If it cannot be reached, that connection is reset.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        Self::start_before(target, LEN_REPLY_MAX).await
    }

    /// In front of a server that takes no longer requests: it closes the connection at the length of one, without the rest
    /// of it, so that is not waited for.
    pub(crate) async fn start_before(
        target: SocketAddr,
        request_len_max: usize,
    ) -> io::Result<Self> {
        let port = Arc::new(HeldPort::any()?);
        let listener = listen(&port)?;
        let shared = Arc::new(Shared::new(target, request_len_max));
        let accepting = accept(Arc::clone(&port), listener, Arc::clone(&shared));
        let accepting = tokio::spawn(accepting).abort_handle();
        Ok(Self { shared, port, accepting, runtime: Handle::current() })
    }

    /// Where clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    /// [`addr`](Self::addr) as a client's connection string.
    pub fn connect_string(&self) -> String {
        self.addr().to_string()
    }

    /// Begins a rule about these frames. Of several rules about a frame, the oldest counts.
    pub fn on(&self, condition: Match) -> On<'_> {
        On { shared: &self.shared, condition, forward: Forward::default() }
    }

    /// Connects further clients to another server. Open connections stay where they are.
    pub fn set_target(&self, target: SocketAddr) {
        self.shared.state().target = target;
    }

    /// Stops sending on anything, both ways, on open and on new connections; also the news that
    /// a peer has gone. Bytes are still taken in, as by a network that loses its packets: they
    /// are sent on after [`resume`](Self::resume), as TCP would repeat them.
    pub fn silence(&self) {
        self.shared.order(|state| {
            state.silence(Direction::ToServer);
            state.silence(Direction::ToClient);
        });
    }

    /// As [`silence`](Self::silence), one way only.
    pub fn silence_way(&self, direction: Direction) {
        self.shared.order(|state| state.silence(direction));
    }

    /// Ends every silence, those made by rules too, and sends on what was kept back.
    pub fn resume(&self) {
        self.shared.order(super::shared::State::resume);
    }

    /// Sends on no more than so many bytes in a second this way, on each connection; `None`, which is how it begins, as
    /// many as the other side takes.
    ///
    /// ```
    /// use zk_testkit::{TestServer, proxy::Direction};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// let server = TestServer::start().await?;
    /// server.proxy().limit_rate(Direction::ToClient, Some(25_000));
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit_rate(&self, direction: Direction, bytes_per_second: Option<u64>) {
        self.shared.order(|state| state.set_rate(direction, bytes_per_second));
    }

    /// Ends all open connections in order (FIN), both sides. What was being held, delayed or
    /// silenced is lost.
    pub fn cut_all(&self) {
        self.shared.order(|state| state.end_all(Ending::Cut));
    }

    /// Ends all open connections, with a reset (RST) for the clients. What was being held,
    /// delayed or silenced is lost.
    pub fn reset_all(&self) {
        self.shared.order(|state| state.end_all(Ending::Reset));
    }

    /// Stops listening: from when this returns, new connections are refused by the kernel. Open
    /// ones go on.
    pub async fn refuse_connections(&self) {
        self.set_door(Door::Closed).await;
    }

    /// Listens again, on the same port.
    pub async fn accept_connections(&self) {
        self.set_door(Door::Open).await;
    }

    async fn set_door(&self, door: Door) {
        self.shared.order(|state| state.door = door);
        let mut now = self.shared.door.subscribe();
        // The sender lives as long as `self.shared`, so this never fails.
        let _ = now.wait_for(|now| *now == door).await;
    }

    /// How many connections have been accepted so far; that is also the number of the latest.
    pub fn accepted(&self) -> u64 {
        self.shared.state().accepted
    }

    /// How many connections are open. One that was ended counts until its server, too, has
    /// closed it, or two seconds have passed.
    pub fn open_connections(&self) -> usize {
        self.shared.state().open_connections()
    }

    /// Waits until no connection is [open](Self::open_connections). Waits for ever if one stays: put a limit on the test.
    pub async fn all_closed(&self) {
        let mut closed = self.shared.closed.subscribe();
        // The sender lives as long as `self.shared`, so this never fails.
        let _ = closed.wait_for(|()| self.open_connections() == 0).await;
    }

    /// The place in the log behind everything that has arrived.
    pub fn mark(&self) -> Mark {
        Mark(self.shared.state().log.next_sequence())
    }

    /// All frames in the log: the last 131 072 since the start, or since
    /// [`clear_log`](Self::clear_log).
    pub fn frames(&self) -> Frames {
        self.frames_since(Mark(0))
    }

    /// The frames that arrived after a mark.
    pub fn frames_since(&self, mark: Mark) -> Frames {
        self.shared.state().log.since(mark).cloned().collect()
    }

    /// How many frames of each sort have arrived since the start, or since
    /// [`clear_log`](Self::clear_log).
    pub fn counts(&self) -> Counts {
        self.shared.state().log.counts().clone()
    }

    /// Empties the log and sets the counts to zero. Marks stay valid.
    pub fn clear_log(&self) {
        self.shared.state().log.clear();
    }

    /// Waits for a frame, which may be in the log already.
    ///
    /// The predicate must not call the proxy. Waits for ever if there never is such a frame: put
    /// a limit on the test.
    pub async fn wait_for(&self, wanted: impl Fn(&Frame) -> bool) -> Frame {
        self.wait_for_since(Mark(0), wanted).await
    }

    /// Waits for a frame that arrived, or will arrive, after a mark.
    pub async fn wait_for_since(&self, mark: Mark, wanted: impl Fn(&Frame) -> bool) -> Frame {
        let mut logged = self.shared.frames_logged();
        let mut unseen = mark;
        loop {
            logged.mark_unchanged();
            if let Some(frame) = self.find(&mut unseen, &wanted) {
                return frame;
            }
            // The sender lives as long as `self.shared`, so this never fails.
            let _ = logged.changed().await;
        }
    }

    fn find(&self, unseen: &mut Mark, wanted: &impl Fn(&Frame) -> bool) -> Option<Frame> {
        let state = self.shared.state();
        let found = state.log.since(*unseen).find(|frame| wanted(frame)).cloned();
        *unseen = Mark(state.log.next_sequence());
        found
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The task owns the tasks of all connections, which end with it.
        self.accepting.abort();
        let port = Arc::clone(&self.port);
        self.runtime.spawn(async move {
            tokio::time::sleep(PORT_KEPT).await;
            drop(port);
        });
    }
}

async fn accept(port: Arc<HeldPort>, listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut orders = shared.orders();
    let mut listener = Some(listener);
    loop {
        adjust_door(&port, &mut listener, &mut orders, &shared);
        tokio::select! {
            _ = orders.changed() => {}
            client = next_client(listener.as_ref()) => {
                let (number, target) = {
                    let mut state = shared.state();
                    (state.accept(), state.target)
                };
                let shared = Arc::clone(&shared);
                connections.spawn(Connection::run(number, client, target, shared));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Opens or closes the listening socket, if the test wants that.
fn adjust_door(
    port: &HeldPort,
    listener: &mut Option<TcpListener>,
    orders: &mut watch::Receiver<()>,
    shared: &Shared,
) {
    orders.mark_unchanged();
    let wanted = shared.state().door;
    if *shared.door.borrow() == wanted {
        return;
    }
    *listener = match wanted {
        Door::Open => Some(listen(port).expect("a held port can be listened on again")),
        Door::Closed => {
            listener.take().iter().for_each(HeldPort::stop_listening);
            None
        }
    };
    shared.door.send_replace(wanted);
}

fn listen(port: &HeldPort) -> io::Result<TcpListener> {
    TcpListener::from_std(port.listen()?)
}

async fn next_client(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        match listener.accept().await {
            Ok((client, _)) => return client,
            // It has gone already, or there is no file for it: one may be closed, and others may fare better.
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}
