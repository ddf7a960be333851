//! Operation numbers, and the list of all requests. No other place in the workspace writes a number.

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

/// Calls a macro with the list of all requests, behind arguments of one's own: for each request its constant of
/// [`OpCode`], its variant of [`AnyRequest`](crate::request::AnyRequest) with its record in
/// [`request`](crate::request), and the record's owned twin in `strategy`.
///
/// ```
/// use zk_proto::request::{self, CreateRequest, Request};
///
/// /// Whether a proxy of one's own lets requests pass.
/// trait Policy: Request {
///     const PASSES: bool = true;
/// }
///
/// macro_rules! policies {
///     (all; $($op:ident $variant:ident($request:ident $(<$lt:lifetime>)?) $twin:ident;)*) => {
///         $(impl $(<$lt>)? Policy for request::$request $(<$lt>)? {})*
///     };
/// }
/// zk_proto::for_each_request!(policies, all;);
/// assert!(CreateRequest::PASSES);
/// ```
#[macro_export]
macro_rules! for_each_request {
    ($($then:ident)::+, $($arguments:tt)*) => {
        $($then)::+! {
            $($arguments)*
            CREATE Create(CreateRequest<'a>) OwnedCreateRequest;
            DELETE Delete(DeleteRequest<'a>) OwnedDeleteRequest;
            EXISTS Exists(ExistsRequest<'a>) OwnedExistsRequest;
            GET_DATA GetData(GetDataRequest<'a>) OwnedGetDataRequest;
            SET_DATA SetData(SetDataRequest<'a>) OwnedSetDataRequest;
            GET_ACL GetAcl(GetAclRequest<'a>) OwnedGetAclRequest;
            SET_ACL SetAcl(SetAclRequest<'a>) OwnedSetAclRequest;
            GET_CHILDREN GetChildren(GetChildrenRequest<'a>) OwnedGetChildrenRequest;
            SYNC Sync(SyncRequest<'a>) OwnedSyncRequest;
            PING Ping(Ping) Ping;
            GET_CHILDREN2 GetChildren2(GetChildren2Request<'a>) OwnedGetChildren2Request;
            CHECK Check(CheckVersionRequest<'a>) OwnedCheckVersionRequest;
            MULTI Multi(MultiRequest) MultiRequest;
            CREATE2 Create2(Create2Request<'a>) OwnedCreate2Request;
            RECONFIG Reconfig(ReconfigRequest<'a>) OwnedReconfigRequest;
            CHECK_WATCHES CheckWatches(CheckWatchesRequest<'a>) OwnedCheckWatchesRequest;
            REMOVE_WATCHES RemoveWatches(RemoveWatchesRequest<'a>) OwnedRemoveWatchesRequest;
            CREATE_CONTAINER CreateContainer(CreateContainerRequest<'a>) OwnedCreateContainerRequest;
            DELETE_CONTAINER DeleteContainer(DeleteContainerRequest<'a>) OwnedDeleteContainerRequest;
            CREATE_TTL CreateTtl(CreateTtlRequest<'a>) OwnedCreateTtlRequest;
            MULTI_READ MultiRead(MultiReadRequest) MultiReadRequest;
            AUTH Auth(AuthPacket<'a>) OwnedAuthPacket;
            SET_WATCHES SetWatches(SetWatches) SetWatches;
            SASL Sasl(GetSaslRequest<'a>) OwnedGetSaslRequest;
            GET_EPHEMERALS GetEphemerals(GetEphemeralsRequest<'a>) OwnedGetEphemeralsRequest;
            GET_ALL_CHILDREN_NUMBER GetAllChildrenNumber(GetAllChildrenNumberRequest<'a>) OwnedGetAllChildrenNumberRequest;
            SET_WATCHES2 SetWatches2(SetWatches2) SetWatches2;
            ADD_WATCH AddWatch(AddWatchRequest<'a>) OwnedAddWatchRequest;
            WHO_AM_I WhoAmI(WhoAmIRequest) WhoAmIRequest;
            CLOSE_SESSION CloseSession(CloseSession) CloseSession;
        }
    };
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
        self.writes() || matches!(self, Self::SYNC)
    }

    /// Whether such a request may change something.
    pub(crate) const fn writes(self) -> bool {
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
        )
    }
}
