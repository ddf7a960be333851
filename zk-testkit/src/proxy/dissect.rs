//! From bytes to frames, and from frames to what they are about.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes, BytesMut};
use zk_proto::frame::{LEN_PREFIX, LEN_REPLY_MAX, ReplyHeader, RequestHeader};
use zk_proto::jute::{Decode, DecodeError, Reader};
use zk_proto::request::{ConnectRequest, ConnectResponse, MultiHeader, WatcherEvent};
use zk_proto::{ErrorCode, EventType, OpCode, SessionId, Str, Xid, Zxid};

use super::frame::{Direction, Kind};

/// One connection's two streams, cut into pieces.
#[derive(Debug, Default)]
pub(super) struct Dissector {
    to_server: Stage,
    to_client: Stage,
    /// What was asked under each number and has not been answered. Numbers are used in order and
    /// not again while in use, but a client under test may do otherwise.
    asked: BTreeMap<Xid, VecDeque<Asked>>,
}

#[derive(Debug)]
struct Asked {
    op: OpCode,
    path: Option<String>,
}

/// How far a stream has come.
#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    /// Nothing seen yet: a connect request or response follows, or something else altogether.
    #[default]
    Fresh,
    /// Behind the handshake.
    Session,
    /// Not this protocol.
    Opaque,
}

/// A frame with its length prefix, or opaque bytes, and what they are about.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    pub(super) facts: Facts,
}

impl Piece {
    /// The frame without its length prefix.
    pub(super) fn payload(&self) -> Bytes {
        match self.facts.kind {
            Kind::Opaque | Kind::FourLetterWord => self.bytes.clone(),
            _ => self.bytes.slice(LEN_PREFIX..),
        }
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
    /// Takes the next whole piece off `buffer`; `None` if more bytes are needed.
    pub(super) fn next(&mut self, direction: Direction, buffer: &mut BytesMut) -> Option<Piece> {
        let bytes = match self.stage(direction) {
            Stage::Fresh if direction == Direction::ToServer && is_word(buffer) => {
                // The answer is text too, whatever its first four letters would mean as a length.
                self.to_server = Stage::Opaque;
                self.to_client = Stage::Opaque;
                let bytes = buffer.split().freeze();
                let facts = Facts::of(Kind::FourLetterWord);
                return Some(Piece { bytes, facts });
            }
            Stage::Fresh | Stage::Session => match split_whole_frame(buffer) {
                Split::More => return None,
                Split::Frame(bytes) => bytes,
                Split::NotAFrame => {
                    *self.stage(direction) = Stage::Opaque;
                    return self.next(direction, buffer);
                }
            },
            Stage::Opaque if buffer.is_empty() => return None,
            Stage::Opaque => {
                let bytes = buffer.split().freeze();
                let facts = Facts::of(Kind::Opaque);
                return Some(Piece { bytes, facts });
            }
        };
        let payload = bytes.slice(LEN_PREFIX..);
        let facts = match (*self.stage(direction), direction) {
            (Stage::Fresh, Direction::ToServer) => connect_request(&payload),
            (Stage::Fresh, Direction::ToClient) => connect_response(&payload),
            (_, Direction::ToServer) => request(&payload),
            (_, Direction::ToClient) => self.answer(&payload),
        };
        *self.stage(direction) = Stage::Session;
        Some(Piece { bytes, facts })
    }

    /// To be told of each request that really goes to the server.
    pub(super) fn asked(&mut self, request: &Facts) {
        if let (Kind::Request, Some(xid), Some(op)) = (request.kind, request.xid, request.op) {
            let path = request.path.clone();
            let asked = Asked { op, path };
            self.asked.entry(xid).or_default().push_back(asked);
        }
    }

    fn stage(&mut self, direction: Direction) -> &mut Stage {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }

    fn answer(&mut self, payload: &Bytes) -> Facts {
        let mut reader = Reader::new(payload);
        let Ok(header) = ReplyHeader::decode(&mut reader) else {
            return Facts::of(Kind::Opaque);
        };
        let mut facts = Facts {
            xid: Some(header.xid),
            zxid: Some(header.zxid),
            error: Some(header.err),
            ..Facts::of(Kind::Reply)
        };
        match header.xid {
            Xid::NOTIFICATION => {
                facts.kind = Kind::Notification;
                facts.op = Some(OpCode::NOTIFICATION);
                if let Ok(event) = WatcherEvent::decode(&mut reader) {
                    facts.event = Some(event.kind);
                    facts.path = Some(event.path.lossy().into_owned());
                }
            }
            Xid::PING => {
                facts.kind = Kind::Ping;
                facts.op = Some(OpCode::PING);
            }
            xid => {
                if let Some(Asked { op, path }) = self.answered(xid) {
                    facts.op = Some(op);
                    facts.path = path;
                }
            }
        }
        facts
    }

    fn answered(&mut self, xid: Xid) -> Option<Asked> {
        let asked = self.asked.get_mut(&xid)?;
        let oldest = asked.pop_front();
        if asked.is_empty() {
            self.asked.remove(&xid);
        }
        oldest
    }
}

enum Split {
    More,
    Frame(Bytes),
    NotAFrame,
}

/// As `zk_proto::frame::split_frame`, but keeps the length prefix, which is to be sent on too.
fn split_whole_frame(buffer: &mut BytesMut) -> Split {
    let Some(mut prefix) = buffer.get(..LEN_PREFIX) else {
        return Split::More;
    };
    match usize::try_from(prefix.get_i32()) {
        Ok(len) if len > LEN_REPLY_MAX => Split::NotAFrame,
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

fn connect_request(payload: &Bytes) -> Facts {
    let session = ConnectRequest::decode(&mut Reader::new(payload)).map(|c| c.session_id);
    Facts { session: session.ok(), ..Facts::of(Kind::ConnectRequest) }
}

fn connect_response(payload: &Bytes) -> Facts {
    let session = ConnectResponse::decode(&mut Reader::new(payload)).map(|c| c.session_id);
    Facts { session: session.ok(), ..Facts::of(Kind::ConnectResponse) }
}

fn request(payload: &Bytes) -> Facts {
    let mut reader = Reader::new(payload);
    let Ok(RequestHeader { xid, op }) = RequestHeader::decode(&mut reader) else {
        return Facts::of(Kind::Opaque);
    };
    let kind = match op {
        OpCode::PING => Kind::Ping,
        _ => Kind::Request,
    };
    Facts {
        op: Some(op),
        xid: Some(xid),
        path: path(op, &mut reader).ok().flatten(),
        ..Facts::of(kind)
    }
}

/// The path that a request's body begins with, if its operation is of that sort.
fn path(op: OpCode, body: &mut Reader<'_>) -> Result<Option<String>, DecodeError> {
    match op {
        OpCode::PING
        | OpCode::AUTH
        | OpCode::SASL
        | OpCode::SET_WATCHES
        | OpCode::SET_WATCHES2
        | OpCode::RECONFIG
        | OpCode::WHO_AM_I
        | OpCode::CLOSE_SESSION => return Ok(None),
        OpCode::MULTI | OpCode::MULTI_READ if MultiHeader::decode(body)?.done => return Ok(None),
        _ => {}
    }
    Ok(Some(Str::decode(body)?.lossy().into_owned()))
}
