//! Operation numbers. No other place in the workspace writes one.

use crate::numbered::numbered;

numbered! {
    /// The operation of a request. Numbers without a name survive and print as numbers.
    OpCode {
        /// A watch event, pushed by the server with xid -1.
        NOTIFICATION = 0 "notification",
        /// Create a node; the reply is its path.
        CREATE = 1 "create",
        /// Delete a childless node.
        DELETE = 2 "delete",
        /// Check whether a node exists.
        EXISTS = 3 "exists",
        /// Read a node's data.
        GET_DATA = 4 "getData",
        /// Replace a node's data.
        SET_DATA = 5 "setData",
        /// Read a node's access control list.
        GET_ACL = 6 "getACL",
        /// Replace a node's access control list.
        SET_ACL = 7 "setACL",
        /// List children, without the parent's [`Stat`](crate::Stat).
        GET_CHILDREN = 8 "getChildren",
        /// Flush the channel between this server and the leader.
        SYNC = 9 "sync",
        /// Heartbeat; always xid -2.
        PING = 11 "ping",
        /// List children, with the parent's [`Stat`](crate::Stat).
        GET_CHILDREN2 = 12 "getChildren2",
        /// Check a version. **Only inside a multi**: on its own it poisons the transaction log of
        /// servers before 3.8.5 and 3.9.3 (ZOOKEEPER-2623).
        CHECK = 13 "check",
        /// All or nothing: several writes and checks.
        MULTI = 14 "multi",
        /// Create a node; the reply is its path and [`Stat`](crate::Stat). Since 3.5.0.
        CREATE2 = 15 "create2",
        /// Change the ensemble's membership. Since 3.5.0.
        RECONFIG = 16 "reconfig",
        /// Check whether this connection has a watch. Since 3.5.0.
        CHECK_WATCHES = 17 "checkWatches",
        /// Remove watches of this connection. Since 3.5.0.
        REMOVE_WATCHES = 18 "removeWatches",
        /// Create a container node. Since 3.5.1.
        CREATE_CONTAINER = 19 "createContainer",
        /// Internal to servers: reap an empty container.
        DELETE_CONTAINER = 20 "deleteContainer",
        /// Create a node with a time to live. Usable since 3.5.4.
        CREATE_TTL = 21 "createTTL",
        /// Several reads in one request. Since 3.6.0.
        MULTI_READ = 22 "multiRead",
        /// Present credentials; always xid -4.
        AUTH = 100 "auth",
        /// Re-arm one-shot watches on a new connection.
        SET_WATCHES = 101 "setWatches",
        /// One step of a SASL exchange.
        SASL = 102 "sasl",
        /// This session's ephemeral nodes. Since 3.6.0.
        GET_EPHEMERALS = 103 "getEphemerals",
        /// Number of descendants. Since 3.6.0.
        GET_ALL_CHILDREN_NUMBER = 104 "getAllChildrenNumber",
        /// Re-arm watches of all kinds on a new connection. Since 3.6.0.
        SET_WATCHES2 = 105 "setWatches2",
        /// Arm a persistent watch. Since 3.6.0.
        ADD_WATCH = 106 "addWatch",
        /// The identities of this connection. Since 3.7.0.
        WHO_AM_I = 107 "whoAmI",
        /// Internal to servers, but its number shows in some refusals of a handshake.
        CREATE_SESSION = -10 "createSession",
        /// End the session.
        CLOSE_SESSION = -11 "closeSession",
        /// Not an operation: marks an error inside a multi's results, and the end of its stream.
        ERROR = -1 "error",
    }
}

impl OpCode {
    /// Whether only the session itself sends such requests.
    pub(crate) const fn is_the_sessions(self) -> bool {
        matches!(
            self,
            Self::CREATE_SESSION
                | Self::CLOSE_SESSION
                | Self::PING
                | Self::AUTH
                | Self::SASL
                | Self::SET_WATCHES
                | Self::SET_WATCHES2
        )
    }

    /// Whether the request's body begins with the path of a node: most do.
    pub(crate) const fn begins_with_path(self) -> bool {
        !matches!(
            self,
            Self::PING
                | Self::AUTH
                | Self::SASL
                | Self::SET_WATCHES
                | Self::SET_WATCHES2
                | Self::RECONFIG
                | Self::WHO_AM_I
                | Self::CLOSE_SESSION
                | Self::MULTI
                | Self::MULTI_READ
        )
    }

    /// Whether a server cannot answer such a request (well) without the leader: writes, and `sync`.
    pub(crate) const fn passes_the_leader(self) -> bool {
        matches!(
            self,
            Self::CREATE
                | Self::CREATE2
                | Self::CREATE_CONTAINER
                | Self::CREATE_TTL
                | Self::DELETE
                | Self::SET_DATA
                | Self::SET_ACL
                | Self::MULTI
                | Self::RECONFIG
                | Self::SYNC
        )
    }
}
