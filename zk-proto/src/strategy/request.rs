//! Requests, those that borrow with a twin that owns, and what servers send.

use bytes::Bytes;
use proptest::{arbitrary::any, strategy::Strategy};

use crate::{
    code::ErrorCode,
    data::{
        AclList, AddWatchMode, ClientInfo, CreateFlags, EventType, KeeperState, SessionId, Stat,
        WatcherType, Zxid,
    },
    list::List,
    request::{
        AddWatchRequest, AuthPacket, CheckVersionRequest, CheckWatchesRequest, CloseSession,
        ConnectRequest, ConnectResponse, Create2Request, Create2Response, CreateContainerRequest,
        CreateRequest, CreateResponse, CreateTtlRequest, DeleteContainerRequest, DeleteRequest,
        ErrorResponse, ExistsRequest, ExistsResponse, GetAclRequest, GetAclResponse,
        GetAllChildrenNumberRequest, GetAllChildrenNumberResponse, GetChildren2Request,
        GetChildren2Response, GetChildrenRequest, GetChildrenResponse, GetDataRequest,
        GetDataResponse, GetEphemeralsRequest, GetEphemeralsResponse, GetSaslRequest, Ping,
        ReconfigRequest, RemoveWatchesRequest, SetAclRequest, SetAclResponse, SetDataRequest,
        SetDataResponse, SetSaslResponse, SetWatches, SetWatches2, SyncRequest, SyncResponse,
        TrailingFlag, WatcherEvent, WhoAmIRequest, WhoAmIResponse,
    },
    strategy::{
        AsRecord,
        number::{int, long},
        record::{arbitrary, is_record, owned, records},
        text::{buffer, password, path_text, text},
    },
    text::{Secret, Text},
};

owned! {
    OwnedConnectRequest lends ConnectRequest {
        protocol_version: i32 = int(),
        last_zxid_seen: Zxid = any::<Zxid>(),
        time_out: i32 = int(),
        session_id: SessionId = any::<SessionId>(),
        passwd: Option<Bytes> = password(),
        read_only: TrailingFlag = any::<TrailingFlag>(),
    }
    OwnedAuthPacket lends AuthPacket {
        kind: i32 = int(),
        scheme: Text = text(),
        auth: Option<Bytes> = buffer(),
    }
    OwnedGetSaslRequest lends GetSaslRequest {
        token: Option<Bytes> = buffer(),
    }
    OwnedCreateRequest lends CreateRequest {
        path: Text = path_text(),
        data: Option<Bytes> = buffer(),
        acl: AclList = any::<AclList>(),
        flags: CreateFlags = any::<CreateFlags>(),
    }
    OwnedCreateTtlRequest lends CreateTtlRequest {
        path: Text = path_text(),
        data: Option<Bytes> = buffer(),
        acl: AclList = any::<AclList>(),
        flags: CreateFlags = any::<CreateFlags>(),
        ttl: i64 = long(),
    }
    OwnedDeleteRequest lends DeleteRequest {
        path: Text = path_text(),
        version: i32 = int(),
    }
    OwnedExistsRequest lends ExistsRequest {
        path: Text = path_text(),
        watch: bool = any::<bool>(),
    }
    OwnedGetDataRequest lends GetDataRequest {
        path: Text = path_text(),
        watch: bool = any::<bool>(),
    }
    OwnedSetDataRequest lends SetDataRequest {
        path: Text = path_text(),
        data: Option<Bytes> = buffer(),
        version: i32 = int(),
    }
    OwnedGetChildrenRequest lends GetChildrenRequest {
        path: Text = path_text(),
        watch: bool = any::<bool>(),
    }
    OwnedGetChildren2Request lends GetChildren2Request {
        path: Text = path_text(),
        watch: bool = any::<bool>(),
    }
    OwnedSyncRequest lends SyncRequest {
        path: Text = path_text(),
    }
    OwnedCheckVersionRequest lends CheckVersionRequest {
        path: Text = path_text(),
        version: i32 = int(),
    }
    OwnedGetAclRequest lends GetAclRequest {
        path: Text = path_text(),
    }
    OwnedSetAclRequest lends SetAclRequest {
        path: Text = path_text(),
        acl: AclList = any::<AclList>(),
        version: i32 = int(),
    }
    OwnedReconfigRequest lends ReconfigRequest {
        joining_servers: Text = text(),
        leaving_servers: Text = text(),
        new_members: Text = text(),
        cur_config_id: Zxid = any::<Zxid>(),
    }
    OwnedGetEphemeralsRequest lends GetEphemeralsRequest {
        prefix_path: Text = path_text(),
    }
    OwnedGetAllChildrenNumberRequest lends GetAllChildrenNumberRequest {
        path: Text = path_text(),
    }
    OwnedAddWatchRequest lends AddWatchRequest {
        path: Text = path_text(),
        mode: AddWatchMode = any::<AddWatchMode>(),
    }
    OwnedCheckWatchesRequest lends CheckWatchesRequest {
        path: Text = path_text(),
        kind: WatcherType = any::<WatcherType>(),
    }
}

records! {
    SetWatches {
        relative_zxid: any::<Zxid>(),
        data_watches: any::<List<Text>>(),
        exist_watches: any::<List<Text>>(),
        child_watches: any::<List<Text>>(),
    }
    SetWatches2 {
        relative_zxid: any::<Zxid>(),
        data_watches: any::<List<Text>>(),
        exist_watches: any::<List<Text>>(),
        child_watches: any::<List<Text>>(),
        persistent_watches: any::<List<Text>>(),
        persistent_recursive_watches: any::<List<Text>>(),
    }
}

records! {
    ConnectResponse {
        protocol_version: int(),
        time_out: int(),
        session_id: any::<SessionId>(),
        passwd: password().prop_map(Secret),
        read_only: any::<TrailingFlag>(),
    }
    SetSaslResponse { token: buffer().prop_map(Secret) }
    CreateResponse { path: path_text() }
    Create2Response { path: path_text(), stat: any::<Stat>() }
    ExistsResponse { stat: any::<Stat>() }
    GetDataResponse { data: buffer(), stat: any::<Stat>() }
    SetDataResponse { stat: any::<Stat>() }
    GetChildrenResponse { children: any::<List<Text>>() }
    GetChildren2Response { children: any::<List<Text>>(), stat: any::<Stat>() }
    SyncResponse { path: path_text() }
    GetAclResponse { acl: any::<AclList>(), stat: any::<Stat>() }
    SetAclResponse { stat: any::<Stat>() }
    WhoAmIResponse { client_info: any::<List<ClientInfo>>() }
    GetEphemeralsResponse { ephemerals: any::<List<Text>>() }
    GetAllChildrenNumberResponse { total_number: int() }
    ErrorResponse { err: any::<ErrorCode>() }
    WatcherEvent { kind: any::<EventType>(), state: any::<KeeperState>(), path: path_text() }
}

arbitrary! {
    Ping = proptest::strategy::Just(Self);
    CloseSession = proptest::strategy::Just(Self);
    WhoAmIRequest = proptest::strategy::Just(Self);
}
is_record!(Ping, CloseSession, WhoAmIRequest);

/// A twin for each request that has another's record under its own operation number.
macro_rules! owned_same_record {
    ($($owned:ident($inner:ident) lends $record:ident;)*) => {$(
        #[doc = concat!("Owns what a [`", stringify!($record), "`] borrows.")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $owned(pub $inner);

        impl AsRecord for $owned {
            type Record<'a> = $record<'a>;
            fn as_record(&self) -> $record<'_> {
                $record(self.0.as_record())
            }
        }

        arbitrary! {
            $owned = any::<$inner>().prop_map(Self);
        }
    )*};
}

owned_same_record! {
    OwnedCreate2Request(OwnedCreateRequest) lends Create2Request;
    OwnedCreateContainerRequest(OwnedCreateRequest) lends CreateContainerRequest;
    OwnedDeleteContainerRequest(OwnedDeleteRequest) lends DeleteContainerRequest;
    OwnedRemoveWatchesRequest(OwnedCheckWatchesRequest) lends RemoveWatchesRequest;
}
