//! One sequence on one server.

use std::{collections::BTreeMap, time::Duration};

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode, OpCode, Xid,
    frame::{ReplyHeader, RequestFrame},
    jute::{Decode as _, Reader},
    request::{CloseSession, ConnectResponse, LEN_CONNECT_RESPONSE_MIN, Ping},
};

use super::{
    encode::{Framing, Meaning},
    record::{Heard, Piece, Record, Zxids, level},
    reply,
    step::{Hello, Name, Request, Sequence, SessionOf, Step},
    wire::{Incoming, Wire},
};

/// Longest session that is asked for when one is to be closed.
const TIMEOUT_OF_CLEANER: i32 = 60_000;

/// Plays a sequence under a top-level path that is its own, and closes all of its sessions in the end.
pub fn play(sequence: &Sequence, root: &str, wire: &mut dyn Wire) -> Record {
    level(&hear(sequence, root, wire), root, Zxids::Ranked)
}

/// Plays a sequence while others are played on the same server, so that transaction numbers say nothing.
pub fn play_among_others(sequence: &Sequence, root: &str, wire: &mut dyn Wire) -> Record {
    level(&hear(sequence, root, wire), root, Zxids::Ignored)
}

fn hear(sequence: &Sequence, root: &str, wire: &mut dyn Wire) -> Vec<Heard> {
    let mut player = Player {
        wire,
        meaning: Meaning::new(root),
        links: BTreeMap::new(),
        heard: Vec::new(),
        zxid: 0,
    };
    for step in &sequence.steps {
        player.heard.push(Heard::default());
        player.meaning.zxids.push(player.zxid);
        player.step(step);
    }
    let heard = std::mem::take(&mut player.heard);
    player.clean_up();
    heard
}

struct Player<'a> {
    wire: &'a mut dyn Wire,
    meaning: Meaning,
    links: BTreeMap<Name, Link>,
    heard: Vec<Heard>,
    /// The highest in any reply.
    zxid: i64,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    number: usize,
    is_established: bool,
}

impl Player<'_> {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Open(name, hello) => self.open(*name, hello),
            Step::Send(name, requests) => self.send(*name, requests),
            Step::HangUp(name) => self.hang_up(*name),
            Step::Wait(millis) => self.wire.pass(Duration::from_millis(u64::from(*millis))),
        }
        self.wait_for_events();
        if let Some(heard) = self.heard.last_mut().filter(|_| ends_sessions(step)) {
            heard.sort_events();
        }
    }

    fn open(&mut self, name: Name, hello: &Hello) {
        self.hang_up(name);
        let mut bytes = BytesMut::new();
        let framing = self.meaning.hello(hello, &mut bytes);
        let number = self.wire.open();
        self.links.insert(name, Link { number, is_established: false });
        self.wire.write(number, &bytes);
        if framing == Framing::Open {
            return self.hang_up(name);
        }
        match self.wire.read(number) {
            Incoming::Frame(frame) => {
                self.hear(name, reply::describe_hello(&frame));
                match session(&frame) {
                    Some(session) => {
                        self.meaning.sessions.insert(name, session);
                        self.links.insert(name, Link { number, is_established: true });
                    }
                    None => self.read_to_end(name, number),
                }
            }
            other => self.end(name, &other),
        }
    }

    fn send(&mut self, name: Name, requests: &[Request]) {
        let Some(&Link { number, .. }) = self.links.get(&name) else {
            return;
        };
        let mut bytes = BytesMut::new();
        let mut framing = Framing::Whole;
        for request in requests {
            framing = self.meaning.request(request, &mut bytes);
        }
        self.wire.write(number, &bytes);
        let answered = requests.len() - usize::from(framing == Framing::Open);
        for request in &requests[..answered] {
            if !self.read_reply(name, request.op) {
                return;
            }
        }
        if framing == Framing::Open {
            self.hang_up(name);
        }
    }

    /// Reads up to the next reply. Whether there was one.
    fn read_reply(&mut self, name: Name, op: OpCode) -> bool {
        while let Some(&Link { number, .. }) = self.links.get(&name) {
            match self.wire.read(number) {
                // Strange, but so it is: this answer is the one to a handshake.
                Incoming::Frame(frame)
                    if op == OpCode::CREATE_SESSION && frame.len() >= LEN_CONNECT_RESPONSE_MIN =>
                {
                    self.hear(name, reply::describe_hello(&frame));
                    return true;
                }
                Incoming::Frame(frame) => {
                    self.hear(name, reply::describe(op, &frame, &self.meaning.root));
                    if let Some(header) =
                        reply::header(&frame).filter(|header| header.xid != Xid::NOTIFICATION)
                    {
                        self.zxid = self.zxid.max(header.zxid.0);
                        if is_last(op, header) {
                            self.read_to_end(name, number);
                        }
                        return true;
                    }
                }
                other => self.end(name, &other),
            }
        }
        false
    }

    /// Whatever a step has led to has been sent once all connections have answered a ping.
    fn wait_for_events(&mut self) {
        let links: Vec<_> = self.links.iter().map(|(&name, &link)| (name, link)).collect();
        let mut ping = BytesMut::new();
        RequestFrame::of(&Ping).write(Xid::PING, &mut ping);
        for (_, link) in links.iter().filter(|(_, link)| link.is_established) {
            self.wire.write(link.number, &ping);
        }
        for (name, link) in links.into_iter().filter(|(_, link)| link.is_established) {
            self.read_pong(name, link.number);
        }
    }

    fn read_pong(&mut self, name: Name, number: usize) {
        loop {
            match self.wire.read(number) {
                Incoming::Frame(frame) => {
                    let header = reply::header(&frame);
                    if header.is_some_and(|header| header.xid == Xid::PING && header.err.is_ok()) {
                        return;
                    }
                    let is_event = header.is_some_and(|header| header.xid == Xid::NOTIFICATION);
                    self.hear(name, reply::describe(OpCode::PING, &frame, &self.meaning.root));
                    if !is_event {
                        return;
                    }
                }
                other => return self.end(name, &other),
            }
        }
    }

    fn read_to_end(&mut self, name: Name, number: usize) {
        loop {
            match self.wire.read(number) {
                Incoming::Frame(frame) => {
                    self.hear(name, reply::describe(OpCode::PING, &frame, &self.meaning.root));
                }
                other => return self.end(name, &other),
            }
        }
    }

    /// Notes that nothing comes any more, or nothing when something should.
    fn end(&mut self, name: Name, how: &Incoming) {
        let how = match how {
            Incoming::Closed => "closed",
            _ => "silent",
        };
        self.hear(name, vec![how.into()]);
        self.hang_up(name);
    }

    fn hang_up(&mut self, name: Name) {
        if let Some(Link { number, .. }) = self.links.remove(&name) {
            self.wire.hang_up(number);
        }
    }

    fn hear(&mut self, name: Name, pieces: Vec<Piece>) {
        if let Some(heard) = self.heard.last_mut() {
            heard.push(name, pieces);
        }
    }

    /// Leaves nothing behind that would end by itself later, in the middle of another sequence.
    fn clean_up(mut self) {
        let mut close = BytesMut::new();
        RequestFrame::of(&CloseSession).write(Xid::FIRST, &mut close);
        let mut sessions = std::mem::take(&mut self.meaning.sessions);
        for (name, Link { number, is_established }) in std::mem::take(&mut self.links) {
            if is_established {
                self.wire.write(number, &close);
                while let Incoming::Frame(_) = self.wire.read(number) {}
                sessions.remove(&name);
            }
            self.wire.hang_up(number);
        }
        for session in sessions.into_values() {
            self.resume_and_write(session, &close);
        }
    }

    fn resume_and_write(&mut self, session: (i64, Vec<u8>), close: &[u8]) {
        let name = Name(0);
        self.meaning.sessions.insert(name, session);
        let hello = Hello::usual(SessionOf::Connection(name), TIMEOUT_OF_CLEANER);
        let mut bytes = BytesMut::new();
        self.meaning.hello(&hello, &mut bytes);
        let number = self.wire.open();
        self.wire.write(number, &bytes);
        if let Incoming::Frame(_) = self.wire.read(number) {
            self.wire.write(number, close);
            while let Incoming::Frame(_) = self.wire.read(number) {}
        }
        self.wire.hang_up(number);
    }
}

/// Whether sessions may end, whose nodes go in no order.
fn ends_sessions(step: &Step) -> bool {
    match step {
        Step::Send(_, requests) => {
            requests.iter().any(|request| request.op == OpCode::CLOSE_SESSION)
        }
        Step::Wait(_) => true,
        Step::Open(..) | Step::HangUp(_) => false,
    }
}

/// Whether the server closes the connection after this reply. It may still answer a ping that arrives
/// before it gets to that, so that a ping would not tell.
fn is_last(op: OpCode, reply: ReplyHeader) -> bool {
    let is_refusal = matches!(
        reply.err,
        ErrorCode::AUTH_FAILED
            | ErrorCode::SESSION_EXPIRED
            | ErrorCode::SESSION_CLOSED_REQUIRE_AUTH
    );
    let is_unknown = reply.err == ErrorCode::UNIMPLEMENTED && reply.zxid.0 == -1;
    let is_closed = op == OpCode::CLOSE_SESSION && reply.err.is_ok();
    is_refusal || is_unknown || is_closed
}

/// The session that a server has granted, and its password.
fn session(frame: &Bytes) -> Option<(i64, Vec<u8>)> {
    if frame.len() < LEN_CONNECT_RESPONSE_MIN {
        return None;
    }
    let response = ConnectResponse::decode(&mut Reader::new(frame)).ok()?;
    let password = response.passwd.0.unwrap_or_default().to_vec();
    (response.time_out > 0).then_some((response.session_id.0, password))
}
