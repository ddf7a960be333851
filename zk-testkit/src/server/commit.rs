//! The leader decides; the members carry it out.

use std::sync::Arc;

use bytes::Bytes;
use zk_proto::{
    ErrorCode, OpCode, SessionId, Time, Zxid,
    request::{
        Create2Response, CreateResponse, DeleteRequest, MultiOp, MultiRequest, MultiResponse,
        MultiResult, SetAclResponse, SetDataResponse, SyncResponse,
    },
};

use super::{
    Ensemble,
    acl::Identities,
    connection::Encoded,
    member::Service,
    prepare::Case,
    quirks,
    read::{self, decode},
    tree::{Change, Effects, Tree},
    txn::{Committed, Stamp, Txn},
};

/// Whose write it is.
#[derive(Debug)]
pub(super) struct Author {
    pub(super) session: SessionId,
    pub(super) identities: Identities,
}

/// A write's answer, and its place in history.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) zxid: Zxid,
    pub(super) result: Result<Encoded, ErrorCode>,
}

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
        let txn = self.case(leader, author, body, |case| prepare(case, op, body));
        let stamp = self.stamp(now, author.session);
        let result = match txn {
            Ok(txn) => {
                self.record(now, leader, stamp, txn.clone());
                let tree = self.members.get(leader).map(|replica| &replica.tree);
                Ok(tree.map(|tree| answer(tree, op, &txn)).unwrap_or_default())
            }
            Err(error) => {
                self.record(now, leader, stamp, Txn::Error(error));
                Err(error)
            }
        };
        Answer { zxid: stamp.zxid, result }
    }

    /// All or nothing: each operation sees what those before it have done.
    fn commit_multi(&mut self, now: Time, leader: usize, author: &Author, body: &Bytes) -> Answer {
        let stamp = self.stamp(now, author.session);
        let zxid = stamp.zxid;
        let decoded = decode::<MultiRequest>(body).and_then(|request| {
            let writes =
                |op: &MultiOp<'_>| !matches!(op, MultiOp::GetData(_) | MultiOp::GetChildren(_));
            let ok = request.iter().all(|(_, op)| writes(&op));
            ok.then_some(request).ok_or(ErrorCode::MARSHALLING_ERROR)
        });
        let request = match decoded {
            Ok(request) => request,
            Err(error) => {
                self.record(now, leader, stamp, Txn::Error(error));
                return Answer { zxid, result: Err(error) };
            }
        };
        let mut effects = Effects::default();
        let mut txns = Vec::new();
        let mut failure = None;
        for (_, op) in &request {
            match self.case(leader, author, body, |case| case.multi_op(&op)) {
                Ok(txn) => {
                    if let Some(replica) = self.members.get_mut(leader) {
                        replica.tree.apply(stamp, &txn, &mut effects);
                    }
                    txns.push(txn);
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let response: MultiResponse = match failure {
            None => {
                let results = self.multi_results(leader, &request, &txns);
                self.take_back(leader, effects);
                self.record(now, leader, stamp, Txn::Multi(txns));
                results
            }
            Some(error) => {
                self.take_back(leader, effects);
                self.record(now, leader, stamp, Txn::Error(error));
                refused(request.iter().count(), txns.len(), error)
            }
        };
        Answer { zxid, result: Ok(Encoded::of(&response)) }
    }

    fn take_back(&mut self, leader: usize, effects: Effects) {
        if let Some(replica) = self.members.get_mut(leader) {
            replica.tree.take_back(effects);
        }
    }

    fn multi_results(&self, leader: usize, request: &MultiRequest, txns: &[Txn]) -> MultiResponse {
        let tree = self.members.get(leader).map(|replica| &replica.tree);
        let with_stat = quirks::multi_has_create2(self.config.release);
        let result = |op: &MultiOp<'_>, txn: &Txn| match txn {
            Txn::Create { path, .. } => {
                let path: zk_proto::Text = (&**path).into();
                let node = tree.and_then(|tree| tree.get(&path.lossy()));
                match node {
                    Some(node) if with_stat && !matches!(op, MultiOp::Create(_)) => {
                        MultiResult::Create2(Create2Response { path, stat: node.stat() })
                    }
                    _ => MultiResult::Create(CreateResponse { path }),
                }
            }
            Txn::SetData { path, .. } => {
                let stat = tree.and_then(|tree| tree.get(path)).map(|node| node.stat());
                MultiResult::SetData(SetDataResponse { stat: stat.unwrap_or_default() })
            }
            Txn::Delete { .. } => MultiResult::Delete,
            _ => MultiResult::Check,
        };
        request.iter().zip(txns).map(|((_, op), txn)| result(&op, txn)).collect()
    }

    fn case<T>(
        &self,
        leader: usize,
        author: &Author,
        frame: &Bytes,
        judge: impl FnOnce(&Case<'_>) -> Result<T, ErrorCode>,
    ) -> Result<T, ErrorCode> {
        let tree = self.members.get(leader).map(|replica| &replica.tree);
        let tree = tree.ok_or(ErrorCode::SYSTEM_ERROR)?;
        let Author { session, identities } = author;
        judge(&Case { session: *session, identities, tree, config: &self.config, frame })
    }

    pub(super) fn stamp(&mut self, now: Time, session: SessionId) -> Stamp {
        self.zxid = Zxid(self.zxid.0.saturating_add(1));
        let elapsed = i64::try_from(now.since_epoch().as_millis()).unwrap_or(i64::MAX);
        let millis = self.config.epoch_millis.saturating_add(elapsed);
        Stamp { zxid: self.zxid, millis, session }
    }

    /// Writes history: the leader applies it at once, the others at their own pace.
    pub(super) fn record(&mut self, now: Time, leader: usize, stamp: Stamp, txn: Txn) {
        let committed = Arc::new(Committed { stamp, at: now, txn });
        if self.config.keep_history {
            self.history.push(Committed::clone(&committed));
        }
        for (member, replica) in self.members.iter_mut().enumerate() {
            if replica.reachable() {
                replica.logged = stamp.zxid;
            }
            let lag = if member == leader { std::time::Duration::ZERO } else { replica.lag };
            let last = replica.pending.back().map_or(now, |(at, _)| *at);
            replica.pending.push_back((now.after(lag).max(last), committed.clone()));
        }
        for member in 0..self.members.len() {
            if member == leader {
                // Whatever it was told before has been applied: it was the leader, or caught up to be.
                self.apply_all(now, member);
            } else {
                self.apply_due(now, member);
            }
        }
    }

    /// Applies what a member has been told, as far as it is time, if it hears the leader.
    pub(super) fn apply_due(&mut self, now: Time, member: usize) {
        while self.leader_of(member).is_some() {
            let Some(replica) = self.members.get_mut(member) else { return };
            if replica.pending.front().is_none_or(|(at, _)| *at > now) {
                return;
            }
            self.apply_next(now, member);
        }
    }

    /// Applies everything that there is, however far the member lags.
    pub(super) fn apply_all(&mut self, now: Time, member: usize) {
        while self.members.get(member).is_some_and(|replica| !replica.pending.is_empty()) {
            self.apply_next(now, member);
        }
    }

    fn apply_next(&mut self, now: Time, member: usize) {
        let Some(replica) = self.members.get_mut(member) else { return };
        let Some((_, committed)) = replica.pending.pop_front() else { return };
        let Committed { stamp, txn, .. } = &*committed;
        let mut effects = Effects::default();
        replica.tree.apply(*stamp, txn, &mut effects);
        replica.applied = stamp.zxid;
        replica.logged = replica.logged.max(stamp.zxid);
        let serving = replica.service == Service::All;
        let author = replica.bound.get(&stamp.session).copied();
        if serving {
            self.tell(member, stamp.zxid, effects.changes);
        }
        // Its answer, or a close, may have waited for this. Whoever is being served just now goes on
        // by itself.
        if let Some(conn) = author.filter(|conn| self.serving != Some(*conn)) {
            self.advance(now, conn);
            if matches!(txn, Txn::CloseSession) {
                self.close(conn);
            }
        }
    }

    /// Sends the events that changes bring about on one member.
    fn tell(&mut self, member: usize, zxid: Zxid, changes: Vec<Change>) {
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
        for member in 0..self.members.len() {
            self.apply_due(now, member);
            let tired = self.members.get(member).and_then(|replica| replica.gives_up);
            if tired.is_some_and(|at| at <= now) {
                self.give_up(member);
                self.begin_election(now);
            }
        }
        if self.election.is_some_and(|at| at <= now) {
            self.elect(now);
        }
        let Some(leader) = self.leads() else {
            // Without a leader nothing ends; it will look when it is there.
            return;
        };
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
    pub(super) fn sync_answer(path: &Bytes) -> Encoded {
        Encoded::of(&SyncResponse { path: zk_proto::Text::from_bytes(path.clone()) })
    }
}

/// Judges a request that stands alone.
fn prepare(case: &Case<'_>, op: OpCode, body: &Bytes) -> Result<Txn, ErrorCode> {
    match op {
        OpCode::CREATE | OpCode::CREATE2 | OpCode::CREATE_CONTAINER => {
            case.create(op, &decode(body)?)
        }
        OpCode::CREATE_TTL => case.create_ttl(&decode(body)?),
        OpCode::DELETE => case.delete(&decode(body)?),
        OpCode::DELETE_CONTAINER => {
            let request: DeleteRequest<'_> = decode(body)?;
            case.delete(&DeleteRequest { version: -1, ..request })
        }
        OpCode::SET_DATA => case.set_data(&decode(body)?),
        OpCode::SET_ACL => case.set_acl(&decode(body)?),
        OpCode::RECONFIG => Err(ErrorCode::RECONFIG_DISABLED),
        _ => Err(ErrorCode::UNIMPLEMENTED),
    }
}

/// What the author of a write is told.
fn answer(tree: &Tree, op: OpCode, txn: &Txn) -> Encoded {
    let stat = |path: &str| tree.get(path).map(|node| node.stat()).unwrap_or_default();
    match txn {
        Txn::Create { path, .. } if op == OpCode::CREATE => {
            Encoded::of(&CreateResponse { path: (&**path).into() })
        }
        Txn::Create { path, .. } => {
            Encoded::of(&Create2Response { path: (&**path).into(), stat: stat(path) })
        }
        Txn::SetData { path, .. } => Encoded::of(&SetDataResponse { stat: stat(path) }),
        Txn::SetAcl { path, .. } => Encoded::of(&SetAclResponse { stat: stat(path) }),
        _ => Encoded::default(),
    }
}

/// Results of a multi that failed: nothing was done, and only one operation is to blame.
fn refused(count: usize, failed: usize, error: ErrorCode) -> MultiResponse {
    let code = |index: usize| match index.cmp(&failed) {
        std::cmp::Ordering::Less => ErrorCode::OK,
        std::cmp::Ordering::Equal => error,
        std::cmp::Ordering::Greater => ErrorCode::RUNTIME_INCONSISTENCY,
    };
    (0..count).map(|index| MultiResult::Error(code(index))).collect()
}
