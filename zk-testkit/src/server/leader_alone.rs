//! A leader that is cut off from its followers, and has not found out.
//!
//! It looks once in a tick for how many followers have answered within
//! [`Config::sync_limit`](super::Config::sync_limit), so that they may have given it up for as long when it does, and have
//! another leader. Until then it answers by itself what takes no vote: reads, handshakes of sessions that it knows, and
//! `sync`, unless a proposal of its own is under way (ZOOKEEPER-1675).

use bytes::Bytes;
use zk_proto::{OpCode, SessionId, frame::RequestHeader, request::SyncRequest};

use super::{
    Conn, Ensemble,
    connection::{Phase, Queued, reply},
    member::LeaderAlone,
    read::decode,
    serve::echo,
};

impl Ensemble {
    /// What a member goes by that is about to be cut off, if it leads.
    pub(super) fn alone(&self, member: usize) -> Option<LeaderAlone> {
        let sessions = || self.sessions.iter().map(|(id, _)| id).collect();
        (self.leads() == Some(member))
            .then(|| LeaderAlone { sessions: sessions(), proposes: false })
    }

    /// What a request of a session is answered with by a member that has no leader but may take itself for one. `None`: it
    /// waits.
    pub(super) fn decide_alone(
        &mut self,
        member: usize,
        header: RequestHeader,
        body: &Bytes,
    ) -> Option<Queued> {
        let replica = self.members.get_mut(member)?;
        let (alone, at) = (replica.alone.as_mut()?, replica.applied);
        let RequestHeader { xid, op } = header;
        if op != OpCode::SYNC {
            alone.proposes = true;
            return None;
        }
        if alone.proposes {
            return None;
        }
        Some(match decode::<SyncRequest<'_>>(body) {
            Ok(request) => Queued::Sync { at, xid, path: echo(request.path) },
            Err(error) => Queued::Answer { at, frame: reply(xid, at, Err(error)), last: false },
        })
    }

    /// Notes that a member without a leader was asked for a new session.
    pub(super) fn propose_alone(&mut self, member: usize) {
        if let Some(alone) = self.members.get_mut(member).and_then(|it| it.alone.as_mut()) {
            alone.proposes = true;
        }
    }

    /// Lets a session have a connection to a leader alone that knows it.
    pub(super) fn resume_alone(
        &mut self,
        conn: Conn,
        member: usize,
        session: SessionId,
        password: &[u8],
    ) -> bool {
        let alone = self.members.get(member).and_then(|it| it.alone.as_ref());
        let knows = alone.is_some_and(|it| it.sessions.contains(&session));
        let is_its = knows && password == self.sessions.password(session);
        if is_its {
            self.bind(conn, member, session, Phase::Bound(session));
        }
        is_its
    }
}
