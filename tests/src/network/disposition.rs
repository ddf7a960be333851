//! What may become of a request on its way.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode, Xid,
    frame::{ReplyHeader, RequestFrame, encode_frame, encode_frame_with},
    request::ExistsRequest,
};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It is carried out and answered.
    Answered,
    /// It is not carried out: the server has too much to do, and says so.
    Throttled,
    /// It is not carried out: the server does not know the operation, says so, and closes the connection.
    Unknown,
    /// It is answered so much later, and whatever is said behind the answer too.
    Late(Duration),
    /// It is carried out; its answer goes down with the connection.
    AnswerLost,
    /// It goes down with the connection.
    Lost,
    /// As with [`AnswerLost`](Self::AnswerLost), and no server can be reached for so long.
    Outage(Duration),
}

/// A frame with these contents.
pub(super) fn framed(contents: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    encode_frame_with(&mut frame, |out| out.extend_from_slice(contents));
    frame.freeze()
}

/// What stands in for a request that is not carried out: something that changes nothing, and is answered in its turn.
pub(super) fn stand_in(xid: Xid) -> Bytes {
    let mut frame = BytesMut::new();
    RequestFrame::of(&ExistsRequest { path: "/".into(), watch: false }).write(xid, &mut frame);
    frame.freeze()
}

/// The answer of a server that refuses, in place of this one.
pub(super) fn refusal(header: ReplyHeader, err: ErrorCode) -> Bytes {
    let mut frame = BytesMut::new();
    encode_frame(&ReplyHeader { err, ..header }, &mut frame);
    frame.freeze()
}
