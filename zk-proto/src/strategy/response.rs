//! Servers' answers.

use bytes::Bytes;
use proptest::{
    arbitrary::{Arbitrary, any},
    strategy::{BoxedStrategy, Strategy},
};

use crate::{
    dispatch,
    op::OpCode,
    request::Request,
    strategy::{AsRecord, OwnedAnyRequest, multi_read_response, multi_response},
};

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
