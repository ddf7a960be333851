//! Somebody in a queue, as others see it.

use zk_client::{SessionId, Stat};

use crate::{
    entry::{Entry, Kind},
    layout::Filter,
};

/// What a node is given for data by whoever asks for the lock back, as by Curator's `Revoker`.
pub(crate) const REVOKE: &[u8] = b"__REVOKE__";

/// Somebody in the queue of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contender {
    /// The name of its node.
    pub name: String,
    /// What it wants.
    pub kind: Kind,
    /// Its number in the queue. Numbers have gaps.
    pub sequence: i32,
    /// The session that it lives with.
    pub session: SessionId,
    /// When it joined: milliseconds since 1970 on the clock of the leader.
    pub since: i64,
    /// What its fencing token is, or will be.
    pub token: i64,
    /// What it says about itself.
    pub description: String,
}

impl Contender {
    pub(crate) fn new(filter: &Filter, entry: Entry, data: &[u8], stat: &Stat) -> Self {
        let Entry { name, sequence, kind } = entry;
        Self {
            name,
            kind,
            sequence,
            session: stat.ephemeral_owner,
            since: stat.ctime,
            token: stat.czxid.0,
            description: filter.said(&String::from_utf8_lossy(data)).to_owned(),
        }
    }
}
