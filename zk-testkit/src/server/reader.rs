//! A member without a quorum that serves those who only read (`readonlymode.enabled`).
//!
//! It opens sessions of its own and ends them, asking no other member. Up to 3.6 it does the same with the sessions that the
//! others know: it lets them connect, and ends those of which it has not heard within their timeout, with all their nodes.
//! Each of that counts as a transaction. All of it is gone when the member finds the others again, who know better.

use std::time::Duration;

use zk_proto::{
    SessionId, Time, Zxid,
    request::{ConnectRequest, TrailingFlag},
};

use super::{
    Conn, Ensemble, Member, connection::Phase, member::Reader, quirks, tree::Effects, txn::Txn,
};

impl Ensemble {
    /// A member begins to serve readers, unless it does already.
    pub(super) fn serve_readers(&mut self, now: Time, member: usize) {
        let Some(replica) = self.members.get_mut(member) else { return };
        if replica.reader.is_some() {
            return;
        }
        let mut sessions = self.sessions.none();
        if quirks::readers_take_all_sessions(self.config.release) {
            for (id, timeout) in replica.tree.sessions() {
                sessions.open(now, id, timeout, None);
            }
        }
        let (tree, applied) = (replica.tree.clone(), replica.applied);
        replica.reader = Some(Box::new(Reader { tree, applied, sessions }));
    }

    /// Answers a handshake with a member that serves readers only.
    pub(super) fn read_only_handshake(
        &mut self,
        now: Time,
        conn: Conn,
        request: &ConnectRequest<'_>,
        timeout: Duration,
    ) {
        let Some(member) = self.conns.get(&conn).map(|it| it.member) else { return };
        let asked = request.session_id;
        let before = self.members.get(member).and_then(|it| it.bound.get(&asked)).copied();
        if let Some(before) = before {
            self.close(before);
        }
        let flag = TrailingFlag(request.read_only.0.map(|_| true));
        let session = if asked.0 == 0 { self.sessions.next_id() } else { asked };
        let Some(replica) = self.members.get_mut(member) else { return };
        let Some(reader) = &mut replica.reader else { return };
        if asked.0 == 0 {
            reader.sessions.open(now, session, timeout, Some(conn));
            replica.applied = Zxid(replica.applied.0.saturating_add(1));
        } else {
            let password = request.passwd.0.unwrap_or_default();
            let is_its = reader.sessions.get(session).is_some()
                && password == self.sessions.password(session);
            let is_refused = !quirks::readers_take_all_sessions(self.config.release)
                && replica.tree.has_session(session);
            if !is_its && is_refused {
                self.close(conn);
                return;
            }
            if !is_its {
                self.say_expired(conn, flag);
                return;
            }
            reader.sessions.attach(session, conn, timeout);
            reader.sessions.touch(now, session);
        }
        let at = replica.applied;
        self.bind(conn, member, session, Phase::ReadOnly(session));
        self.welcome(conn, session, timeout, flag, at);
    }

    /// A member that serves readers has heard of a session.
    pub(super) fn reader_heard_of(&mut self, now: Time, conn: Conn, session: SessionId) {
        let member = self.conns.get(&conn).map(|it| it.member);
        let replica = member.and_then(|member| self.members.get_mut(member));
        if let Some(reader) = replica.and_then(|replica| replica.reader.as_mut()) {
            reader.sessions.touch(now, session);
        }
    }

    /// Ends the sessions whose time is over, as far as this member knows.
    pub(super) fn expire_at_reader(&mut self, now: Time, member: usize) {
        let expired = |this: &Self| {
            let replica = this.members.get(member)?;
            let session = replica.reader.as_ref()?.sessions.expired(now)?;
            Some((session, replica.bound.get(&session).copied()))
        };
        while let Some((session, conn)) = expired(self) {
            self.end_at_reader(now, member, session);
            if let Some(conn) = conn {
                self.close(conn);
            }
        }
    }

    /// Ends a session at a member that serves readers, and nowhere else.
    pub(super) fn end_at_reader(&mut self, now: Time, member: usize, session: SessionId) {
        let stamp = self.stamp_after(self.applied(Member(member)), now, session);
        let Some(replica) = self.members.get_mut(member) else { return };
        let Some(reader) = &mut replica.reader else { return };
        if reader.sessions.close(session).is_none() {
            return;
        }
        let mut effects = Effects::default();
        replica.tree.apply(stamp, &Txn::CloseSession, &mut effects);
        replica.applied = stamp.zxid;
        self.tell(member, stamp.zxid, effects.changes);
    }
}
