//! Whole frames of both directions.

use bytes::{Bytes, BytesMut};
use proptest::{
    arbitrary::any,
    prop_oneof,
    strategy::{BoxedStrategy, Strategy},
};

use crate::{
    code::ErrorCode,
    data::{Xid, Zxid},
    frame::{LEN_PREFIX, ReplyHeader, RequestHeader, encode_frame_with},
    jute::{Decode, DecodeError, Encode, Reader},
    op::OpCode,
    request::{ConnectRequest, ConnectResponse, Request, RequestVisitor, WatcherEvent, dispatch},
    strategy::{
        AnyRequest, AsRecord, OwnedConnectRequest, number, op_with_request, record::arbitrary,
        response,
    },
};

/// A frame, and what must be known to decode it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What the frame is, which its bytes do not say.
    pub kind: FrameKind,
    /// The frame with its length prefix.
    pub bytes: Bytes,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The first frame of a client: a [`ConnectRequest`].
    ConnectRequest,
    /// Any other frame of a client: a [`RequestHeader`] and a request.
    Request(OpCode),
    /// The first frame of a server: a [`ConnectResponse`].
    ConnectResponse,
    /// A frame of a server that answers a request: a [`ReplyHeader`], and a response unless that says
    /// otherwise.
    Reply(OpCode),
    /// A frame of a server that answers nothing: a [`ReplyHeader`] and a [`WatcherEvent`].
    Notification,
}

impl Frame {
    /// A frame of what `write` appends.
    pub fn new(kind: FrameKind, write: impl FnOnce(&mut BytesMut)) -> Self {
        let mut out = BytesMut::new();
        encode_frame_with(&mut out, write);
        Self { kind, bytes: out.freeze() }
    }

    /// A reply; without `body` where `header` says that there is none.
    #[must_use]
    pub fn reply(op: OpCode, header: ReplyHeader, body: &[u8]) -> Self {
        Self::new(FrameKind::Reply(op), |out| {
            header.encode(out);
            if header.err.is_ok() {
                out.extend_from_slice(body);
            }
        })
    }

    /// A watch event.
    #[must_use]
    pub fn notification(zxid: Zxid, event: &WatcherEvent) -> Self {
        Self::new(FrameKind::Notification, |out| {
            ReplyHeader { xid: Xid::NOTIFICATION, zxid, err: ErrorCode::OK }.encode(out);
            event.encode(out);
        })
    }

    /// What is behind the length prefix; as much of it as there is.
    #[must_use]
    pub fn content(&self) -> Bytes {
        self.bytes.slice(self.bytes.len().min(LEN_PREFIX)..)
    }
}

impl FrameKind {
    /// Decodes `content`, a frame without its length prefix, as what it should be.
    ///
    /// # Errors
    /// [`DecodeError`] if it is something else. Bytes behind the last field are an error too, unless
    /// it is a reply with an error code.
    pub fn check(self, content: &Bytes) -> Result<(), DecodeError> {
        let reader = &mut Reader::new(content);
        match self {
            Self::ConnectRequest => ConnectRequest::skip(reader)?,
            Self::ConnectResponse => ConnectResponse::skip(reader)?,
            Self::Notification => {
                ReplyHeader::skip(reader)?;
                WatcherEvent::skip(reader)?;
            }
            Self::Request(op) => {
                RequestHeader::skip(reader)?;
                dispatch(op, SkipRequest(reader)).unwrap_or(Ok(()))?;
            }
            Self::Reply(op) => {
                if !ReplyHeader::decode(reader)?.err.is_ok() {
                    return Ok(());
                }
                dispatch(op, SkipResponse(reader)).unwrap_or(Ok(()))?;
            }
        }
        reader.finish()
    }
}

struct SkipRequest<'r, 'a>(&'r mut Reader<'a>);

impl<'a> RequestVisitor<'a> for SkipRequest<'_, 'a> {
    type Output = Result<(), DecodeError>;
    fn visit<R: Request + Decode<'a>>(self) -> Self::Output {
        R::skip(self.0)
    }
}

struct SkipResponse<'r, 'a>(&'r mut Reader<'a>);

impl<'a> RequestVisitor<'a> for SkipResponse<'_, 'a> {
    type Output = Result<(), DecodeError>;
    fn visit<R: Request + Decode<'a>>(self) -> Self::Output {
        R::Response::skip(self.0)
    }
}

/// A frame that a client sends.
pub fn client_frame() -> impl Strategy<Value = Frame> {
    let connect = any::<OwnedConnectRequest>().prop_map(|request| {
        Frame::new(FrameKind::ConnectRequest, |out| {
            request.as_record().encode(out);
        })
    });
    let request = (any::<Xid>(), any::<AnyRequest>()).prop_map(|(xid, request)| request.frame(xid));
    prop_oneof![1 => connect, 15 => request]
}

/// A frame that a server sends: any of them, whether or not anything asks for it.
pub fn server_frame() -> impl Strategy<Value = Frame> {
    let connect = any::<ConnectResponse>()
        .prop_map(|response| Frame::new(FrameKind::ConnectResponse, |out| response.encode(out)));
    let notification = (any::<Zxid>(), any::<WatcherEvent>())
        .prop_map(|(zxid, event)| Frame::notification(zxid, &event));
    let reply = (op_with_request(), any::<Xid>(), any::<Zxid>())
        .prop_flat_map(|(op, xid, zxid)| reply(op, xid, zxid, response(op)));
    prop_oneof![1 => connect, 2 => notification, 13 => reply]
}

/// A reply with `body`, or with an error and none.
pub(super) fn reply(
    op: OpCode,
    xid: Xid,
    zxid: Zxid,
    body: Option<BoxedStrategy<Bytes>>,
) -> impl Strategy<Value = Frame> {
    let header = move |err| ReplyHeader { xid, zxid, err };
    let refused = number::refusal().prop_map(move |err| Frame::reply(op, header(err), &[]));
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
