//! From an operation number to its types.

use core::fmt::Debug;

use crate::{
    jute::Decode,
    op::OpCode,
    request::{
        AddWatchRequest, AuthPacket, CheckVersionRequest, CheckWatchesRequest, CloseSession,
        Create2Request, CreateContainerRequest, CreateRequest, CreateTtlRequest,
        DeleteContainerRequest, DeleteRequest, ExistsRequest, GetAclRequest,
        GetAllChildrenNumberRequest, GetChildren2Request, GetChildrenRequest, GetDataRequest,
        GetEphemeralsRequest, GetSaslRequest, MultiReadRequest, MultiRequest, Ping,
        ReconfigRequest, RemoveWatchesRequest, Request, SetAclRequest, SetDataRequest, SetWatches,
        SetWatches2, SyncRequest, WhoAmIRequest,
    },
};

#[cfg(feature = "serde")]
use serde::Serialize as Inspect;

/// Stands in for `serde::Serialize` where that feature is off.
#[cfg(not(feature = "serde"))]
pub trait Inspect {}
#[cfg(not(feature = "serde"))]
impl<T> Inspect for T {}

/// An action on a request whose type is known only by a number: decode it, describe it, generate
/// one. Proxies, servers and fuzzers implement this and call [`dispatch`].
pub trait RequestVisitor<'a> {
    /// The result of the action.
    type Output;

    /// Called with the request type of the number.
    fn visit<R>(self) -> Self::Output
    where
        R: Request + Decode<'a> + Debug + PartialEq + Inspect + 'a,
        R::Response: Debug + PartialEq + Inspect;
}

/// Calls `visitor` with the request type of `op`; `None` if the operation has no request.
pub fn dispatch<'a, V: RequestVisitor<'a>>(op: OpCode, visitor: V) -> Option<V::Output> {
    Some(match op {
        OpCode::CREATE => visitor.visit::<CreateRequest<'a>>(),
        OpCode::DELETE => visitor.visit::<DeleteRequest<'a>>(),
        OpCode::EXISTS => visitor.visit::<ExistsRequest<'a>>(),
        OpCode::GET_DATA => visitor.visit::<GetDataRequest<'a>>(),
        OpCode::SET_DATA => visitor.visit::<SetDataRequest<'a>>(),
        OpCode::GET_ACL => visitor.visit::<GetAclRequest<'a>>(),
        OpCode::SET_ACL => visitor.visit::<SetAclRequest<'a>>(),
        OpCode::GET_CHILDREN => visitor.visit::<GetChildrenRequest<'a>>(),
        OpCode::SYNC => visitor.visit::<SyncRequest<'a>>(),
        OpCode::PING => visitor.visit::<Ping>(),
        OpCode::GET_CHILDREN2 => visitor.visit::<GetChildren2Request<'a>>(),
        OpCode::CHECK => visitor.visit::<CheckVersionRequest<'a>>(),
        OpCode::MULTI => visitor.visit::<MultiRequest>(),
        OpCode::CREATE2 => visitor.visit::<Create2Request<'a>>(),
        OpCode::RECONFIG => visitor.visit::<ReconfigRequest<'a>>(),
        OpCode::CHECK_WATCHES => visitor.visit::<CheckWatchesRequest<'a>>(),
        OpCode::REMOVE_WATCHES => visitor.visit::<RemoveWatchesRequest<'a>>(),
        OpCode::CREATE_CONTAINER => visitor.visit::<CreateContainerRequest<'a>>(),
        OpCode::DELETE_CONTAINER => visitor.visit::<DeleteContainerRequest<'a>>(),
        OpCode::CREATE_TTL => visitor.visit::<CreateTtlRequest<'a>>(),
        OpCode::MULTI_READ => visitor.visit::<MultiReadRequest>(),
        OpCode::AUTH => visitor.visit::<AuthPacket<'a>>(),
        OpCode::SET_WATCHES => visitor.visit::<SetWatches>(),
        OpCode::SASL => visitor.visit::<GetSaslRequest<'a>>(),
        OpCode::GET_EPHEMERALS => visitor.visit::<GetEphemeralsRequest<'a>>(),
        OpCode::GET_ALL_CHILDREN_NUMBER => visitor.visit::<GetAllChildrenNumberRequest<'a>>(),
        OpCode::SET_WATCHES2 => visitor.visit::<SetWatches2>(),
        OpCode::ADD_WATCH => visitor.visit::<AddWatchRequest<'a>>(),
        OpCode::WHO_AM_I => visitor.visit::<WhoAmIRequest>(),
        OpCode::CLOSE_SESSION => visitor.visit::<CloseSession>(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_operation_has_a_request_of_its_number_or_is_listed_as_having_none() {
        struct Number;
        impl RequestVisitor<'_> for Number {
            type Output = OpCode;
            fn visit<R: Request>(self) -> OpCode {
                R::OP
            }
        }

        const WITHOUT_REQUEST: [OpCode; 3] =
            [OpCode::NOTIFICATION, OpCode::CREATE_SESSION, OpCode::ERROR];
        for &op in OpCode::KNOWN {
            let expected = (!WITHOUT_REQUEST.contains(&op)).then_some(op);
            assert_eq!(dispatch(op, Number), expected, "{op:?}");
        }
    }
}
