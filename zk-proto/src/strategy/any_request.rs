//! One type for all requests.

use bytes::Bytes;
use proptest::{
    arbitrary::any,
    sample::select,
    strategy::{BoxedStrategy, Strategy},
};

use crate::{
    data::Xid,
    frame::RequestFrame,
    op::OpCode,
    request::{
        CloseSession, MultiReadRequest, MultiRequest, Ping, Request, SetWatches, SetWatches2,
        WhoAmIRequest,
    },
    strategy::{
        AsRecord, Frame, FrameKind, OwnedAddWatchRequest, OwnedAuthPacket,
        OwnedCheckVersionRequest, OwnedCheckWatchesRequest, OwnedCreate2Request,
        OwnedCreateContainerRequest, OwnedCreateRequest, OwnedCreateTtlRequest,
        OwnedDeleteContainerRequest, OwnedDeleteRequest, OwnedExistsRequest, OwnedGetAclRequest,
        OwnedGetAllChildrenNumberRequest, OwnedGetChildren2Request, OwnedGetChildrenRequest,
        OwnedGetDataRequest, OwnedGetEphemeralsRequest, OwnedGetSaslRequest, OwnedReconfigRequest,
        OwnedRemoveWatchesRequest, OwnedSetAclRequest, OwnedSetDataRequest, OwnedSyncRequest,
        record::arbitrary,
    },
};

/// The sum of all requests, and their operation numbers.
macro_rules! any_request {
    ($($variant:ident($request:ty) = $op:ident;)*) => {
        /// A request of any operation. Its strategy is any of them, each as likely as the others.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each variant is the operation of its name")]
        pub enum AnyRequest { $($variant($request)),* }

        /// The operations that have requests.
        const OPS: &[OpCode] = &[$(OpCode::$op),*];

        impl AnyRequest {
            /// The operation.
            #[must_use]
            pub fn op(&self) -> OpCode {
                match self {
                    $(Self::$variant(request) => op_of(&request.as_record()),)*
                }
            }

            /// The request's encoding, without header.
            #[must_use]
            pub fn body(&self) -> Bytes {
                match self {
                    $(Self::$variant(request) => request.encoded(),)*
                }
            }
        }

        /// A request of an operation; `None` if the operation has none.
        #[must_use]
        pub fn request(op: OpCode) -> Option<BoxedStrategy<AnyRequest>> {
            Some(match op {
                $(OpCode::$op => any::<$request>().prop_map(AnyRequest::$variant).boxed(),)*
                _ => return None,
            })
        }
    };
}

any_request! {
    Create(OwnedCreateRequest) = CREATE;
    Delete(OwnedDeleteRequest) = DELETE;
    Exists(OwnedExistsRequest) = EXISTS;
    GetData(OwnedGetDataRequest) = GET_DATA;
    SetData(OwnedSetDataRequest) = SET_DATA;
    GetAcl(OwnedGetAclRequest) = GET_ACL;
    SetAcl(OwnedSetAclRequest) = SET_ACL;
    GetChildren(OwnedGetChildrenRequest) = GET_CHILDREN;
    Sync(OwnedSyncRequest) = SYNC;
    Ping(Ping) = PING;
    GetChildren2(OwnedGetChildren2Request) = GET_CHILDREN2;
    Check(OwnedCheckVersionRequest) = CHECK;
    Multi(MultiRequest) = MULTI;
    Create2(OwnedCreate2Request) = CREATE2;
    Reconfig(OwnedReconfigRequest) = RECONFIG;
    CheckWatches(OwnedCheckWatchesRequest) = CHECK_WATCHES;
    RemoveWatches(OwnedRemoveWatchesRequest) = REMOVE_WATCHES;
    CreateContainer(OwnedCreateContainerRequest) = CREATE_CONTAINER;
    DeleteContainer(OwnedDeleteContainerRequest) = DELETE_CONTAINER;
    CreateTtl(OwnedCreateTtlRequest) = CREATE_TTL;
    MultiRead(MultiReadRequest) = MULTI_READ;
    Auth(OwnedAuthPacket) = AUTH;
    SetWatches(SetWatches) = SET_WATCHES;
    Sasl(OwnedGetSaslRequest) = SASL;
    GetEphemerals(OwnedGetEphemeralsRequest) = GET_EPHEMERALS;
    GetAllChildrenNumber(OwnedGetAllChildrenNumberRequest) = GET_ALL_CHILDREN_NUMBER;
    SetWatches2(SetWatches2) = SET_WATCHES2;
    AddWatch(OwnedAddWatchRequest) = ADD_WATCH;
    WhoAmI(WhoAmIRequest) = WHO_AM_I;
    CloseSession(CloseSession) = CLOSE_SESSION;
}

const fn op_of<R: Request>(_: &R) -> OpCode {
    R::OP
}

impl AnyRequest {
    /// The request as a frame.
    #[must_use]
    pub fn frame(&self, xid: Xid) -> Frame {
        let mut out = bytes::BytesMut::new();
        RequestFrame::from_body(self.op(), self.body()).write(xid, &mut out);
        Frame { kind: FrameKind::Request(self.op()), bytes: out.freeze() }
    }
}

/// The number of an operation that has a request.
pub fn op_with_request() -> impl Strategy<Value = OpCode> {
    select(OPS)
}

arbitrary! {
    AnyRequest = proptest::strategy::Union::new(OPS.iter().filter_map(|&op| request(op)));
}
