//! Frames in what passes by, for whoever looks on.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode, OpCode, Xid, Zxid,
    frame::{LEN_REPLY_MAX, ReplyHeader, RequestHeader, split_frame},
    jute::{Decode as _, Reader, decode_prefix},
    request::ConnectResponse,
};

/// What a client sends.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Sent {
    /// The handshake.
    Connect(Bytes),
    /// Anything else.
    Request {
        /// Its number.
        xid: Xid,
        /// What is asked for.
        op: OpCode,
        /// The arguments.
        body: Bytes,
    },
}

/// What comes to a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Received {
    /// The answer to the handshake.
    Greeting(ConnectResponse),
    /// An event.
    Event {
        /// The transaction, if the server tells.
        zxid: Zxid,
        /// The event's record.
        body: Bytes,
    },
    /// An answer.
    Reply {
        /// Number of the request.
        xid: Xid,
        /// What was asked for, if it was the oldest request under way.
        op: Option<OpCode>,
        /// The state that is answered from.
        zxid: Zxid,
        /// Whether it went well.
        err: ErrorCode,
        /// What follows the header.
        body: Bytes,
    },
}

/// Splits one way of a connection into frames.
#[derive(Debug, Default)]
struct Splitter {
    buffer: BytesMut,
    frames: u64,
    /// Whether it is no frames that pass, or not any more.
    opaque: bool,
}

impl Splitter {
    fn next(&mut self) -> Option<(bool, Bytes)> {
        if self.opaque {
            self.buffer.clear();
            return None;
        }
        match split_frame(&mut self.buffer, LEN_REPLY_MAX) {
            Ok(frame) => {
                let frame = frame?;
                self.frames += 1;
                Some((self.frames == 1, frame))
            }
            Err(_) => {
                self.opaque = true;
                None
            }
        }
    }
}

/// Both ways of a connection.
#[derive(Debug, Default)]
pub(super) struct Tap {
    up: Splitter,
    down: Splitter,
    asked: VecDeque<(Xid, OpCode)>,
}

impl Tap {
    /// The client has sent these bytes.
    pub(super) fn up(&mut self, bytes: &[u8]) {
        if self.up.frames == 0 && self.up.buffer.is_empty() && bytes.starts_with(b"isro") {
            self.up.opaque = true;
            self.down.opaque = true;
        }
        self.up.buffer.extend_from_slice(bytes);
    }

    pub(super) fn next_sent(&mut self) -> Option<Sent> {
        let (is_first, frame) = self.up.next()?;
        if is_first {
            return Some(Sent::Connect(frame));
        }
        let mut reader = Reader::new(&frame);
        let Ok(RequestHeader { xid, op }) = RequestHeader::decode(&mut reader) else {
            self.up.opaque = true;
            return None;
        };
        if xid.0 > 0 {
            self.asked.push_back((xid, op));
        }
        let body = frame.slice(frame.len() - reader.left()..);
        Some(Sent::Request { xid, op, body })
    }

    /// These bytes have come to the client.
    pub(super) fn down(&mut self, bytes: &[u8]) {
        self.down.buffer.extend_from_slice(bytes);
    }

    pub(super) fn next_received(&mut self) -> Option<Received> {
        let (is_first, frame) = self.down.next()?;
        let received = if is_first {
            decode_prefix(&frame).ok().map(Received::Greeting)
        } else {
            self.reply(&frame)
        };
        if received.is_none() {
            self.down.opaque = true;
        }
        received
    }

    fn reply(&mut self, frame: &Bytes) -> Option<Received> {
        let mut reader = Reader::new(frame);
        let ReplyHeader { xid, zxid, err } = ReplyHeader::decode(&mut reader).ok()?;
        let body = frame.slice(frame.len() - reader.left()..);
        if xid == Xid::NOTIFICATION {
            return Some(Received::Event { zxid, body });
        }
        let is_oldest = self.asked.front().is_some_and(|(asked, _)| *asked == xid);
        let op = if is_oldest { self.asked.pop_front().map(|(_, op)| op) } else { None };
        Some(Received::Reply { xid, op, zxid, err, body })
    }
}

/// The bytes in front of the last frame, and that.
pub(super) fn last_frame(bytes: &Bytes) -> (Bytes, Option<Bytes>) {
    let mut at = 0;
    loop {
        let prefix = bytes.get(at..at + 4).and_then(|prefix| <[u8; 4]>::try_from(prefix).ok());
        let Some(prefix) = prefix else { return (bytes.clone(), None) };
        let len = prefix.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
        let next = at + 4 + len;
        if next >= bytes.len() {
            return (bytes.slice(..at), (next == bytes.len()).then(|| bytes.slice(at..)));
        }
        at = next;
    }
}
