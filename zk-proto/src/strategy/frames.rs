//! Whole frames of both directions.

use bytes::Bytes;
use proptest::{
    arbitrary::any,
    prop_oneof,
    strategy::{BoxedStrategy, Strategy},
};

use crate::{
    code::ErrorCode,
    data::{Xid, Zxid},
    frame::ReplyHeader,
    jute::Encode,
    op::OpCode,
    request::{ConnectResponse, WatcherEvent},
    strategy::{
        any_request::{OwnedAnyRequest, op_with_request},
        frame::{Frame, FrameKind},
        number::refusal,
        record::{AsRecord, arbitrary},
        request::OwnedConnectRequest,
        response::response,
    },
};

/// A frame that a client sends.
pub fn client_frame() -> impl Strategy<Value = Frame> {
    let connect = any::<OwnedConnectRequest>().prop_map(|request| {
        Frame::new(FrameKind::ConnectRequest, |out| {
            request.as_record().encode(out);
        })
    });
    let request =
        (any::<Xid>(), any::<OwnedAnyRequest>()).prop_map(|(xid, request)| request.frame(xid));
    prop_oneof![1 => connect, 15 => request]
}

/// A frame that a server sends: any of them, solicited or not.
pub fn server_frame() -> impl Strategy<Value = Frame> {
    let connect = any::<ConnectResponse>()
        .prop_map(|response| Frame::new(FrameKind::ConnectResponse, |out| response.encode(out)));
    let notification = (any::<Zxid>(), any::<WatcherEvent>())
        .prop_map(|(zxid, event)| Frame::notification(zxid, &event));
    let reply = (op_with_request(), any::<Xid>(), any::<Zxid>())
        .prop_flat_map(|(op, xid, zxid)| reply(op, xid, zxid, response(op)));
    prop_oneof![1 => connect, 2 => notification, 13 => reply]
}

/// A reply with `body`, or with an error and no body.
pub(super) fn reply(
    op: OpCode,
    xid: Xid,
    zxid: Zxid,
    body: Option<BoxedStrategy<Bytes>>,
) -> impl Strategy<Value = Frame> {
    let header = move |err| ReplyHeader { xid, zxid, err };
    let refused = refusal().prop_map(move |err| Frame::reply(op, header(err), &[]));
    let served =
        body.map(|body| body.prop_map(move |body| Frame::reply(op, header(ErrorCode::OK), &body)));
    match served {
        Some(served) => prop_oneof![4 => served, 1 => refused].boxed(),
        None => refused.boxed(),
    }
}

arbitrary! {
    Frame = prop_oneof![client_frame(), server_frame()];
}
