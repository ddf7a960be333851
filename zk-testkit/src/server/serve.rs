//! One connection's conversation: requests, and answers in order.

use bytes::Bytes;
use zk_proto::{
    ErrorCode, OpCode, SessionId, Str, Text, Time, Xid, Zxid,
    frame::{LEN_PREFIX, RequestHeader, encode_frame, split_frame},
    jute::{Decode as _, Encode, Reader},
    request::SyncRequest,
};

use super::{
    Conn, Ensemble, Member,
    author::Author,
    connection::{Encoded, Phase, Queued, outcome, reply},
    java, quirks,
    read::{self, View, decode},
    sessions::next_multiple,
    txn::Txn,
    words,
};
use crate::real::Release;

/// Shortest request that has a header.
const LEN_REQUEST_MIN: usize = 8;

impl Ensemble {
    /// Takes every whole frame that has come, and serves what can be served.
    pub(super) fn take_frames(&mut self, now: Time, conn: Conn) {
        loop {
            let Some(connection) = self.conns.get_mut(&conn).filter(|it| !it.closing) else {
                return;
            };
            if connection.phase == Phase::Fresh {
                let word = connection.inbound.first_chunk::<LEN_PREFIX>().copied();
                if let Some(word) = word.filter(|word| words::is_word(*word)) {
                    self.note_received(conn);
                    let answer = words::answer(self, conn, word);
                    self.say(conn, answer.as_bytes());
                    self.close(conn);
                    return;
                }
            }
            let Some(connection) = self.conns.get_mut(&conn) else { return };
            if connection.is_deaf {
                break;
            }
            let is_fresh = connection.phase == Phase::Fresh;
            let frame = split_frame(&mut connection.inbound, self.config.request_len_max);
            if matches!(frame, Ok(Some(_))) {
                self.note_received(conn);
            }
            match frame {
                Ok(None) => break,
                Ok(Some(frame)) if is_fresh => {
                    self.shake_hands(now, conn, &frame);
                }
                Ok(Some(frame)) if frame.len() >= LEN_REQUEST_MIN => self.enqueue(now, conn, frame),
                Ok(Some(_)) | Err(_) => {
                    self.close(conn);
                    return;
                }
            }
        }
        self.advance(now, conn);
    }

    /// For callers that ask how much has come.
    fn note_received(&mut self, conn: Conn) {
        let member = self.conns.get(&conn).map(|it| it.member);
        if let Some(replica) = member.and_then(|member| self.members.get_mut(member)) {
            replica.received += 1;
        }
    }

    pub(super) fn say_frame(&mut self, conn: Conn, content: &impl Encode) {
        let mut frame = bytes::BytesMut::new();
        encode_frame(content, &mut frame);
        self.say(conn, &frame);
    }

    pub(super) fn queue(&mut self, conn: Conn, item: Queued) {
        if let Some(connection) = self.conns.get_mut(&conn) {
            connection.queue.push_back(item);
        }
    }

    /// Puts a request in line; credentials overtake it, as on real servers.
    fn enqueue(&mut self, now: Time, conn: Conn, frame: Bytes) {
        let mut reader = Reader::new(&frame);
        let Ok(header) = RequestHeader::decode(&mut reader) else { return };
        let body = frame.slice(reader.offset()..);
        match header.op {
            OpCode::AUTH => self.authenticate(conn, header, &body),
            OpCode::SASL => self.step_sasl(conn, header, &body),
            _ if self.turns_away(conn, header) => {}
            op => {
                match self.conns.get(&conn).map(|it| it.phase) {
                    Some(Phase::Bound(session)) => self.heard_of(now, conn, session),
                    Some(Phase::ReadOnly(session)) => self.reader_heard_of(now, conn, session),
                    Some(Phase::Fresh) | None => {}
                }
                let item = if self.throttles(conn, op) {
                    Queued::Throttled { xid: header.xid }
                } else if quirks::knows(self.config.release, op) {
                    Queued::Request { header, body }
                } else {
                    self.refusal(conn, header.xid)
                };
                self.queue(conn, item);
            }
        }
    }

    /// Refuses an operation that the release does not know, and ends the connection. Real servers refuse it where they read
    /// it, and are at work on earlier requests meanwhile, whose answers may come first or last: here, every other time.
    fn refusal(&mut self, conn: Conn, xid: Xid) -> Queued {
        let frame = reply(xid, Zxid(-1), Err(ErrorCode::UNIMPLEMENTED));
        let overtakes = xid.0 % 2 == 0;
        if overtakes {
            self.say(conn, &frame);
        }
        let frame = if overtakes { Bytes::new() } else { frame };
        Queued::Answer { at: Zxid(0), frame, last: true }
    }

    /// Whether a request is not carried out, since the member has too much to do. Heartbeats and the ends of sessions
    /// are.
    fn throttles(&mut self, conn: Conn, op: OpCode) -> bool {
        let member = self.conns.get(&conn).and_then(|it| self.members.get(it.member));
        let throttled = member.map_or(0, |replica| replica.throttled);
        throttled > 0
            && self.config.release >= Release::V3_7
            && !matches!(op, OpCode::PING | OpCode::CLOSE_SESSION | OpCode::CREATE_SESSION)
            && crate::rng::next(&mut self.throttling) % 1_000 < throttled
    }

    /// A session lives as long as the leader hears of it. Other members tell it when it asks them next.
    fn heard_of(&mut self, now: Time, conn: Conn, session: SessionId) {
        let Some(member) = self.conns.get(&conn).map(|it| it.member) else { return };
        if self.leader_of(member) == Some(member) {
            self.sessions.touch(now, session);
        } else if let Some(replica) = self.members.get_mut(member) {
            replica.touched.insert(session);
            // It asks twice in a tick.
            let next = || next_multiple(now.since_epoch(), self.config.tick / 2);
            self.reports.get_or_insert_with(next);
        }
    }

    /// The members that have a leader tell it of which sessions they have heard.
    pub(super) fn report(&mut self, now: Time) {
        for member in 0..self.members.len() {
            if self.leader_of(member).is_some() {
                self.report_of(now, member);
            }
        }
    }

    /// A member tells the leader of which sessions it has heard.
    pub(super) fn report_of(&mut self, now: Time, member: usize) {
        let Some(replica) = self.members.get_mut(member) else { return };
        for session in std::mem::take(&mut replica.touched) {
            self.sessions.touch(now, session);
        }
    }

    /// After a pause everything that waits gets another chance.
    pub(super) fn resume(&mut self, member: usize) {
        if let Some(replica) = self.members.get(member) {
            self.ready.extend(replica.bound.values());
        }
    }

    /// Serves every client that can be served, one after the other: what is done for one can be what another has
    /// waited for.
    pub(super) fn settle(&mut self, now: Time) {
        while let Some(conn) = self.ready.pop_first() {
            self.take_frames(now, conn);
        }
    }

    /// Serves as much of a connection's queue as can be served, in order. While its member has not come so
    /// far, the leader can take what follows.
    pub(super) fn advance(&mut self, now: Time, conn: Conn) {
        let mut place = 0;
        loop {
            // Before each decision: what stands in front of a write is answered as of before it.
            self.serve_locally(conn);
            let Some(connection) = self.conns.get(&conn) else { return };
            place = connection.taken.max(place);
            if !self.forward(now, conn, place) {
                return;
            }
            place += 1;
        }
    }

    /// Serves what stands at the front of a connection's queue and needs no leader: reads, and answers
    /// whose transaction the member has applied.
    pub(super) fn serve_locally(&mut self, conn: Conn) {
        loop {
            let Some(connection) = self.conns.get_mut(&conn).filter(|it| !it.closing) else {
                return;
            };
            let Some(replica) = self.members.get_mut(connection.member) else { return };
            let applied = replica.applied;
            match connection.queue.front() {
                Some(Queued::Answer { at, .. } | Queued::Sync { at, .. }) if *at > applied => {
                    replica.waiting.insert(conn);
                    return;
                }
                Some(Queued::Request { header, .. }) if goes_to_leader(header.op) => return,
                _ => {}
            }
            match connection.take() {
                Some(Queued::Answer { frame, last, .. }) => {
                    // The first answer is the one to the handshake: now the client may be heard.
                    if std::mem::take(&mut connection.is_deaf) {
                        self.ready.insert(conn);
                    }
                    self.say(conn, &frame);
                    if last {
                        self.close(conn);
                    }
                }
                Some(Queued::Sync { xid, path, .. }) => {
                    let answer = reply(xid, applied, Ok(&Self::sync_answer(&path)));
                    self.say(conn, &answer);
                }
                Some(Queued::Throttled { xid }) => {
                    let answer = reply(xid, applied, Err(ErrorCode::THROTTLED_OP));
                    self.say(conn, &answer);
                }
                Some(Queued::Request { header, body }) => self.read(conn, header, &body, applied),
                None => return,
            }
        }
    }

    fn read(&mut self, conn: Conn, header: RequestHeader, body: &Bytes, applied: Zxid) {
        if header.op == OpCode::PING {
            // Whatever number the heartbeat had.
            let pong = reply(Xid::PING, applied, Ok(&Encoded::default()));
            self.say(conn, &pong);
            return;
        }
        let Some(connection) = self.conns.get(&conn) else { return };
        let (Some(session), Some(replica)) =
            (connection.session(), self.members.get_mut(connection.member))
        else {
            return;
        };
        let mut view = View {
            conn,
            session,
            identities: &connection.identities,
            tree: &replica.tree,
            watches: &mut replica.watches,
            config: &self.config,
        };
        let mut missed = Vec::new();
        let answer = view.answer(header.op, body, &mut missed);
        for (kind, path) in missed {
            self.say(conn, &read::event(kind, &path, Zxid(-1)));
        }
        self.say(conn, &outcome(header.xid, applied, &answer));
    }

    /// Hands the request at a [place](super::connection::Connection::at) of the queue to the leader, if it is one for the leader.
    /// Returns whether those behind it may be looked at.
    fn forward(&mut self, now: Time, conn: Conn, place: u64) -> bool {
        let connection = self.conns.get_mut(&conn).filter(|it| !it.closing);
        let Some(item) = connection.and_then(|it| it.at(place)) else { return false };
        let Queued::Request { header, body } = item else { return true };
        if !goes_to_leader(header.op) {
            return true;
        }
        let (header, body) = (*header, body.clone());
        let before = self.serving.replace(conn);
        let answer = self.decide(now, conn, header, &body);
        self.serving = before;
        let slot = self.conns.get_mut(&conn).and_then(|it| it.at(place));
        match (answer, slot) {
            (Some(answer), Some(slot)) => {
                *slot = answer;
                true
            }
            _ => false,
        }
    }

    /// Has the leader decide on a request. `None`: it cannot be reached, or the connection has ended.
    fn decide(
        &mut self,
        now: Time,
        conn: Conn,
        header: RequestHeader,
        body: &Bytes,
    ) -> Option<Queued> {
        let RequestHeader { xid, op } = header;
        let connection = self.conns.get(&conn)?;
        let member = connection.member;
        let session = match connection.phase {
            Phase::Bound(session) => session,
            Phase::ReadOnly(session) => {
                return Some(self.refuse_write(now, member, session, header));
            }
            Phase::Fresh => return None,
        };
        let Some(leader) = self.leader_of(member) else {
            return self.decide_alone(member, header, body);
        };
        // A refusal names the newest transaction, which this member must have come to.
        let refusal =
            |at, error| Queued::Answer { at, frame: reply(xid, at, Err(error)), last: false };
        let Some(owner) = self.sessions.get(session).map(|it| it.conn()) else {
            return Some(refusal(self.zxid, ErrorCode::SESSION_EXPIRED));
        };
        if owner != Some(conn) {
            // The session has moved to another member; this one must not act for it.
            self.close(conn);
            return None;
        }
        Some(match op {
            OpCode::SYNC => match decode::<SyncRequest<'_>>(body) {
                Ok(request) => Queued::Sync { at: self.zxid, xid, path: echo(request.path) },
                Err(error) => refusal(self.zxid, error),
            },
            OpCode::CLOSE_SESSION => {
                self.sessions.close(session);
                let stamp = self.stamp(now, session);
                self.record(now, leader, stamp, Txn::CloseSession);
                let frame = reply(xid, stamp.zxid, Ok(&Encoded::default()));
                Queued::Answer { at: stamp.zxid, frame, last: true }
            }
            // Clients are not meant to ask for this; they are greeted again.
            OpCode::CREATE_SESSION => {
                let greeting = connection.greeting.clone();
                let stamp = self.stamp(now, session);
                let (txn, frame) = match decode(body) {
                    Ok(timeout) => (Txn::OpenSession { timeout }, greeting),
                    Err(error) => (Txn::Error(error), reply(xid, stamp.zxid, Err(error))),
                };
                self.record(now, leader, stamp, txn);
                Queued::Answer { at: stamp.zxid, frame, last: false }
            }
            op => {
                let identities = connection.identities.clone();
                let author = Author { session, identities };
                let answer = self.commit(now, leader, &author, op, body);
                let frame = outcome(xid, answer.zxid, &answer.result);
                Queued::Answer { at: answer.zxid, frame, last: false }
            }
        })
    }

    /// Answers a write where a member serves readers only.
    fn refuse_write(
        &mut self,
        now: Time,
        member: usize,
        session: SessionId,
        header: RequestHeader,
    ) -> Queued {
        let close = header.op == OpCode::CLOSE_SESSION;
        if close {
            self.end_at_reader(now, member, session);
        }
        let applied = self.applied(Member(member));
        let frame = match close {
            true => reply(header.xid, applied, Ok(&Encoded::default())),
            false => reply(header.xid, applied, Err(ErrorCode::NOT_READ_ONLY)),
        };
        Queued::Answer { at: Zxid(0), frame, last: close }
    }
}

/// Whether a request is for the leader to decide.
const fn goes_to_leader(op: OpCode) -> bool {
    matches!(
        op,
        OpCode::CREATE
            | OpCode::CREATE2
            | OpCode::CREATE_CONTAINER
            | OpCode::CREATE_TTL
            | OpCode::DELETE
            | OpCode::DELETE_CONTAINER
            | OpCode::SET_DATA
            | OpCode::SET_ACL
            | OpCode::SYNC
            | OpCode::MULTI
            | OpCode::RECONFIG
            | OpCode::CLOSE_SESSION
            | OpCode::CREATE_SESSION
    )
}

/// A string as servers give it back: what is not UTF-8 has been replaced.
pub(super) fn echo(text: Str<'_>) -> Text {
    match text.as_bytes() {
        Some(bytes) => java::text(&java::string(Some(bytes))),
        None => Text::NULL,
    }
}
