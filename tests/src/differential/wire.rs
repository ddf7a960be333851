//! What a sequence is played on.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{ErrorKind, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use zk_proto::{
    Time,
    frame::{LEN_REPLY_MAX, split_frame},
};
use zk_testkit::server::{Conn, Ensemble, Member, Output};

/// How long a real server may take for an answer before it counts as none.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server, seen through connections that carry frames.
pub trait Wire {
    /// Connects. Connections are numbered from 0, and no number is used twice.
    fn open(&mut self) -> usize;
    /// Sends bytes; a connection that is closed swallows them.
    fn write(&mut self, link: usize, bytes: &[u8]);
    /// Waits for what comes next.
    fn read(&mut self, link: usize) -> Incoming;
    /// Closes a connection from this side.
    fn hang_up(&mut self, link: usize);
    /// Lets time pass.
    fn pass(&mut self, time: Duration);
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A frame, without its length.
    Frame(Bytes),
    /// The server has closed the connection.
    Closed,
    /// Nothing, for so long that nothing will come.
    Silence,
}

/// A server at an address.
#[derive(Debug)]
pub struct Tcp {
    addr: SocketAddr,
    links: Vec<Option<Stream>>,
}

#[derive(Debug)]
struct Stream {
    socket: TcpStream,
    received: BytesMut,
}

impl Tcp {
    /// The server there; nothing is connected yet.
    pub const fn new(addr: SocketAddr) -> Self {
        Self { addr, links: Vec::new() }
    }
}

impl Wire for Tcp {
    fn open(&mut self) -> usize {
        let socket = TcpStream::connect(self.addr).expect("the server listens");
        socket.set_nodelay(true).expect("an option that sockets have");
        socket.set_read_timeout(Some(PATIENCE)).expect("an option that sockets have");
        self.links.push(Some(Stream { socket, received: BytesMut::new() }));
        self.links.len() - 1
    }

    fn write(&mut self, link: usize, bytes: &[u8]) {
        if let Some(stream) = &mut self.links[link] {
            // A server that has closed the connection will say so to the reader.
            let _ = stream.socket.write_all(bytes);
        }
    }

    fn read(&mut self, link: usize) -> Incoming {
        match &mut self.links[link] {
            Some(stream) => stream.read(),
            None => Incoming::Closed,
        }
    }

    fn hang_up(&mut self, link: usize) {
        if let Some(Stream { mut socket, .. }) = self.links[link].take() {
            // The server's end tells that it has noticed. If it was first, there is nothing to shut.
            let _ = socket.shutdown(Shutdown::Write);
            let deadline = Instant::now() + PATIENCE;
            let mut rest = [0; 4096];
            while socket.read(&mut rest).is_ok_and(|len| len > 0) && Instant::now() < deadline {}
        }
    }

    fn pass(&mut self, time: Duration) {
        // On a real server it is time itself that is waited for.
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            thread::park_timeout(left);
        }
    }
}

impl Stream {
    fn read(&mut self) -> Incoming {
        loop {
            match split_frame(&mut self.received, LEN_REPLY_MAX) {
                Ok(Some(frame)) => return Incoming::Frame(frame),
                Ok(None) => {}
                Err(error) => panic!("a server has sent this: {error}"),
            }
            let mut chunk = [0; 16 * 1024];
            match self.socket.read(&mut chunk) {
                Ok(0) => return Incoming::Closed,
                Ok(len) => self.received.extend_from_slice(&chunk[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Incoming::Silence;
                }
                Err(_) => return Incoming::Closed,
            }
        }
    }
}

/// An ensemble in this process, under a clock that only moves when advanced.
#[derive(Debug)]
pub struct Memory {
    ensemble: Ensemble,
    now: Time,
    links: Vec<Option<Conn>>,
    lines: BTreeMap<Conn, Line>,
}

/// What an ensemble has sent over a connection, and whether it will send more.
#[derive(Debug, Default)]
struct Line {
    received: BytesMut,
    frames: VecDeque<Bytes>,
    is_closed: bool,
}

impl Memory {
    /// An ensemble at the beginning of its time.
    pub const fn new(ensemble: Ensemble) -> Self {
        Self { ensemble, now: Time::ZERO, links: Vec::new(), lines: BTreeMap::new() }
    }

    /// Carries out what the ensemble wants, until it wants nothing more at this time.
    fn settle(&mut self) {
        loop {
            while let Some(output) = self.ensemble.poll() {
                match output {
                    Output::Write { conn, bytes } => self.line(conn).take(&bytes),
                    Output::Close { conn } => self.line(conn).is_closed = true,
                }
            }
            match self.ensemble.deadline() {
                Some(due) if due <= self.now => self.ensemble.elapsed(self.now),
                _ => return,
            }
        }
    }

    fn line(&mut self, conn: Conn) -> &mut Line {
        self.lines.entry(conn).or_default()
    }
}

impl Line {
    fn take(&mut self, bytes: &[u8]) {
        assert!(!self.is_closed, "a server does not write to what it has closed");
        self.received.extend_from_slice(bytes);
        while let Some(frame) =
            split_frame(&mut self.received, LEN_REPLY_MAX).expect("frames of legal length")
        {
            self.frames.push_back(frame);
        }
    }
}

impl Wire for Memory {
    fn open(&mut self) -> usize {
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        self.links.push(self.ensemble.accept(self.now, Member(0), peer));
        self.settle();
        self.links.len() - 1
    }

    fn write(&mut self, link: usize, bytes: &[u8]) {
        if let Some(conn) = self.links[link] {
            if !self.line(conn).is_closed {
                self.ensemble.received(self.now, conn, bytes);
                self.settle();
            }
        }
    }

    fn read(&mut self, link: usize) -> Incoming {
        let Some(conn) = self.links[link] else {
            return Incoming::Closed;
        };
        let line = self.line(conn);
        match line.frames.pop_front() {
            Some(frame) => Incoming::Frame(frame),
            None if line.is_closed => Incoming::Closed,
            None => Incoming::Silence,
        }
    }

    fn hang_up(&mut self, link: usize) {
        if let Some(conn) = self.links[link].take() {
            if !self.line(conn).is_closed {
                self.ensemble.hung_up(self.now, conn);
                self.settle();
            }
            self.lines.remove(&conn);
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now.after(time);
        while let Some(due) = self.ensemble.deadline().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            self.ensemble.elapsed(self.now);
            self.settle();
        }
        self.now = end;
        self.settle();
    }
}
