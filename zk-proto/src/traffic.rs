//! The frames of one connection, typed, for what looks on: proxies, simulators, fuzzers, captures.
//!
//! A reply shows neither its operation nor its arguments; [`Traffic`] follows both directions and hands out each reply
//! with its request.
//!
//! ```
//! use bytes::BytesMut;
//! use zk_proto::{
//!     ErrorCode, OpCode, Secret, SessionId, Str, Xid, Zxid,
//!     frame::{
//!         LEN_REPLY_MAX, LEN_REQUEST_MAX, ReplyHeader, RequestFrame, encode_frame, encode_frame_with, split_frame,
//!     },
//!     jute::Encode,
//!     request::{AnyRequest, ConnectRequest, ConnectResponse, DeleteRequest, TrailingFlag},
//!     traffic::{Received, Sent, Traffic},
//! };
//!
//! # let (mut from_client, mut from_server) = (BytesMut::new(), BytesMut::new());
//! # let (time_out, read_only) = (6000, TrailingFlag(None));
//! # encode_frame(&ConnectRequest {
//! #     protocol_version: 0, last_zxid_seen: Zxid(0), time_out, session_id: SessionId(0), passwd: Secret(None), read_only,
//! # }, &mut from_client);
//! # RequestFrame::of(&DeleteRequest { path: "/a".into(), version: -1 }).write(Xid(1), &mut from_client);
//! # encode_frame(&ConnectResponse {
//! #     protocol_version: 0, time_out, session_id: SessionId(0x10), passwd: Secret(None), read_only,
//! # }, &mut from_server);
//! # encode_frame(&ReplyHeader { xid: Xid(1), zxid: Zxid(7), err: ErrorCode::NO_NODE }, &mut from_server);
//! // `from_client` and `from_server` are what was captured of both directions: a handshake, and a delete.
//! let mut traffic = Traffic::default();
//! while let Some(frame) = split_frame(&mut from_client, LEN_REQUEST_MAX)? {
//!     match traffic.sent(&frame)? {
//!         Sent::Connect(connect) => assert_eq!(connect.time_out, 6000),
//!         Sent::Request(request) => {
//!             let AnyRequest::Delete(delete) = request.decode()? else { panic!("{request:?}") };
//!             assert_eq!((request.header.xid, delete.path), (Xid(1), "/a".into()));
//!         }
//!     }
//! }
//! while let Some(frame) = split_frame(&mut from_server, LEN_REPLY_MAX)? {
//!     match traffic.received(&frame)? {
//!         Received::Connect(response) => assert_eq!(response.session_id, SessionId(0x10)),
//!         Received::Reply(reply) => {
//!             assert_eq!((reply.op(), reply.header.err), (Some(OpCode::DELETE), ErrorCode::NO_NODE));
//!             assert_eq!(reply.request.and_then(|request| request.path().map(Str::to_owned_lossy)), Some("/a".into()));
//!         }
//!         Received::Event { event, .. } => println!("{} {}", event.kind, event.path.lossy()),
//!         Received::Refused(header) => println!("no session: {}", header.err),
//!     }
//! }
//! assert_eq!(traffic.pending().count(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::collections::VecDeque;

use bytes::Bytes;

use crate::{
    data::{Xid, Zxid},
    dispatch,
    frame::{ReplyHeader, RequestHeader},
    jute::{Decode, DecodeError, Fixed as _, Reader, decode_prefix},
    op::OpCode,
    request::{AnyRequest, ConnectRequest, ConnectResponse, MultiHeader, Request, WatcherEvent},
    text::Str,
};

/// Most requests without a reply that are remembered: clients have far fewer in flight.
const PENDING_MAX: usize = 64 << 10;

/// Most bytes of them.
const PENDING_LEN_MAX: usize = 64 << 20;

/// Both directions of one connection.
///
/// Requests are remembered until they are answered, the latest 65 536 of them and 64 MiB at most; of an older one the
/// reply comes without its request.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    is_client_greeted: bool,
    is_server_greeted: bool,
    pending: VecDeque<SentRequest>,
    /// Bytes of their bodies.
    pending_len: usize,
}

/// A frame of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent<'a> {
    /// The first one.
    Connect(ConnectRequest<'a>),
    /// Any other, pings and credentials included.
    Request(SentRequest),
}

/// A request as it was sent. Its body is decoded on demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentRequest {
    /// Number and operation.
    pub header: RequestHeader,
    /// The bytes after the header.
    pub body: Bytes,
}

/// A frame of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The first one.
    Connect(ConnectResponse),
    /// In place of the first one: a server without a quorum serves no client that does not ask for that.
    Refused(ReplyHeader),
    /// A watch has fired.
    Event {
        /// The transaction, if the server tells.
        zxid: Zxid,
        /// What has happened, and where.
        event: WatcherEvent,
    },
    /// The reply to a request, pings and credentials included.
    Reply(Reply),
}

/// A reply with its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Number, transaction and error.
    pub header: ReplyHeader,
    /// The request; `None` if none of that number is pending.
    pub request: Option<SentRequest>,
    /// How many pending requests were sent before that one. Servers answer in order, except credentials
    /// and operations that they do not know or, without a quorum, do not carry out.
    pub overtaken: usize,
    /// The bytes after the header.
    pub body: Bytes,
}

impl Traffic {
    /// Takes the next frame of the client, without its length prefix.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no handshake, or too short for a header.
    pub fn sent<'a>(&mut self, frame: &'a Bytes) -> Result<Sent<'a>, DecodeError> {
        let mut reader = Reader::new(frame);
        if !core::mem::replace(&mut self.is_client_greeted, true) {
            return ConnectRequest::decode(&mut reader).map(Sent::Connect);
        }
        let header = RequestHeader::decode(&mut reader)?;
        let request = SentRequest { header, body: frame.slice(reader.offset()..) };
        self.pending_len = self.pending_len.saturating_add(request.body.len());
        self.pending.push_back(request.clone());
        while self.pending.len() > PENDING_MAX || self.pending_len > PENDING_LEN_MAX {
            self.forget(0);
        }
        Ok(Sent::Request(request))
    }

    /// Takes the next frame of the server, without its length prefix.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no answer to a handshake, too short for a header, or a malformed event.
    pub fn received(&mut self, frame: &Bytes) -> Result<Received, DecodeError> {
        if !self.is_server_greeted && frame.len() == ReplyHeader::LEN {
            return decode_prefix(frame).map(Received::Refused);
        }
        if !core::mem::replace(&mut self.is_server_greeted, true) {
            return decode_prefix(frame).map(Received::Connect);
        }
        let mut reader = Reader::new(frame);
        let header = ReplyHeader::decode(&mut reader)?;
        if header.xid == Xid::NOTIFICATION {
            let event = WatcherEvent::decode(&mut reader)?;
            return Ok(Received::Event { zxid: header.zxid, event });
        }
        let at = self.pending.iter().position(|request| request.reply_xid() == header.xid);
        let before = self.pending.iter().take(at.unwrap_or_default());
        let overtaken = before.filter(|request| request.header.op != OpCode::AUTH).count();
        let request = at.and_then(|at| self.forget(at));
        Ok(Received::Reply(Reply {
            header,
            request,
            overtaken,
            body: frame.slice(reader.offset()..),
        }))
    }

    /// Forgets the last request: it does not reach the server.
    pub fn unsend(&mut self) {
        self.forget(self.pending.len().saturating_sub(1));
    }

    /// The requests without a reply, in the order of sending.
    pub fn pending(&self) -> impl Iterator<Item = &SentRequest> {
        self.pending.iter()
    }

    fn forget(&mut self, at: usize) -> Option<SentRequest> {
        let request = self.pending.remove(at)?;
        self.pending_len = self.pending_len.saturating_sub(request.body.len());
        Some(request)
    }
}

impl SentRequest {
    /// Decodes the body.
    ///
    /// # Errors
    /// As of [`AnyRequest::decode`].
    pub fn decode(&self) -> Result<AnyRequest<'_>, DecodeError> {
        AnyRequest::decode(self.header.op, &mut Reader::new(&self.body))
    }

    /// The path of the node concerned; of a multi, that of its first operation.
    #[must_use]
    pub fn path(&self) -> Option<Str<'_>> {
        let mut reader = Reader::new(&self.body);
        match self.header.op {
            OpCode::MULTI | OpCode::MULTI_READ => {
                let first = MultiHeader::decode(&mut reader).ok()?;
                (!first.done).then(|| Str::decode(&mut reader).ok())?
            }
            op => op.begins_with_path().then(|| Str::decode(&mut reader).ok())?,
        }
    }

    /// The number of the reply: pings are answered under one of their own, whatever number they have.
    const fn reply_xid(&self) -> Xid {
        match self.header.op {
            OpCode::PING => Xid::PING,
            _ => self.header.xid,
        }
    }
}

impl Reply {
    /// The operation, if it is known.
    #[must_use]
    pub fn op(&self) -> Option<OpCode> {
        match (&self.request, self.header.xid) {
            (Some(request), _) => Some(request.header.op),
            (None, Xid::PING) => Some(OpCode::PING),
            (None, Xid::AUTH) => Some(OpCode::AUTH),
            (None, _) => None,
        }
    }

    /// Checks that the body is a response to the request and nothing else, if the request is known and has succeeded.
    ///
    /// # Errors
    /// [`DecodeError`] if it is not.
    pub fn check(&self) -> Result<(), DecodeError> {
        let reader = &mut Reader::new(&self.body);
        match self.op().filter(|_| self.header.err.is_ok()) {
            None => Ok(()),
            Some(op) => dispatch!(op, R => <R<'_> as Request>::Response::skip(reader))
                .map_or(Ok(()), |skipped| skipped.and_then(|()| reader.finish())),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use bytes::BytesMut;

    use super::*;
    use crate::{
        code::ErrorCode,
        jute::Encode,
        request::{GetDataRequest, MultiOp, MultiRequest},
    };

    fn frame(records: &[&dyn Fn(&mut BytesMut)]) -> Bytes {
        let mut out = BytesMut::new();
        records.iter().for_each(|encode| encode(&mut out));
        out.freeze()
    }

    fn reply(xid: Xid) -> Bytes {
        frame(&[&|out| ReplyHeader { xid, zxid: Zxid(1), err: ErrorCode::OK }.encode(out)])
    }

    /// Behind the handshake, with these requests sent.
    fn after(requests: &[(OpCode, Xid, usize)]) -> Traffic {
        let mut traffic =
            Traffic { is_client_greeted: true, is_server_greeted: true, ..Traffic::default() };
        for &(op, xid, len) in requests {
            let body = vec![0; len];
            let request = frame(&[&|out| RequestHeader { xid, op }.encode(out), &|out| {
                out.extend_from_slice(&body)
            }]);
            traffic.sent(&request).unwrap();
        }
        traffic
    }

    fn answered(traffic: &mut Traffic, xid: Xid) -> (Option<OpCode>, usize) {
        let Ok(Received::Reply(reply)) = traffic.received(&reply(xid)) else { panic!() };
        (reply.op(), reply.overtaken)
    }

    #[test]
    fn pings_and_auth_stay_out_of_the_order() {
        let requests =
            [(OpCode::AUTH, Xid::AUTH, 0), (OpCode::SYNC, Xid(1), 0), (OpCode::PING, Xid(9), 0)];
        let mut traffic = after(&requests);
        assert_eq!(answered(&mut traffic, Xid::PING), (Some(OpCode::PING), 1));
        assert_eq!(answered(&mut traffic, Xid(1)), (Some(OpCode::SYNC), 0));
        assert_eq!(answered(&mut traffic, Xid(1)), (None, 0));
        assert_eq!(answered(&mut traffic, Xid::AUTH), (Some(OpCode::AUTH), 0));
    }

    /// A proxy may have missed the request.
    #[test]
    fn number_tells_what_is_answered_without_a_request() {
        let mut traffic = after(&[]);
        assert_eq!(answered(&mut traffic, Xid::PING), (Some(OpCode::PING), 0));
        assert_eq!(answered(&mut traffic, Xid::AUTH), (Some(OpCode::AUTH), 0));
        assert_eq!(answered(&mut traffic, Xid(1)), (None, 0));
    }

    #[test]
    fn path_of_several_operations_is_that_of_the_first() {
        let path_of = |op, body: &MultiRequest| {
            let header = RequestHeader { xid: Xid(1), op };
            let request = SentRequest { header, body: frame(&[&|out| body.encode(out)]) };
            request.path().map(|path| path.lossy().into_owned())
        };
        let get = |path| MultiOp::GetData(GetDataRequest { path: Str::from(path), watch: false });
        let all = MultiRequest::from_iter([get("/a"), get("/b")]);
        assert_eq!(path_of(OpCode::MULTI, &all).as_deref(), Some("/a"));
        assert_eq!(path_of(OpCode::MULTI_READ, &all).as_deref(), Some("/a"));
        assert_eq!(path_of(OpCode::MULTI_READ, &MultiRequest::from_iter([])), None);
        assert_eq!(path_of(OpCode::PING, &all), None);
    }

    #[test]
    fn withheld_request_is_not_pending() {
        let mut traffic = after(&[(OpCode::SYNC, Xid(1), 3), (OpCode::DELETE, Xid(1), 4)]);
        traffic.unsend();
        assert_eq!(answered(&mut traffic, Xid(1)), (Some(OpCode::SYNC), 0));
        assert_eq!((traffic.pending().count(), traffic.pending_len), (0, 0));
        traffic.unsend();
    }

    #[test]
    fn what_is_never_answered_is_forgotten() {
        let half = PENDING_LEN_MAX / 2;
        let mut traffic = after(&[
            (OpCode::SYNC, Xid(1), half),
            (OpCode::SYNC, Xid(2), half),
            (OpCode::SYNC, Xid(3), 1),
        ]);
        assert_eq!(traffic.pending_len, half + 1);
        assert_eq!(answered(&mut traffic, Xid(1)), (None, 0));
        assert_eq!(answered(&mut traffic, Xid(2)), (Some(OpCode::SYNC), 0));
    }

    #[test]
    fn bare_header_instead_of_handshake_refuses() {
        let mut traffic = Traffic::default();
        assert!(matches!(traffic.received(&reply(Xid(0))), Ok(Received::Refused(_))));
        assert!(matches!(traffic.received(&reply(Xid(0))), Ok(Received::Refused(_))));
    }
}
