//! How a connection gets a session: a new one, or one that it had before.

use std::time::Duration;

use bytes::Bytes;
use zk_proto::{
    Secret, SessionId, Time, Zxid,
    frame::encode_frame,
    jute::{Decode as _, Reader},
    request::{ConnectRequest, ConnectResponse, TrailingFlag},
};

use super::{
    Conn, Ensemble,
    connection::{Phase, Queued},
    member::Service,
    sessions::PASSWORD_LEN,
    txn::Txn,
};

impl Ensemble {
    pub(super) fn shake_hands(&mut self, now: Time, conn: Conn, frame: &Bytes) {
        let Some(connection) = self.conns.get_mut(&conn) else { return };
        connection.is_deaf = true;
        let member = connection.member;
        let Ok(request) = ConnectRequest::decode(&mut Reader::new(frame)) else {
            self.close(conn);
            return;
        };
        let Some(replica) = self.members.get(member) else { return };
        let service = replica.service;
        let refused = match service {
            Service::Nobody => true,
            Service::Readers => !request.read_only.0.unwrap_or_default(),
            Service::All => false,
        };
        // A client from the future: what it has seen has not happened here.
        if refused || request.last_zxid_seen > replica.applied {
            self.close(conn);
            return;
        }
        let timeout = self.negotiate(request.time_out);
        if service == Service::Readers {
            self.read_only_handshake(now, conn, &request, timeout);
            return;
        }
        let flag = TrailingFlag(request.read_only.0.map(|_| false));
        if request.session_id.0 == 0 {
            self.open_session(now, conn, timeout, flag);
        } else {
            let password = request.passwd.0.unwrap_or_default();
            self.resume_session(now, conn, request.session_id, password, timeout, flag);
        }
    }

    fn negotiate(&self, asked_millis: i32) -> Duration {
        let tick = self.config.tick;
        let min = self.config.session_timeout_min.unwrap_or_else(|| tick.saturating_mul(2));
        let max = self.config.session_timeout_max.unwrap_or_else(|| tick.saturating_mul(20));
        let asked = Duration::from_millis(asked_millis.max(0).unsigned_abs().into());
        asked.max(min).min(max)
    }

    fn open_session(&mut self, now: Time, conn: Conn, timeout: Duration, flag: TrailingFlag) {
        let Some(member) = self.conns.get(&conn).map(|it| it.member) else { return };
        let Some(leader) = self.leader_of(member) else {
            // No quorum can decide on it; the client's patience will end first.
            self.propose_alone(member);
            return;
        };
        let session = self.sessions.next_id();
        self.sessions.open(now, session, timeout, Some(conn));
        self.bind(conn, member, session, Phase::Bound(session));
        let stamp = self.stamp(now, session);
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        self.record(now, leader, stamp, Txn::OpenSession { timeout: millis });
        self.welcome(conn, session, timeout, flag, stamp.zxid);
    }

    fn resume_session(
        &mut self,
        now: Time,
        conn: Conn,
        session: SessionId,
        password: &[u8],
        timeout: Duration,
        flag: TrailingFlag,
    ) {
        let Some(member) = self.conns.get(&conn).map(|it| it.member) else { return };
        // As real servers do, before they look at the password.
        let before = self.members.get(member).and_then(|it| it.bound.get(&session)).copied();
        if let Some(before) = before {
            self.close(before);
        }
        if self.leader_of(member).is_none() {
            if self.resume_alone(conn, member, session, password) {
                self.welcome(conn, session, timeout, flag, Zxid(0));
            }
            return;
        }
        let known = self.sessions.get(session).is_some();
        if !known || password != self.sessions.password(session) {
            self.say_expired(conn, flag);
            return;
        }
        self.sessions.attach(session, conn, timeout);
        self.sessions.touch(now, session);
        self.bind(conn, member, session, Phase::Bound(session));
        self.welcome(conn, session, timeout, flag, Zxid(0));
    }

    /// Tells a client that its session is over.
    pub(super) fn say_expired(&mut self, conn: Conn, read_only: TrailingFlag) {
        let expired = ConnectResponse {
            protocol_version: 0,
            time_out: 0,
            session_id: SessionId(0),
            passwd: Secret(Some(Bytes::from_static(&[0; PASSWORD_LEN]))),
            read_only,
        };
        self.say_frame(conn, &expired);
        self.close(conn);
    }

    pub(super) fn bind(&mut self, conn: Conn, member: usize, session: SessionId, phase: Phase) {
        if let Some(connection) = self.conns.get_mut(&conn) {
            connection.phase = phase;
        }
        if let Some(replica) = self.members.get_mut(member) {
            replica.bound.insert(session, conn);
        }
    }

    pub(super) fn welcome(
        &mut self,
        conn: Conn,
        session: SessionId,
        timeout: Duration,
        read_only: TrailingFlag,
        at: Zxid,
    ) {
        let password = Bytes::copy_from_slice(&self.sessions.password(session));
        let response = ConnectResponse {
            protocol_version: 0,
            time_out: i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX),
            session_id: session,
            passwd: Secret(Some(password)),
            read_only,
        };
        let mut frame = bytes::BytesMut::new();
        encode_frame(&response, &mut frame);
        let frame = frame.freeze();
        if let Some(connection) = self.conns.get_mut(&conn) {
            connection.greeting = frame.clone();
        }
        self.queue(conn, Queued::Answer { at, frame, last: false });
    }
}
