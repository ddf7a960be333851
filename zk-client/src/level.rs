//! What the servers of a session have turned out not to know.

use std::sync::atomic::{AtomicBool, Ordering};

use zk_proto::{SessionId, Stat, Zxid};

/// Learned from refusals, by whoever meets the first one. There is no other way: the protocol has no
/// version, and a server that does not know an operation refuses it and drops the connection.
#[derive(Debug, Default)]
pub(crate) struct Level {
    without_create2: AtomicBool,
}

impl Level {
    /// Whether creates must do without metadata in the reply (servers before 3.5).
    pub(crate) fn lacks_create2(&self) -> bool {
        self.without_create2.load(Ordering::Relaxed)
    }

    pub(crate) fn learn_no_create2(&self) {
        self.without_create2.store(true, Ordering::Relaxed);
    }
}

/// As much of a new node's metadata as is certain without the server's word: the transaction of the reply to
/// a create is the create's own.
pub(crate) fn stat_at_birth(czxid: Zxid, ephemeral_owner: SessionId, data_len: usize) -> Stat {
    let data_length = i32::try_from(data_len).unwrap_or(i32::MAX);
    Stat { czxid, mzxid: czxid, pzxid: czxid, ephemeral_owner, data_length, ..Stat::default() }
}
