//! How the set of servers is changed while the ensemble runs.

use bytes::Bytes;
use zk_proto::{
    ErrorCode, Perms, Time,
    request::{GetDataResponse, ReconfigRequest},
};

use super::{
    Ensemble,
    author::{Answer, Author},
    connection::Encoded,
    membership::Membership,
    read::decode,
    tree::CONFIG,
    txn::Txn,
};

/// Fewest voters that servers take, unless they are set up for less (`standaloneEnabled=false`).
const VOTERS_MIN: usize = 2;

impl Ensemble {
    /// Decides on a change of the ensemble at the leader.
    pub(super) fn reconfigure(
        &mut self,
        now: Time,
        leader: usize,
        author: &Author,
        body: &Bytes,
    ) -> Answer {
        let Ok(request) = decode::<ReconfigRequest<'_>>(body) else {
            // What cannot be read has no place in history.
            return Answer { zxid: self.zxid, result: Err(ErrorCode::MARSHALLING_ERROR.into()) };
        };
        let stamp = self.stamp(now, author.session);
        let zxid = stamp.zxid;
        let next = match self.judge_change(leader, author, &request, zxid.0) {
            Ok(next) => next,
            Err(error) => {
                self.record(now, leader, stamp, Txn::Error(error));
                return Answer { zxid, result: Err(error.into()) };
            }
        };
        let data = Some(Bytes::from(next.text()));
        let leads_on = self.members.get(leader).is_some_and(|it| next.votes(it.number));
        self.membership = next;
        // Changes of the configuration are not counted by its version.
        let txn = Txn::SetData { path: CONFIG.into(), data: data.clone(), version: -1 };
        self.record(now, leader, stamp, txn);
        let tree = self.members.get(leader).map(|replica| &replica.tree);
        let stat = tree.and_then(|tree| tree.get(CONFIG)).map(|node| node.stat());
        let stat = stat.unwrap_or_default();
        // Not before those have their answers who are at members that have applied it.
        self.steps_down = !leads_on;
        Answer { zxid, result: Ok(Encoded::of(&GetDataResponse { data, stat })) }
    }

    fn judge_change(
        &self,
        leader: usize,
        author: &Author,
        request: &ReconfigRequest<'_>,
        version: i64,
    ) -> Result<Membership, ErrorCode> {
        if !self.config.reconfig {
            return Err(ErrorCode::RECONFIG_DISABLED);
        }
        if self.standalone {
            return Err(ErrorCode::UNIMPLEMENTED);
        }
        let next = self.membership.changed(request, version, VOTERS_MIN)?;
        // Observers of before cannot vote at once.
        let synced = self.members.iter().filter(|replica| {
            replica.follows(self.epoch()) && !self.membership.observes(replica.number)
        });
        if !next.has_quorum(synced.map(|replica| replica.number)) {
            return Err(ErrorCode::NEW_CONFIG_NO_QUORUM);
        }
        let tree = self.members.get(leader).map(|replica| &replica.tree);
        let node = tree.and_then(|tree| tree.get(CONFIG)).ok_or(ErrorCode::NO_NODE)?;
        author.identities.check(Perms::WRITE, node)?;
        Ok(next)
    }
}
