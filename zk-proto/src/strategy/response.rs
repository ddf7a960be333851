//! Servers' answers and unsolicited frames.

use bytes::Bytes;
use proptest::{
    arbitrary::{Arbitrary, any},
    strategy::{BoxedStrategy, Strategy},
};

use crate::{
    code::ErrorCode,
    data::{AclList, ClientInfo, EventType, KeeperState, SessionId, Stat},
    dispatch,
    list::List,
    op::OpCode,
    request::{
        ConnectResponse, Create2Response, CreateResponse, ErrorResponse, ExistsResponse,
        GetAclResponse, GetAllChildrenNumberResponse, GetChildren2Response, GetChildrenResponse,
        GetDataResponse, GetEphemeralsResponse, Request, SetAclResponse, SetDataResponse,
        SetSaslResponse, SyncResponse, TrailingFlag, WatcherEvent, WhoAmIResponse,
    },
    strategy::{
        AsRecord, OwnedAnyRequest, multi_read_response, multi_response,
        number::int,
        record::records,
        text::{buffer, password, path_text},
    },
    text::{Secret, Text},
};

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

/// The encoded body of a reply to an operation, without error; `None` if the operation has no request.
#[must_use]
pub fn response(op: OpCode) -> Option<BoxedStrategy<Bytes>> {
    dispatch!(op, R => body::<<R<'_> as Request>::Response>())
}

/// As [`response`], for the given `request`: a multi has a result for each of its operations.
pub fn response_to(request: &OwnedAnyRequest) -> BoxedStrategy<Bytes> {
    match request {
        OwnedAnyRequest::Multi(multi) => encoded(multi_response(multi)),
        OwnedAnyRequest::MultiRead(multi) => encoded(multi_read_response(multi)),
        other => response(other.op()).unwrap_or_else(body::<()>),
    }
}

fn body<T: Arbitrary + AsRecord + 'static>() -> BoxedStrategy<Bytes> {
    encoded(any::<T>())
}

fn encoded<T: AsRecord + 'static>(
    strategy: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Bytes> {
    strategy.prop_map(|record| record.encoded()).boxed()
}
