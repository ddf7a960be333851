//! Error codes of servers, and what each allows a client to conclude.

use crate::numbered::numbered;

numbered! {
    /// The `err` of a reply. Codes without a name survive and print as numbers.
    ErrorCode {
        /// The request succeeded.
        OK = 0 "Ok",
        /// Range marker; not sent by servers.
        SYSTEM_ERROR = -1 "SystemError",
        /// In a failed multi: an operation behind the failing one, not executed.
        RUNTIME_INCONSISTENCY = -2 "RuntimeInconsistency",
        /// Not seen in practice.
        DATA_INCONSISTENCY = -3 "DataInconsistency",
        /// Made by clients: the connection was lost with the request in flight.
        CONNECTION_LOSS = -4 "ConnectionLoss",
        /// The server could not decode the request.
        MARSHALLING_ERROR = -5 "MarshallingError",
        /// Unknown operation (the server then closes the connection), or a feature is off.
        UNIMPLEMENTED = -6 "Unimplemented",
        /// Made by clients: no reply in time.
        OPERATION_TIMEOUT = -7 "OperationTimeout",
        /// Bad path, flags, time to live, or a reserved node.
        BAD_ARGUMENTS = -8 "BadArguments",
        /// Made by clients.
        INVALID_STATE = -9 "InvalidState",
        /// The session vanished under the request; as [`ErrorCode::SESSION_EXPIRED`].
        UNKNOWN_SESSION = -12 "UnknownSession",
        /// Reconfig: the new configuration has no synced quorum.
        NEW_CONFIG_NO_QUORUM = -13 "NewConfigNoQuorum",
        /// Reconfig: another one is pending.
        RECONFIG_IN_PROGRESS = -14 "ReconfigInProgress",
        /// Made by clients.
        SSL_CONNECTION_ERROR = -15 "SslConnectionError",
        /// Range marker; not sent by servers.
        API_ERROR = -100 "ApiError",
        /// The node, or the parent of a node to create, does not exist.
        NO_NODE = -101 "NoNode",
        /// This connection's identities lack the permission.
        NO_AUTH = -102 "NoAuth",
        /// The expected version is not the present one.
        BAD_VERSION = -103 "BadVersion",
        /// The parent is ephemeral.
        NO_CHILDREN_FOR_EPHEMERALS = -108 "NoChildrenForEphemerals",
        /// The node exists already.
        NODE_EXISTS = -110 "NodeExists",
        /// The node to delete has children.
        NOT_EMPTY = -111 "NotEmpty",
        /// The session is closing or gone; the connection follows.
        SESSION_EXPIRED = -112 "SessionExpired",
        /// Made by clients.
        INVALID_CALLBACK = -113 "InvalidCallback",
        /// Null, empty or malformed access control list.
        INVALID_ACL = -114 "InvalidAcl",
        /// Credentials refused; the connection follows.
        AUTH_FAILED = -115 "AuthFailed",
        /// Made by clients.
        CLOSING = -116 "Closing",
        /// Made by clients.
        NOTHING = -117 "Nothing",
        /// The session is attached to another server; not executed.
        SESSION_MOVED = -118 "SessionMoved",
        /// A write, or a sync, was sent to a read-only server.
        NOT_READ_ONLY = -119 "NotReadOnly",
        /// An ephemeral node was asked of a local session that cannot be upgraded.
        EPHEMERAL_ON_LOCAL_SESSION = -120 "EphemeralOnLocalSession",
        /// The connection has no such watch.
        NO_WATCHER = -121 "NoWatcher",
        /// Made by clients.
        REQUEST_TIMEOUT = -122 "RequestTimeout",
        /// Reconfig is switched off.
        RECONFIG_DISABLED = -123 "ReconfigDisabled",
        /// The server demands an authentication that this connection lacks; it closes.
        SESSION_CLOSED_REQUIRE_AUTH = -124 "SessionClosedRequireAuth",
        /// A hard quota would be exceeded. Since 3.7.0.
        QUOTA_EXCEEDED = -125 "QuotaExceeded",
        /// Not executed: the server is throttling. Since 3.7.0.
        THROTTLED_OP = -127 "ThrottledOp",
    }
}

impl ErrorCode {
    /// Whether the request succeeded.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 == Self::OK.0
    }

    /// Whether the code is about the server that answers, and not about the nodes that the request is about.
    pub(crate) const fn is_about_the_server(self) -> bool {
        self.ends_session()
            || matches!(
                self,
                Self::THROTTLED_OP | Self::NOT_READ_ONLY | Self::SESSION_CLOSED_REQUIRE_AUTH
            )
    }

    /// Whether the code means that the session is over.
    #[must_use]
    pub const fn ends_session(self) -> bool {
        matches!(self, Self::SESSION_EXPIRED | Self::UNKNOWN_SESSION)
    }
}
