//! How the session's servers turned out to create nodes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use zk_proto::{ErrorCode, OpCode, SessionId, Stat, Zxid};

/// Learned from the first refusal of each operation. There is no other way: the protocol has no version, and a server
/// that does not know an operation refuses it and drops the connection. What there is no substitute for is asked
/// again behind a connection that was lost otherwise: the session knows what has been refused since.
///
/// What servers lack is remembered until one has shown otherwise; what they have, for one connection: the next server
/// may be an older one.
#[derive(Debug, Default)]
pub(crate) struct Capabilities {
    without_create2: AtomicBool,
    /// The number of the present connection; 0 if there is none.
    connection: AtomicU64,
    /// That of the last connection whose server has shown it.
    with_create2: AtomicU64,
    without_containers: AtomicBool,
}

impl Capabilities {
    /// Records what the answer to such a request shows.
    pub(crate) fn answered(&self, op: OpCode, code: ErrorCode) {
        match (op, code) {
            (OpCode::CREATE2, ErrorCode::OK) => self.learn_create2(self.connection()),
            (OpCode::CREATE2, ErrorCode::UNIMPLEMENTED) => {
                self.without_create2.store(true, Ordering::Relaxed);
            }
            (OpCode::CREATE_CONTAINER, ErrorCode::UNIMPLEMENTED) => {
                self.without_containers.store(true, Ordering::Relaxed);
            }
            // Newer operations than creates with metadata.
            (OpCode::CREATE_CONTAINER | OpCode::CREATE_TTL | OpCode::ADD_WATCH, ErrorCode::OK) => {
                self.without_containers.store(false, Ordering::Relaxed);
                self.without_create2.store(false, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Whether creates must do without metadata in the reply (servers before 3.5).
    pub(crate) fn lacks_create2(&self) -> bool {
        self.without_create2.load(Ordering::Relaxed)
    }

    /// There is another connection; or none, of the number 0.
    pub(crate) fn connected(&self, connection: u64) {
        self.connection.store(connection, Ordering::Relaxed);
    }

    /// The number of the present connection; 0 if there is none.
    pub(crate) fn connection(&self) -> u64 {
        self.connection.load(Ordering::Relaxed)
    }

    /// Whether the server has shown that it answers creates with metadata.
    pub(crate) fn has_create2(&self) -> bool {
        let connection = self.connection();
        connection > 0 && self.with_create2.load(Ordering::Relaxed) == connection
    }

    pub(crate) fn learn_create2(&self, connection: u64) {
        self.with_create2.fetch_max(connection, Ordering::Relaxed);
    }

    /// Whether there are no containers (servers before 3.5.1).
    pub(crate) fn lacks_containers(&self) -> bool {
        self.without_containers.load(Ordering::Relaxed) || self.lacks_create2()
    }
}

/// The part of a new node's metadata that is certain without the server's reply: the zxid of the reply to a create is
/// that of the create.
pub(crate) fn stat_at_birth(czxid: Zxid, ephemeral_owner: SessionId, data_len: usize) -> Stat {
    let data_length = i32::try_from(data_len).unwrap_or(i32::MAX);
    Stat { czxid, mzxid: czxid, pzxid: czxid, ephemeral_owner, data_length, ..Stat::default() }
}
