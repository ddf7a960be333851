//! The leader decides; the members carry it out.

use std::sync::Arc;

use bytes::Bytes;
use zk_proto::{
    ErrorCode, OpCode, SessionId, Stat, Time, Zxid, dispatch,
    request::{
        Create2Response, CreateRequest, CreateResponse, CreateTtlRequest, DeleteRequest,
        SetAclRequest, SetAclResponse, SetDataResponse, SyncResponse,
    },
};

use super::{
    Ensemble,
    author::{Answer, Author},
    connection::Encoded,
    java,
    member::Service,
    prepare::Case,
    quirks,
    read::{self, decode},
    tree::{Change, Effects, Tree},
    txn::{Committed, Stamp, Txn},
};

impl Ensemble {
    /// Decides on a request at the leader.
    pub(super) fn commit(
        &mut self,
        now: Time,
        leader: usize,
        author: &Author,
        op: OpCode,
        body: &Bytes,
    ) -> Answer {
        if op == OpCode::MULTI {
            return self.commit_multi(now, leader, author, body);
        }
        if op == OpCode::RECONFIG {
            return self.reconfigure(now, leader, author, body);
        }
        // What cannot be read has no place in history, as long as that is decided first.
        let is_early = !quirks::garbage_has_zxids(self.config.release);
        if is_early && !is_readable(op, body) {
            return Answer { zxid: self.zxid, result: Err(ErrorCode::MARSHALLING_ERROR.into()) };
        }
        let txn = self.case(leader, author, body, None, |case| prepare(case, op, body));
        let stamp = self.stamp(now, author.session);
        let result = match txn {
            Ok(txn) => {
                self.record(now, leader, stamp, txn.clone());
                let tree = self.members.get(leader).map(|replica| &replica.tree);
                Ok(tree.map(|tree| answer(tree, op, &txn)).unwrap_or_default())
            }
            Err(error) => {
                self.record(now, leader, stamp, Txn::Error(error));
                Err(error.into())
            }
        };
        Answer { zxid: stamp.zxid, result }
    }

    pub(super) fn case<T>(
        &self,
        leader: usize,
        author: &Author,
        frame: &Bytes,
        committed: Option<&Tree>,
        judge: impl FnOnce(&Case<'_>) -> Result<T, ErrorCode>,
    ) -> Result<T, ErrorCode> {
        let tree = self.members.get(leader).map(|replica| &replica.tree);
        let tree = tree.ok_or(ErrorCode::SYSTEM_ERROR)?;
        let Author { session, identities } = author;
        let committed = committed.unwrap_or(tree);
        let config = &self.config;
        judge(&Case { session: *session, identities, tree, committed, config, frame })
    }

    pub(super) fn stamp(&mut self, now: Time, session: SessionId) -> Stamp {
        let stamp = self.stamp_after(self.zxid, now, session);
        self.zxid = stamp.zxid;
        stamp
    }

    /// The stamp of what follows a transaction.
    pub(super) fn stamp_after(&self, zxid: Zxid, now: Time, session: SessionId) -> Stamp {
        let elapsed = i64::try_from(now.since_epoch().as_millis()).unwrap_or(i64::MAX);
        let millis = self.config.epoch_millis.saturating_add(elapsed);
        Stamp { zxid: Zxid(zxid.0.saturating_add(1)), millis, session }
    }

    /// Writes history: the leader applies it at once, the others at their own pace.
    pub(super) fn record(&mut self, now: Time, leader: usize, stamp: Stamp, txn: Txn) {
        let committed = Arc::new(Committed { stamp, at: now, txn });
        if self.config.keep_history {
            self.history.push(Committed::clone(&committed));
        }
        let epoch = self.epoch();
        for (member, replica) in self.members.iter_mut().enumerate() {
            if replica.follows(epoch) {
                replica.logged = stamp.zxid;
            }
            let lag = if member == leader { std::time::Duration::ZERO } else { replica.lag };
            let last = replica.pending.back().map_or(now, |(at, _)| *at);
            replica.pending.push_back((now.after(lag).max(last), committed.clone()));
        }
        // The leader first: what the others apply lets their clients go on, whose next requests are decided
        // on the leader's tree. Whatever it had received before has been applied: it was the leader, or caught
        // up to be.
        self.apply_all(leader);
        for member in (0..self.members.len()).filter(|member| *member != leader) {
            self.apply_due(now, member);
        }
    }

    /// Applies what a member has received, as far as it is time, if it hears the leader.
    pub(super) fn apply_due(&mut self, now: Time, member: usize) {
        while self.leader_of(member).is_some() {
            let Some(replica) = self.members.get_mut(member) else { return };
            if replica.pending.front().is_none_or(|(at, _)| *at > now) {
                return;
            }
            self.apply_next(member);
        }
    }

    /// Applies everything that there is, however far the member lags.
    pub(super) fn apply_all(&mut self, member: usize) {
        while self.members.get(member).is_some_and(|replica| !replica.pending.is_empty()) {
            self.apply_next(member);
        }
    }

    fn apply_next(&mut self, member: usize) {
        let Some(replica) = self.members.get_mut(member) else { return };
        let Some((_, committed)) = replica.pending.pop_front() else { return };
        let Committed { stamp, txn, .. } = &*committed;
        let mut effects = Effects::default();
        replica.tree.apply(*stamp, txn, &mut effects);
        replica.logged = replica.logged.max(stamp.zxid);
        replica.applied = if replica.pending.is_empty() { replica.logged } else { stamp.zxid };
        let serving = replica.service == Service::All;
        let author = replica.bound.get(&stamp.session).copied();
        if serving {
            self.tell(member, stamp.zxid, effects.changes);
        }
        // Answers, or a close, may have waited for this; they go out, with the reads behind them, before
        // the next transaction is applied. Writes come in their turn.
        let Some(replica) = self.members.get_mut(member) else { return };
        for conn in std::mem::take(&mut replica.waiting) {
            self.serve_locally(conn);
            self.ready.insert(conn);
        }
        let ended = author.filter(|_| matches!(txn, Txn::CloseSession));
        // The client that has asked for it is answered first.
        if let Some(conn) = ended.filter(|conn| self.serving != Some(*conn)) {
            self.close(conn);
        }
    }

    /// Sends the events that changes bring about on one member.
    pub(super) fn tell(&mut self, member: usize, zxid: Zxid, changes: Vec<Change>) {
        let has_zxid = quirks::events_have_zxids(self.config.release);
        let zxid = if has_zxid { zxid } else { Zxid(-1) };
        let guarded = quirks::existence_is_guarded(self.config.release);
        let mut events = Vec::new();
        if let Some(replica) = self.members.get_mut(member) {
            changes.into_iter().for_each(|change| replica.watches.fire(change, &mut events));
        }
        for event in events {
            let may = |acl| {
                let connection = self.conns.get(&event.conn);
                connection.is_some_and(|it| it.identities.may_by(zk_proto::Perms::READ, acl))
            };
            if !guarded || event.access.as_ref().is_none_or(may) {
                self.say(event.conn, &read::event(event.kind, &event.path, zxid));
            }
        }
    }

    pub(super) fn close_session(&mut self, now: Time, session: SessionId) {
        let Some(leader) = self.leads() else { return };
        if self.sessions.close(session).is_some() {
            let stamp = self.stamp(now, session);
            self.record(now, leader, stamp, Txn::CloseSession);
        }
    }

    /// Lets everything happen that time alone brings about.
    pub(super) fn catch_up(&mut self, now: Time) {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        while let Some((_, conn)) = self.nameless.first().copied().filter(|(at, _)| *at <= now) {
            self.nameless.pop_first();
            if self.conns.get(&conn).is_some_and(|it| it.session().is_none()) {
                self.close(conn);
            }
        }
        for member in 0..self.members.len() {
            self.apply_due(now, member);
            let tired = self.members.get(member).and_then(|replica| replica.gives_up);
            if tired.is_some_and(|at| at <= now) {
                self.look(now, member);
            }
            self.expire_at_reader(now, member);
        }
        if self.election.is_some_and(|at| at <= now) {
            self.elect(now);
        }
        let Some(leader) = self.leads() else {
            // Without a leader nothing ends; it will look when it is there.
            return;
        };
        if let Some(at) = self.reports.take_if(|at| *at <= now) {
            self.report(at);
        }
        while let Some(session) = self.sessions.expired(now) {
            self.close_session(now, session);
        }
        if self.reaping <= now {
            self.reaping = now.after(self.config.container_check_interval);
            self.reap(now, leader);
        }
    }

    /// Deletes containers and nodes with a time to live whose time has come.
    fn reap(&mut self, now: Time, leader: usize) {
        let elapsed = i64::try_from(now.since_epoch().as_millis()).unwrap_or(i64::MAX);
        let millis = self.config.epoch_millis.saturating_add(elapsed);
        let Some(replica) = self.members.get(leader) else { return };
        for path in replica.tree.expired(millis) {
            let stamp = self.stamp(now, SessionId(0));
            self.record(now, leader, stamp, Txn::Delete { path });
        }
    }

    /// What a sync is answered with.
    pub(super) fn sync_answer(path: &zk_proto::Text) -> Encoded {
        Encoded::of(&SyncResponse { path: path.clone() })
    }
}

/// Whether the body of a write can be read at all.
fn is_readable(op: OpCode, body: &Bytes) -> bool {
    match op {
        OpCode::CREATE | OpCode::CREATE2 | OpCode::CREATE_CONTAINER => {
            java::request::<CreateRequest<'_>>(body).is_ok()
        }
        OpCode::CREATE_TTL => java::request::<CreateTtlRequest<'_>>(body).is_ok(),
        OpCode::SET_ACL => java::request::<SetAclRequest<'_>>(body).is_ok(),
        op => dispatch!(op, R => decode::<R<'_>>(body).is_ok()).unwrap_or(true),
    }
}

/// Judges a request that stands alone.
fn prepare(case: &Case<'_>, op: OpCode, body: &Bytes) -> Result<Txn, ErrorCode> {
    match op {
        OpCode::CREATE | OpCode::CREATE2 | OpCode::CREATE_CONTAINER => {
            case.create(op, &java::request(body)?)
        }
        OpCode::CREATE_TTL => case.create_ttl(&java::request(body)?),
        OpCode::DELETE => case.delete(&decode(body)?),
        OpCode::DELETE_CONTAINER => {
            let request: DeleteRequest<'_> = decode(body)?;
            case.delete(&DeleteRequest { version: -1, ..request })
        }
        OpCode::SET_DATA => case.set_data(&decode(body)?),
        OpCode::SET_ACL => case.set_acl(&java::request(body)?),
        _ => Err(ErrorCode::UNIMPLEMENTED),
    }
}

/// The reply to the author of a write.
fn answer(tree: &Tree, op: OpCode, txn: &Txn) -> Encoded {
    let stat = |path: &str| tree.get(path).map(|node| node.stat()).unwrap_or_default();
    match txn {
        Txn::Create { path, .. } if op == OpCode::CREATE => {
            Encoded::of(&CreateResponse { path: (&**path).into() })
        }
        Txn::Create { path, data, .. } => {
            // The reply has the node as it was created, even if its data have been replaced by counts.
            let len = data.as_ref().map_or(0, Bytes::len);
            let data_length = i32::try_from(len).unwrap_or(i32::MAX);
            let stat = Stat { data_length, ..stat(path) };
            Encoded::of(&Create2Response { path: (&**path).into(), stat })
        }
        Txn::SetData { path, .. } => Encoded::of(&SetDataResponse { stat: stat(path) }),
        Txn::SetAcl { path, .. } => Encoded::of(&SetAclResponse { stat: stat(path) }),
        _ => Encoded::default(),
    }
}
