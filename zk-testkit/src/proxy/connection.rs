//! One accepted connection: a task that moves bytes between two sockets and two lanes.

use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Buf;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::sleep_until;

use super::dissect::Dissector;
use super::frame::Direction;
use super::lane::{Close, Demand, Input, Lane, Output};
use super::shared::{Arrival, Ending, Shared};

/// How long an ended connection waits for its peers to close, too. Closing a socket at once, with
/// bytes still unread, would send a reset, which could overtake what was just sent.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes asked for by one read.
const READ_LEN: usize = 64 << 10;

/// Room that is too little for a read, and has the buffer grow.
const READ_LEN_MIN: usize = 8 << 10;

pub(super) struct Connection {
    number: u64,
    shared: Arc<Shared>,
    dissector: Dissector,
    client: Option<TcpStream>,
    server: Option<TcpStream>,
    to_server: Lane,
    to_client: Lane,
    /// When an ended connection is given up.
    linger: Option<Instant>,
    /// The time by which the queues were last released.
    released: Instant,
}

/// A connection that is open, until this is dropped.
struct Counted {
    number: u64,
    shared: Arc<Shared>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shared.forget_connection(self.number);
    }
}

/// What the task woke up for.
enum Event {
    Readable(Direction),
    Writable,
    Control,
}

impl Connection {
    /// Connects to the server, and moves bytes until both sides have ended.
    pub(super) async fn run(
        number: u64,
        client: TcpStream,
        target: SocketAddr,
        shared: Arc<Shared>,
    ) {
        // Whatever becomes of the task: a predicate of a test may panic in it.
        let _counted = Counted { number, shared: Arc::clone(&shared) };
        match open(&client, target).await {
            Ok(server) => {
                let connection = Self {
                    number,
                    shared: Arc::clone(&shared),
                    dissector: Dissector::new(shared.request_len_max),
                    client: Some(client),
                    server: Some(server),
                    to_server: Lane::new(Direction::ToServer),
                    to_client: Lane::new(Direction::ToClient),
                    linger: None,
                    released: Instant::now(),
                };
                connection.drive().await;
            }
            // As near as an accepted connection can come to being refused.
            Err(_) => reset(client),
        }
    }

    async fn drive(mut self) {
        let mut orders = self.shared.orders();
        loop {
            orders.mark_unchanged();
            self.obey();
            self.release();
            self.flush();
            if self.is_finished() {
                self.give_up();
                return;
            }
            match self.event(&mut orders).await {
                Event::Readable(direction) => self.read(direction),
                Event::Writable | Event::Control => {}
            }
        }
    }

    /// Does what the test has ordered meanwhile.
    fn obey(&mut self) {
        let mut state = self.shared.state();
        for lane in [&mut self.to_server, &mut self.to_client] {
            lane.silent = state.is_silenced(lane.direction);
            lane.rate = state.rate(lane.direction);
        }
        let ordered = state.ending(self.number);
        drop(state);
        if let Some(ending) = ordered {
            self.strike(ending);
        }
    }

    /// Waits for the next thing to do.
    ///
    /// The client is looked at before the server, so that what it had sent before a reply could
    /// reach it is also entered before that reply.
    async fn event(&self, orders: &mut tokio::sync::watch::Receiver<()>) -> Event {
        let due = [
            self.to_server.next_due(),
            self.to_client.next_due(),
            self.to_server.ready,
            self.to_client.ready,
            self.linger,
        ];
        // What was due by then and is still there waits for an order, not for the clock.
        let waits = |due: &Instant| *due > self.released;
        let timer = due.into_iter().flatten().filter(waits).min();
        tokio::select! {
            biased;
            _ = orders.changed() => Event::Control,
            () = readable(self.client.as_ref()), if self.to_server.wants_input() => {
                Event::Readable(Direction::ToServer)
            }
            () = readable(self.server.as_ref()), if self.to_client.wants_input() => {
                Event::Readable(Direction::ToClient)
            }
            () = writable(self.server.as_ref()), if self.to_server.wants_output() => Event::Writable,
            () = writable(self.client.as_ref()), if self.to_client.wants_output() => Event::Writable,
            () = elapsed(timer) => Event::Control,
        }
    }

    fn is_finished(&self) -> bool {
        let given_up = self.linger.is_some_and(|until| Instant::now() >= until);
        given_up || (self.to_server.is_finished() && self.to_client.is_finished())
    }

    /// A client that is to be reset is, even if it has not taken what was sent on before.
    fn give_up(&mut self) {
        if self.to_client.output == Output::Closing(Close::Reset) {
            self.client.take().into_iter().for_each(reset);
        }
    }

    /// Reads once, and deals with all whole frames that are there.
    fn read(&mut self, direction: Direction) {
        let now = Instant::now();
        let (stream, lane) = match direction {
            Direction::ToServer => (&self.client, &mut self.to_server),
            Direction::ToClient => (&self.server, &mut self.to_client),
        };
        let Some(stream) = stream else {
            lane.input = Input::Ended;
            return;
        };
        if lane.received.capacity() - lane.received.len() < READ_LEN_MIN {
            lane.received.reserve(READ_LEN);
        }
        match stream.try_read_buf(&mut lane.received) {
            Ok(0) => lane.end_input(now, Close::Orderly),
            Ok(_) => self.take_frames(now, direction),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.lost(now, direction),
        }
    }

    fn take_frames(&mut self, at: Instant, direction: Direction) {
        let batch = self.shared.state().next_batch();
        loop {
            let lane = match direction {
                Direction::ToServer => &mut self.to_server,
                Direction::ToClient => &mut self.to_client,
            };
            let Some(piece) = self.dissector.next(direction, &mut lane.received) else {
                return;
            };
            let arrival = Arrival {
                at,
                connection: self.number,
                direction,
                batch,
                doomed: lane.doomed,
                hushed: lane.hushed,
            };
            let verdict = self.shared.judge(arrival, &piece);
            if lane.doomed || !verdict.goes_on() {
                self.dissector.kept_back(direction, &piece.facts);
            }
            if lane.doomed {
                continue;
            }
            lane.accept(at, piece, verdict);
            // Piece by piece, so that what is not kept back departs under its own number.
            self.release();
        }
    }

    /// A peer has reset its connection, or vanished.
    fn lost(&mut self, now: Instant, from: Direction) {
        match from {
            Direction::ToServer => {
                // What the client had sent before may still be wanted: its requests count.
                self.to_server.end_input(now, Close::Orderly);
                self.to_client.shut_output();
            }
            Direction::ToClient => {
                self.to_client.end_input(now, Close::Reset);
                self.to_server.shut_output();
            }
        }
    }

    /// Moves what may go from the queues to the outboxes, and does what comes up on the way.
    fn release(&mut self) {
        let now = Instant::now();
        self.released = now;
        for direction in [Direction::ToServer, Direction::ToClient] {
            loop {
                let mut state = self.shared.state();
                let lane = match direction {
                    Direction::ToServer => &mut self.to_server,
                    Direction::ToClient => &mut self.to_client,
                };
                let demand = lane.release(now, &mut state);
                match demand {
                    None => break,
                    Some(Demand::HushBoth) => {
                        self.to_server.hush(&state);
                        self.to_client.hush(&state);
                    }
                    Some(Demand::Strike(ending)) => {
                        drop(state);
                        self.strike(ending);
                    }
                }
            }
        }
    }

    /// Ends the connection on both sides.
    fn strike(&mut self, ending: Ending) {
        if self.linger.is_some() {
            return;
        }
        self.linger = Some(Instant::now() + LINGER);
        self.to_server.doom(Close::Orderly);
        self.to_client.doom(match ending {
            Ending::Cut => Close::Orderly,
            Ending::Reset => Close::Reset,
        });
    }

    /// Writes what is free to go, as much as the sockets take.
    fn flush(&mut self) {
        flush(&mut self.to_server, &mut self.server);
        flush(&mut self.to_client, &mut self.client);
        if self.client.is_none() {
            self.to_server.input = Input::Ended;
            // Resetting a client ends its requests, too.
            if self.to_server.output == Output::Open {
                self.to_server.doom(Close::Orderly);
                self.to_server.rate = None;
                flush(&mut self.to_server, &mut self.server);
            }
        }
    }
}

async fn open(client: &TcpStream, target: SocketAddr) -> io::Result<TcpStream> {
    let server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    Ok(server)
}

fn flush(lane: &mut Lane, stream: &mut Option<TcpStream>) {
    let now = Instant::now();
    let Some(socket) = stream else {
        lane.shut_output();
        return;
    };
    while !lane.outbox.is_empty() {
        let len = lane.allowance(now);
        if len == 0 {
            return;
        }
        match socket.try_write(&lane.outbox[..len]) {
            Ok(written) => {
                lane.outbox.advance(written);
                lane.wrote(now, written);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(_) => lane.shut_output(),
        }
    }
    match lane.output {
        Output::Closing(Close::Orderly) => {
            // Fails only if the peer is gone already.
            let _ = SockRef::from(&*socket).shutdown(Shutdown::Write);
            lane.output = Output::Shut;
        }
        Output::Closing(Close::Reset) => {
            if let Some(stream) = stream.take() {
                reset(stream);
            }
            lane.output = Output::Shut;
        }
        Output::Open | Output::Shut => {}
    }
}

/// Closes a connection by a reset (RST) instead of an orderly end (FIN).
fn reset(stream: TcpStream) {
    // Fails only if the peer is gone already.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
}

async fn readable(stream: Option<&TcpStream>) {
    match stream {
        // An error here shows again when reading.
        Some(stream) => drop(stream.readable().await),
        None => pending().await,
    }
}

async fn writable(stream: Option<&TcpStream>) {
    match stream {
        // An error here shows again when writing.
        Some(stream) => drop(stream.writable().await),
        None => pending().await,
    }
}

async fn elapsed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => pending().await,
    }
}
