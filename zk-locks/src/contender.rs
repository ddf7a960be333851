//! A contender in a queue, as others see it.

use zk_client::{SessionId, Stat};

use crate::{
    entry::{Entry, Kind},
    layout::Filter,
};

/// The data that a contender writes to a node to ask for the lock back, as Curator's `Revoker` does.
pub(crate) const REVOKE: &[u8] = b"__REVOKE__";

/// A contender in the queue of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contender {
    /// The name of its node.
    pub name: String,
    /// What it wants.
    pub kind: Kind,
    /// Its number in the queue. Numbers have gaps.
    pub sequence: i32,
    /// The session that owns it.
    pub session: SessionId,
    /// When it joined: milliseconds since 1970 on the clock of the leader.
    pub since: i64,
    /// What its fencing token is, or will be.
    pub token: i64,
    /// Its description of itself.
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
