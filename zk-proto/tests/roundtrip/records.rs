//! The list of all records.

use std::any::type_name;

use zk_proto::strategy::AsRecord;

/// Calls a macro with the type of every record, or with the type that owns what the record borrows.
macro_rules! for_every_record {
    ($call:ident) => {{
        use bytes::Bytes;
        use zk_proto::{frame::*, request::*, strategy::*, *};
        $call! {
            // Values.
            (), Text, Secret<Option<Bytes>>, Zxid, SessionId, Xid, OpCode, ErrorCode, Perms, CreateFlags,
            EventType, KeeperState, AddWatchMode, WatcherType, TrailingFlag,
            Stat, Id, Acl, ClientInfo, List<Text>, List<Acl>, List<ClientInfo>,
            // Headers.
            RequestHeader, ReplyHeader, MultiHeader,
            // Messages without a header, and messages that were not requested.
            OwnedConnectRequest, ConnectResponse, WatcherEvent,
            // Requests.
            OwnedCreateRequest, OwnedDeleteRequest, OwnedExistsRequest, OwnedGetDataRequest,
            OwnedSetDataRequest, OwnedGetAclRequest, OwnedSetAclRequest, OwnedGetChildrenRequest,
            OwnedSyncRequest, Ping, OwnedGetChildren2Request, OwnedCheckVersionRequest, MultiRequest,
            OwnedCreate2Request, OwnedReconfigRequest, OwnedCheckWatchesRequest,
            OwnedRemoveWatchesRequest, OwnedCreateContainerRequest, OwnedDeleteContainerRequest,
            OwnedCreateTtlRequest, MultiReadRequest, OwnedAuthPacket, SetWatches, OwnedGetSaslRequest,
            OwnedGetEphemeralsRequest, OwnedGetAllChildrenNumberRequest, SetWatches2,
            OwnedAddWatchRequest, WhoAmIRequest, CloseSession,
            // Responses.
            CreateResponse, Create2Response, ExistsResponse, GetDataResponse, SetDataResponse,
            GetAclResponse, SetAclResponse, GetChildrenResponse, GetChildren2Response, SyncResponse,
            MultiResponse, SetSaslResponse, GetEphemeralsResponse, GetAllChildrenNumberResponse,
            ErrorResponse, WhoAmIResponse
        }
    }};
}

pub(crate) use for_every_record;

/// The name of the record that an `O` stands for.
pub(crate) fn record_name<O: AsRecord + 'static>() -> String {
    short(type_name::<O::Record<'static>>())
}

/// A type's name without its module and lifetimes.
pub(crate) fn short(name: &str) -> String {
    let name = name.replace("<'_>", "");
    name.rsplit("::").next().unwrap_or(&name).to_owned()
}
