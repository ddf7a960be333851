//! One type for all requests.

use bytes::BytesMut;
use proptest::{
    arbitrary::any,
    sample::select,
    strategy::{BoxedStrategy, Strategy},
};

use crate::{
    data::Xid,
    for_each_request,
    frame::RequestFrame,
    op::OpCode,
    request::{
        AnyRequest, CloseSession, MultiReadRequest, MultiRequest, Ping, SetWatches, SetWatches2,
        WhoAmIRequest,
    },
    strategy::{AsRecord, Frame, FrameKind, record::arbitrary, request::*},
};

/// The sum of all requests, and their operation numbers.
macro_rules! any_request {
    ($($op:ident $variant:ident($request:ident $($lt:tt)*) $twin:ident;)*) => {
        /// Owns what an [`AnyRequest`] borrows. Its strategy is any of them, each as likely as the others.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each variant is the operation of its name")]
        pub enum OwnedAnyRequest { $($variant($twin)),* }

        /// The operations that have requests.
        const OPS: &[OpCode] = &[$(OpCode::$op),*];

        impl OwnedAnyRequest {
            /// The request.
            #[must_use]
            pub fn as_request(&self) -> AnyRequest<'_> {
                match self {
                    $(Self::$variant(request) => AnyRequest::$variant(request.as_record()),)*
                }
            }
        }

        /// A request of an operation; `None` if the operation has none.
        #[must_use]
        pub fn request(op: OpCode) -> Option<BoxedStrategy<OwnedAnyRequest>> {
            Some(match op {
                $(OpCode::$op => any::<$twin>().prop_map(OwnedAnyRequest::$variant).boxed(),)*
                _ => return None,
            })
        }
    };
}

for_each_request!(any_request,);

impl OwnedAnyRequest {
    /// The operation.
    #[must_use]
    pub fn op(&self) -> OpCode {
        self.as_request().op()
    }

    /// The request as a frame.
    #[must_use]
    pub fn frame(&self, xid: Xid) -> Frame {
        let mut out = BytesMut::new();
        RequestFrame::new(self.op(), &self.as_request()).write(xid, &mut out);
        Frame { kind: FrameKind::Request(self.op()), bytes: out.freeze() }
    }
}

/// The number of an operation that has a request.
pub fn op_with_request() -> impl Strategy<Value = OpCode> {
    select(OPS)
}

arbitrary! {
    OwnedAnyRequest = proptest::strategy::Union::new(OPS.iter().filter_map(|&op| request(op)));
}
