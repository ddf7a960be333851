//! Requests that borrow, each with a twin that owns.

use bytes::Bytes;
use proptest::{arbitrary::any, strategy::Strategy};

use crate::{
    data::{AclList, AddWatchMode, CreateFlags, SessionId, WatcherType, Zxid},
    list::List,
    request::{
        AddWatchRequest, AuthPacket, CheckVersionRequest, CheckWatchesRequest, CloseSession,
        ConnectRequest, Create2Request, CreateContainerRequest, CreateRequest, CreateTtlRequest,
        DeleteContainerRequest, DeleteRequest, ExistsRequest, GetAclRequest,
        GetAllChildrenNumberRequest, GetChildren2Request, GetChildrenRequest, GetDataRequest,
        GetEphemeralsRequest, GetSaslRequest, Ping, ReconfigRequest, RemoveWatchesRequest,
        SetAclRequest, SetDataRequest, SetWatches, SetWatches2, SyncRequest, TrailingFlag,
        WhoAmIRequest,
    },
    strategy::{
        AsRecord,
        number::{int, long},
        record::{arbitrary, is_record, owned, records},
        text::{buffer, password, path_text, text},
    },
    text::Text,
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
