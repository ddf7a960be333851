//! Hostile clients against an ensemble: whatever they send, every request is answered in its turn or its
//! connection is closed, and nothing is left of them.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode, OpCode, Secret, SessionId, Time, Xid, Zxid,
    frame::{LEN_PREFIX, ReplyHeader, RequestHeader, encode_frame, encode_frame_with, split_frame},
    jute::{Encode as _, decode_prefix},
    request::{ConnectRequest, TrailingFlag},
    traffic::{Received, Reply, Traffic},
};
use zk_testkit::server::{Config, Conn, Ensemble, Member, NodeKind, Output};

use super::server_requests::Requests;
use crate::input::Input;

/// Connections at the same time.
const CONNS: usize = 4;

/// Most steps of one script: more only takes time.
const STEPS_MAX: usize = 200;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Longer than the longest session, and than everything that members wait for.
const LONG: Duration = Duration::from_secs(120);

/// A script of what clients, the network and the members do.
pub(super) fn server_inputs(input: &[u8]) {
    let mut input = Input::new(input);
    let mut world = World::new(Ensemble::new(config(&mut input)));
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        world.step(&mut input);
    }
    world.end();
}

fn config(input: &mut Input<'_>) -> Config {
    let what = input.byte();
    let mut config = Config::default();
    config.members = if what & 1 == 0 { 1 } else { 3 };
    config.read_only_mode = what & 2 != 0;
    config.extended_types = what & 4 != 0;
    config.enforce_quota = what & 8 != 0;
    config.request_len_max = 1 << 12;
    // super:secret
    let digest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4=";
    config.super_digest = (what & 16 != 0).then(|| digest.into());
    config
}

/// A client's side of a connection.
#[derive(Debug)]
struct Client {
    conn: Conn,
    inbound: BytesMut,
    /// Frames of both sides.
    traffic: Traffic,
    is_greeted: bool,
    has_greeted: bool,
    /// Whether it has sent bytes that are not accounted for.
    is_wild: bool,
    seen: Zxid,
}

#[derive(Debug)]
struct World {
    ensemble: Ensemble,
    now: Time,
    clients: [Option<Client>; CONNS],
    /// The last session of each, with its password.
    sessions: [Option<(SessionId, Bytes)>; CONNS],
}

impl World {
    fn new(ensemble: Ensemble) -> Self {
        Self {
            ensemble,
            now: Time::ZERO,
            clients: Default::default(),
            sessions: Default::default(),
        }
    }

    /// One thing happens.
    fn step(&mut self, input: &mut Input<'_>) {
        let what = input.byte();
        let place = usize::from(what & 3);
        match what >> 2 {
            // In the place of the client that had this connection.
            0..=4 => {
                let member = self.member(input);
                self.hang_up(place);
                let conn = self.ensemble.accept(self.now, member, PEER);
                self.clients[place] = conn.map(Client::new);
            }
            5 => self.hang_up(place),
            6..=12 => self.greet(place, input),
            // Bytes of any meaning.
            13..=15 => {
                let bytes = input.bytes();
                if let Some(client) = &mut self.clients[place] {
                    client.is_wild = true;
                    self.ensemble.received(self.now, client.conn, bytes);
                }
            }
            16 => {
                let header = RequestHeader { xid: Xid(input.number()), op: OpCode(input.number()) };
                let body = input.bytes();
                let mut frame = BytesMut::new();
                encode_frame_with(&mut frame, |out| {
                    header.encode(out);
                    out.extend_from_slice(body);
                });
                self.ask(place, header, &frame.freeze());
            }
            17..=54 => {
                let xid = Xid(i32::from(input.byte()) + 1);
                let request = Requests(input).request();
                let op = request.op();
                let xid = match op {
                    OpCode::PING => Xid::PING,
                    OpCode::AUTH => Xid::AUTH,
                    _ => xid,
                };
                let mut frame = BytesMut::new();
                request.write(xid, &mut frame);
                self.ask(place, RequestHeader { xid, op }, &frame.freeze());
            }
            55..=59 => self.pass(input.time()),
            _ => self.trouble(place, input),
        }
        self.pump();
    }

    fn member(&self, input: &mut Input<'_>) -> Member {
        Member(input.below(self.ensemble.config().members))
    }

    fn hang_up(&mut self, place: usize) {
        if let Some(client) = self.clients[place].take() {
            self.ensemble.hung_up(self.now, client.conn);
        }
    }

    /// A handshake: for a new session, or for the one of another connection.
    fn greet(&mut self, place: usize, input: &mut Input<'_>) {
        let what = input.byte();
        let known = self.sessions[usize::from(what >> 1 & 3)].clone().filter(|_| what & 1 != 0);
        let (session_id, mut password) = known.unwrap_or((SessionId(0), Bytes::new()));
        if what & 9 == 9 {
            password = Bytes::from_static(b"a wrong password");
        }
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: Zxid(if what & 0x10 == 0 { 0 } else { input.byte().into() }),
            time_out: if what & 0x20 == 0 { 10_000 } else { input.number() },
            session_id,
            passwd: Secret(Some(&password)),
            read_only: TrailingFlag(
                [None, Some(true), Some(false), Some(true)][usize::from(what >> 6)],
            ),
        };
        let mut frame = BytesMut::new();
        encode_frame(&request, &mut frame);
        let Some(client) = &mut self.clients[place] else { return };
        // Whatever it is, behind a handshake it is a request.
        client.is_wild |= std::mem::replace(&mut client.has_greeted, true);
        let frame = frame.freeze();
        client.send(&frame);
        self.ensemble.received(self.now, client.conn, &frame);
    }

    fn ask(&mut self, place: usize, RequestHeader { xid, op }: RequestHeader, frame: &Bytes) {
        let Some(client) = &mut self.clients[place] else { return };
        // In front of a handshake it is taken for one.
        client.is_wild |= !client.has_greeted;
        // Their answers could be taken for something else.
        client.is_wild |= match (op, xid) {
            (OpCode::AUTH, Xid::AUTH) | (OpCode::PING, _) => false,
            (OpCode::AUTH | OpCode::SASL, _) | (_, Xid::AUTH | Xid::NOTIFICATION) => true,
            _ => false,
        };
        client.send(frame);
        self.ensemble.received(self.now, client.conn, frame);
    }

    /// Wakes the ensemble at each of its deadlines.
    fn pass(&mut self, time: Duration) {
        let until = self.now.after(time);
        let mut wakes = 0;
        while let Some(due) = self.ensemble.deadline().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.ensemble.elapsed(self.now);
            self.pump();
            wakes += 1;
            assert!(wakes < 10_000, "woken {wakes} times until {}", self.now);
        }
        self.now = until;
        self.ensemble.elapsed(self.now);
        self.pump();
    }

    /// Something is wrong with the members.
    fn trouble(&mut self, place: usize, input: &mut Input<'_>) {
        let (now, what) = (self.now, input.byte() % 8);
        match what {
            5 => return self.ensemble.depose(now),
            6 => {
                if let Some((session, _)) = self.sessions[place] {
                    self.ensemble.expire(now, session);
                }
                return;
            }
            _ => {}
        }
        let member = self.member(input);
        match what {
            0 => self.ensemble.stop(now, member),
            1 => self.ensemble.start(now, member),
            2 => self.ensemble.cut_off(now, member),
            3 => self.ensemble.rejoin(now, member),
            4 => self.ensemble.set_lag(now, member, input.time()),
            _ => self.ensemble.drop_connections(now, Some(member)),
        }
    }

    fn pump(&mut self) {
        while let Some(output) = self.ensemble.poll() {
            match output {
                Output::Write { conn, bytes } => self.hear(conn, &bytes),
                Output::Close { conn } => {
                    let is_it = |client: &Option<Client>| {
                        client.as_ref().is_some_and(|client| client.conn == conn)
                    };
                    if let Some(place) = self.clients.iter().position(is_it) {
                        self.clients[place] = None;
                    }
                }
            }
        }
    }

    fn hear(&mut self, conn: Conn, bytes: &[u8]) {
        let mut found = self.clients.iter_mut().zip(&mut self.sessions);
        let found = found.find_map(|(client, session)| {
            let client = client.as_mut().filter(|client| client.conn == conn)?;
            Some((client, session))
        });
        let (client, session) = found.expect("nothing is said to somebody who has gone");
        client.inbound.extend_from_slice(bytes);
        if let Some(welcome) = client.hear() {
            *session = Some(welcome);
        }
    }

    /// The members come together again, and all clients get an answer; then all leave, and nothing
    /// of them is left.
    fn end(&mut self) {
        for member in (0..self.ensemble.config().members).map(Member) {
            self.ensemble.start(self.now, member);
            self.ensemble.rejoin(self.now, member);
            self.ensemble.set_lag(self.now, member, Duration::ZERO);
        }
        self.pump();
        // An election, and what was to be lagged behind.
        self.pass(Duration::from_secs(30));
        for client in self.clients.iter().flatten().filter(|client| !client.is_wild) {
            assert!(
                client.traffic.pending().count() == 0 || !client.is_greeted,
                "without an answer: {client:?}"
            );
        }
        for place in 0..CONNS {
            self.hang_up(place);
        }
        self.pump();
        self.pass(LONG);
        assert_eq!(self.ensemble.watch_count(), 0, "watches of nobody");
        assert_eq!(self.ensemble.sessions().count(), 0, "sessions that nobody keeps");
        let tree = self.ensemble.tree(Member(0)).expect("there is a member");
        let ephemeral = tree.iter().find(|(_, node)| matches!(node.kind(), NodeKind::Ephemeral(_)));
        assert!(ephemeral.is_none(), "of no session: {ephemeral:?}");
    }
}

impl Client {
    fn new(conn: Conn) -> Self {
        Self {
            conn,
            inbound: BytesMut::new(),
            traffic: Traffic::default(),
            is_greeted: false,
            has_greeted: false,
            is_wild: false,
            seen: Zxid(0),
        }
    }

    /// Takes note of a frame with its length prefix.
    fn send(&mut self, frame: &Bytes) {
        if !self.is_wild {
            let sent = self.traffic.sent(&frame.slice(LEN_PREFIX..)).map(drop);
            assert_eq!(sent, Ok(()), "what is sent on purpose can be read");
        }
    }

    /// Takes what has come for what it should be. Returns a session that it has been given.
    fn hear(&mut self) -> Option<(SessionId, Bytes)> {
        let mut welcome = None;
        // A wild one may have asked in words, which are answered without frames.
        while self.is_greeted || !self.is_wild {
            let frame = split_frame(&mut self.inbound, usize::MAX).expect("lengths are in range");
            let Some(frame) = frame else { break };
            if self.is_wild {
                // A reply to a request with the xid of events can be taken for one.
                decode_prefix::<ReplyHeader>(&frame).expect("every frame has a header");
                continue;
            }
            match self.traffic.received(&frame).expect("a server's frames can be read") {
                Received::Connect(answer) => {
                    self.is_greeted = true;
                    let password = answer.passwd.0.expect("there is a password");
                    welcome = Some((answer.session_id, password)).filter(|_| answer.time_out > 0);
                }
                Received::Refused(header) => {
                    // Read-only servers wait for what comes next.
                    assert_eq!(header.err, ErrorCode::NOT_READ_ONLY, "{frame:?}");
                    self.is_wild = true;
                }
                Received::Event { .. } => {}
                Received::Reply(reply) => self.hear_reply(&reply),
            }
        }
        welcome
    }

    fn hear_reply(&mut self, reply: &Reply) {
        let header = reply.header;
        assert!(reply.request.is_some(), "nobody has asked: {header:?}");
        if header.xid == Xid::AUTH {
            return;
        }
        // What a server does not know it answers at once, without looking at its state.
        if header.err != ErrorCode::UNIMPLEMENTED {
            assert_eq!(reply.overtaken, 0, "answers come in the order of requests: {header:?}");
            assert!(header.zxid >= self.seen, "{header:?} after {:?}", self.seen);
            self.seen = header.zxid;
        }
        assert_eq!(reply.check(), Ok(()), "the body of {reply:?}");
    }
}
