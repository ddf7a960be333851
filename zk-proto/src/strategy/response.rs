//! Servers' answers and unsolicited frames.

use bytes::Bytes;
use proptest::{
    arbitrary::{Arbitrary, any},
    strategy::{BoxedStrategy, Strategy},
};

use crate::{
    code::ErrorCode,
    data::{AclList, ClientInfo, EventType, KeeperState, SessionId, Stat},
    list::List,
    op::OpCode,
    request::{
        ConnectResponse, Create2Response, CreateResponse, ErrorResponse, ExistsResponse,
        GetAclResponse, GetAllChildrenNumberResponse, GetChildren2Response, GetChildrenResponse,
        GetDataResponse, GetEphemeralsResponse, MultiResponse, SetAclResponse, SetDataResponse,
        SetSaslResponse, SyncResponse, TrailingFlag, WatcherEvent, WhoAmIResponse,
    },
    strategy::{
        AnyRequest, AsRecord, multi_read_response, multi_response,
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
    Some(match op {
        OpCode::CREATE => body::<CreateResponse>(),
        OpCode::CREATE2 | OpCode::CREATE_CONTAINER | OpCode::CREATE_TTL => {
            body::<Create2Response>()
        }
        OpCode::EXISTS => body::<ExistsResponse>(),
        OpCode::GET_DATA | OpCode::RECONFIG => body::<GetDataResponse>(),
        OpCode::SET_DATA => body::<SetDataResponse>(),
        OpCode::GET_ACL => body::<GetAclResponse>(),
        OpCode::SET_ACL => body::<SetAclResponse>(),
        OpCode::GET_CHILDREN => body::<GetChildrenResponse>(),
        OpCode::GET_CHILDREN2 => body::<GetChildren2Response>(),
        OpCode::SYNC => body::<SyncResponse>(),
        OpCode::MULTI | OpCode::MULTI_READ => body::<MultiResponse>(),
        OpCode::SASL => body::<SetSaslResponse>(),
        OpCode::GET_EPHEMERALS => body::<GetEphemeralsResponse>(),
        OpCode::GET_ALL_CHILDREN_NUMBER => body::<GetAllChildrenNumberResponse>(),
        OpCode::ADD_WATCH => body::<ErrorResponse>(),
        OpCode::WHO_AM_I => body::<WhoAmIResponse>(),
        OpCode::DELETE
        | OpCode::DELETE_CONTAINER
        | OpCode::PING
        | OpCode::CHECK
        | OpCode::CHECK_WATCHES
        | OpCode::REMOVE_WATCHES
        | OpCode::AUTH
        | OpCode::SET_WATCHES
        | OpCode::SET_WATCHES2
        | OpCode::CLOSE_SESSION => body::<()>(),
        _ => return None,
    })
}

/// As [`response`], for the given `request`: a multi has a result for each of its operations.
pub fn response_to(request: &AnyRequest) -> BoxedStrategy<Bytes> {
    match request {
        AnyRequest::Multi(multi) => encoded(multi_response(multi)),
        AnyRequest::MultiRead(multi) => encoded(multi_read_response(multi)),
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
