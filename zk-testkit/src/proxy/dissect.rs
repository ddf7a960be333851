//! From bytes to frames, and from frames to what they are about.

use bytes::{Buf, Bytes, BytesMut};
use zk_proto::frame::{LEN_PREFIX, LEN_REPLY_MAX, ReplyHeader, RequestHeader};
use zk_proto::traffic::{Received, Sent, SentRequest, Traffic};
use zk_proto::{ErrorCode, EventType, OpCode, SessionId, Str, Xid, Zxid};

use super::frame::{Direction, Kind};

/// One connection's two streams, cut into pieces.
#[derive(Debug)]
pub(super) struct Dissector {
    request_len_max: usize,
    to_server: Stage,
    to_client: Stage,
    traffic: Traffic,
}

/// What a stream is made of.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Nothing seen yet: a handshake follows, or something else altogether.
    Fresh,
    /// Frames.
    Session,
    /// Not this protocol.
    Opaque,
}

/// A frame with its length prefix, or bytes that are none, and what they are about.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    /// Whether there is a length prefix, as there is in front of a frame that nobody can read, too.
    pub(super) is_frame: bool,
    pub(super) facts: Facts,
}

impl Piece {
    /// The frame without its length prefix.
    pub(super) fn payload(&self) -> Bytes {
        if self.is_frame { self.bytes.slice(LEN_PREFIX..) } else { self.bytes.clone() }
    }
}

/// What a frame is about.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) kind: Kind,
    pub(super) op: Option<OpCode>,
    pub(super) xid: Option<Xid>,
    pub(super) zxid: Option<Zxid>,
    pub(super) error: Option<ErrorCode>,
    pub(super) event: Option<EventType>,
    pub(super) path: Option<String>,
    pub(super) session: Option<SessionId>,
}

impl Facts {
    fn of(kind: Kind) -> Self {
        Self {
            kind,
            op: None,
            xid: None,
            zxid: None,
            error: None,
            event: None,
            path: None,
            session: None,
        }
    }
}

impl Dissector {
    pub(super) fn new(request_len_max: usize) -> Self {
        let (to_server, to_client) = (Stage::Fresh, Stage::Fresh);
        Self { request_len_max, to_server, to_client, traffic: Traffic::default() }
    }

    const fn len_max(&self, direction: Direction) -> usize {
        match direction {
            Direction::ToServer => self.request_len_max,
            Direction::ToClient => LEN_REPLY_MAX,
        }
    }

    /// Takes the next whole piece off `buffer`; `None` if more bytes are needed.
    pub(super) fn next(&mut self, direction: Direction, buffer: &mut BytesMut) -> Option<Piece> {
        let bytes = match self.stage(direction) {
            Stage::Fresh if direction == Direction::ToServer && is_word(buffer) => {
                // The answer is text too, whatever its first four letters would mean as a length.
                self.to_server = Stage::Opaque;
                self.to_client = Stage::Opaque;
                let bytes = buffer.split().freeze();
                let facts = Facts::of(Kind::FourLetterWord);
                return Some(Piece { bytes, is_frame: false, facts });
            }
            Stage::Fresh | Stage::Session => {
                match split_whole_frame(buffer, self.len_max(direction)) {
                    Split::More => return None,
                    Split::Frame(bytes) => bytes,
                    Split::NotAFrame => {
                        *self.stage(direction) = Stage::Opaque;
                        return self.next(direction, buffer);
                    }
                }
            }
            Stage::Opaque if buffer.is_empty() => return None,
            Stage::Opaque => {
                let bytes = buffer.split().freeze();
                let facts = Facts::of(Kind::Opaque);
                return Some(Piece { bytes, is_frame: false, facts });
            }
        };
        *self.stage(direction) = Stage::Session;
        let payload = bytes.slice(LEN_PREFIX..);
        let facts = match direction {
            Direction::ToServer => self.traffic.sent(&payload).map(Facts::from),
            Direction::ToClient => self.traffic.received(&payload).map(Facts::from),
        };
        let facts = facts.unwrap_or_else(|_| Facts::of(Kind::Opaque));
        Some(Piece { bytes, is_frame: true, facts })
    }

    /// To be told of each piece that does not go on.
    pub(super) fn kept_back(&mut self, direction: Direction, facts: &Facts) {
        if direction == Direction::ToServer && facts.xid.is_some() {
            self.traffic.unsend();
        }
    }

    fn stage(&mut self, direction: Direction) -> &mut Stage {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}

impl From<Sent<'_>> for Facts {
    fn from(sent: Sent<'_>) -> Self {
        match sent {
            Sent::Connect(connect) => {
                Self { session: Some(connect.session_id), ..Self::of(Kind::ConnectRequest) }
            }
            Sent::Request(request) => {
                let RequestHeader { xid, op } = request.header;
                let kind = if op == OpCode::PING { Kind::Ping } else { Kind::Request };
                let path = request.path().map(Str::to_owned_lossy);
                Self { xid: Some(xid), op: Some(op), path, ..Self::of(kind) }
            }
        }
    }
}

impl From<Received> for Facts {
    fn from(received: Received) -> Self {
        match received {
            Received::Connect(connect) => {
                Self { session: Some(connect.session_id), ..Self::of(Kind::ConnectResponse) }
            }
            Received::Refused(_) => Self::of(Kind::ConnectResponse),
            Received::Event { zxid, event } => Self {
                op: Some(OpCode::NOTIFICATION),
                xid: Some(Xid::NOTIFICATION),
                zxid: Some(zxid),
                error: Some(ErrorCode::OK),
                event: Some(event.kind),
                path: Some(event.path.lossy().into_owned()),
                ..Self::of(Kind::Notification)
            },
            Received::Reply(reply) => {
                let ReplyHeader { xid, zxid, err } = reply.header;
                let kind = if xid == Xid::PING { Kind::Ping } else { Kind::Reply };
                let request = reply.request.as_ref();
                let path = request.and_then(SentRequest::path).map(Str::to_owned_lossy);
                let (zxid, error) = (Some(zxid), Some(err));
                Self { op: reply.op(), xid: Some(xid), zxid, error, path, ..Self::of(kind) }
            }
        }
    }
}

enum Split {
    More,
    Frame(Bytes),
    NotAFrame,
}

/// As `zk_proto::frame::split_frame`, but keeps the length prefix, which is to be sent on too.
fn split_whole_frame(buffer: &mut BytesMut, len_max: usize) -> Split {
    let Some(mut prefix) = buffer.get(..LEN_PREFIX) else {
        return Split::More;
    };
    match usize::try_from(prefix.get_i32()) {
        Ok(len) if len > len_max => Split::NotAFrame,
        Ok(len) if buffer.len() < LEN_PREFIX + len => {
            // Grow once instead of with each read.
            buffer.reserve(LEN_PREFIX + len - buffer.len());
            Split::More
        }
        Ok(len) => Split::Frame(buffer.split_to(LEN_PREFIX + len).freeze()),
        Err(_) => Split::NotAFrame,
    }
}

/// Four letters would be the length of a frame of more than a gigabyte.
fn is_word(buffer: &[u8]) -> bool {
    buffer.get(..LEN_PREFIX).is_some_and(|start| start.iter().all(u8::is_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use bytes::BufMut as _;
    use zk_proto::frame::LEN_REQUEST_MAX;

    use super::*;

    #[test]
    fn too_long_a_request_is_not_waited_for() {
        let next = |direction, len: usize| {
            let mut buffer = BytesMut::new();
            buffer.put_u32(u32::try_from(len).unwrap());
            Dissector::new(LEN_REQUEST_MAX).next(direction, &mut buffer).map(|piece| piece.bytes)
        };
        assert_eq!(next(Direction::ToServer, LEN_REQUEST_MAX), None);
        let refused = next(Direction::ToServer, LEN_REQUEST_MAX + 1);
        assert_eq!(refused.as_deref(), Some(&[0, 0x10, 0, 0][..]));
        assert_eq!(next(Direction::ToClient, LEN_REQUEST_MAX + 1), None);
    }
}
