//! The list of all requests, and from an operation number to the type of its request.

/// Calls a macro with the list of all requests, behind arguments of one's own: for each request its constant of
/// [`OpCode`](crate::OpCode), its variant of [`AnyRequest`](crate::request::AnyRequest) with its record in
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

/// Evaluates an expression about the request type of an operation number; `None` if the operation has no request. The
/// type goes by the given name, with a lifetime, and what the expression needs of it, traits of one's own included, is checked for
/// every request.
///
/// ```
/// use zk_proto::{OpCode, Request, dispatch};
///
/// let len_min = |op| dispatch!(op, R => <R<'_> as zk_proto::jute::Decode>::LEN_MIN);
/// assert_eq!(len_min(OpCode::DELETE), Some(8));
/// assert_eq!(len_min(OpCode::NOTIFICATION), None);
/// ```
#[macro_export]
macro_rules! dispatch {
    ($op:expr, $request:ident => $result:expr) => {
        $crate::for_each_request!($crate::dispatch, @arms $op, $request => $result;)
    };
    (@arms $op:expr, $request:ident => $result:expr;
     $($code:ident $variant:ident($record:ident $(<$lt:lifetime>)?) $twin:ident;)*) => {
        match $op {
            $($crate::OpCode::$code => {
                type $request<'a> = $crate::request::$record $(<$lt>)?;
                ::core::option::Option::Some($result)
            })*
            _ => ::core::option::Option::None,
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{op::OpCode, request::Request};

    #[test]
    fn every_operation_has_a_request_or_none() {
        const WITHOUT_REQUEST: [OpCode; 3] =
            [OpCode::NOTIFICATION, OpCode::CREATE_SESSION, OpCode::ERROR];
        for &op in OpCode::KNOWN {
            let expected = (!WITHOUT_REQUEST.contains(&op)).then_some(op);
            assert_eq!(dispatch!(op, R => R::OP), expected, "{op:?}");
        }
    }
}
