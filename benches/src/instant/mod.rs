//! A server that answers at once, from memory: what is left is the client.
//!
//! It keeps no nodes. Data are as long as the name of their node says (`/anything-128`), and so many are its children;
//! every create and every write succeeds. It tracks which session watches what, since the cost of notifying watchers is
//! measured too.
//!
//! One thread, one read and one write for whatever has come. An answer that was given before to the same question
//! is copied, with the question's xid.
//!
//! | module | concern |
//! |---|---|
//! | `connection` | bytes, frames, and what is asked without a session |
//! | `answers` | what is answered to a question |

mod answers;
mod connection;

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    rc::{Rc, Weak},
    task::Waker,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Notify,
    task::{JoinSet, LocalSet},
};
use tokio_rustls::TlsAcceptor;

use self::connection::Connection;
use crate::{client::Failure, tls::HANDSHAKE};

/// Most that is read at once.
const READ_LEN: usize = 256 << 10;

/// What connections share.
struct World {
    buffer: RefCell<Vec<u8>>,
    requests: Cell<u64>,
    sessions: Cell<i64>,
    longest_silence: Cell<Duration>,
    /// When each connection that has a session was heard of.
    heard: RefCell<Vec<Weak<Cell<Instant>>>>,
    /// Watches of a path: one-shot ones; and then the persistent connections that receive every write.
    watchers: RefCell<HashMap<Bytes, Vec<Watcher>>>,
    /// It is to break all connections, and to be down for a while.
    cut: Notify,
}

struct Watcher {
    mailbox: Rc<Mailbox>,
    persistent: bool,
}

/// What other connections have for one.
#[derive(Default)]
struct Mailbox {
    events: RefCell<BytesMut>,
    waker: RefCell<Option<Waker>>,
}

impl World {
    fn new() -> Self {
        Self {
            buffer: RefCell::new(vec![0; READ_LEN]),
            requests: Cell::new(0),
            sessions: Cell::new(0),
            longest_silence: Cell::new(Duration::ZERO),
            heard: RefCell::default(),
            watchers: RefCell::default(),
            cut: Notify::new(),
        }
    }

    fn note_silence(&self, silence: Duration) {
        self.longest_silence.set(self.longest_silence.get().max(silence));
    }

    /// Clients that are still silent.
    fn note_silences(&self) {
        let mut heard = self.heard.borrow_mut();
        heard.retain(|it| it.strong_count() > 0);
        heard.iter().filter_map(Weak::upgrade).for_each(|it| self.note_silence(it.get().elapsed()));
    }
}

/// Serves until the input ends, those that begin with a handshake by TLS. Where a client asks it to, it is down for so
/// long.
pub(crate) fn serve(
    tls: Option<TlsAcceptor>,
    outage: Duration,
    announce: fn(&str),
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let mut listener = listen((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = listener.local_addr()?;
        announce(&address.to_string());
        let serving = async {
            let world = Rc::new(World::new());
            loop {
                serve_until_cut(listener, &world, tls.as_ref()).await;
                world.watchers.borrow_mut().clear();
                tokio::time::sleep(outage).await;
                listener = match listen(address) {
                    Ok(listener) => listener,
                    Err(failed) => return failed,
                };
            }
        };
        let ended = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink()));
        tokio::select! {
            ended = ended => ended?.map(drop)?,
            failed = serving => return Err(failed.into()),
        }
        Ok(())
    })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    // Connections that were cut keep its port for a while.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(4096)
}

/// Breaks all connections when it is to be down.
async fn serve_until_cut(listener: TcpListener, world: &Rc<World>, tls: Option<&TlsAcceptor>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = world.cut.notified() => return,
            Some(_) = connections.join_next() => {}
            // A client that cannot be accepted has gone.
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                connections.spawn_local(serve_one(Connection::new(world.clone()), stream, tls.cloned()));
            },
        }
    }
}

/// As the first byte says: four-letter words come without TLS.
async fn serve_one(connection: Connection, stream: TcpStream, tls: Option<TlsAcceptor>) {
    // A socket that cannot be notified is as slow as one.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return connection.serve(stream).await };
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(_) if first != [HANDSHAKE] => connection.serve(stream).await,
        Ok(_) => match tls.accept(stream).await {
            Ok(secured) => connection.serve(secured).await,
            Err(failed) => eprintln!("no TLS with a client: {failed}"),
        },
        // It has gone.
        Err(_) => {}
    }
}
