//! A whole frame, with its kind.

use crate::{
    code::ErrorCode,
    data::{Xid, Zxid},
    dispatch,
    frame::{LEN_PREFIX, ReplyHeader, RequestHeader, encode_frame_with},
    jute::{Decode, DecodeError, Encode, Reader},
    op::OpCode,
    request::{ConnectRequest, ConnectResponse, Request, WatcherEvent},
};
use bytes::{Bytes, BytesMut};

/// A frame, with the kind that is needed to decode it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The kind of the frame, which its bytes do not show.
    pub kind: FrameKind,
    /// The frame with its length prefix.
    pub bytes: Bytes,
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The first frame of a client: a [`ConnectRequest`].
    ConnectRequest,
    /// Any other frame of a client: a [`RequestHeader`] and a request.
    Request(OpCode),
    /// The first frame of a server: a [`ConnectResponse`].
    ConnectResponse,
    /// A frame of a server that answers a request: a [`ReplyHeader`], and a response unless the header has an error.
    Reply(OpCode),
    /// An unsolicited frame of a server: a [`ReplyHeader`] and a [`WatcherEvent`].
    Notification,
}

impl Frame {
    /// A frame with the content that `write` appends.
    pub fn new(kind: FrameKind, write: impl FnOnce(&mut BytesMut)) -> Self {
        let mut out = BytesMut::new();
        encode_frame_with(&mut out, write);
        Self { kind, bytes: out.freeze() }
    }

    /// A reply; without `body` if `header` has an error.
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

    /// The bytes after the length prefix, as many as there are.
    #[must_use]
    pub fn content(&self) -> Bytes {
        self.bytes.slice(self.bytes.len().min(LEN_PREFIX)..)
    }
}

impl FrameKind {
    /// Decodes `content`, a frame without its length prefix, as a frame of this kind.
    ///
    /// # Errors
    /// [`DecodeError`] if it is something else. Bytes behind the last field are an error too, except in a reply with an
    /// error code.
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
                dispatch!(op, R => R::skip(reader)).unwrap_or(Ok(()))?;
            }
            Self::Reply(op) => {
                if !ReplyHeader::decode(reader)?.err.is_ok() {
                    return Ok(());
                }
                dispatch!(op, R => <R<'_> as Request>::Response::skip(reader)).unwrap_or(Ok(()))?;
            }
        }
        reader.finish()
    }
}
