//! From what a line says about its frame to the types that the frame is made of.

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde_json::{Value, json};
use zk_proto::{
    OpCode, Request, dispatch,
    frame::{ReplyHeader, RequestHeader},
    jute::{Decode, DecodeError, Encode, Reader},
    request::{ConnectRequest, ConnectResponse, WatcherEvent},
};

use crate::recording::Direction;

/// What must be known of a frame before it can be decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    ConnectRequest,
    ConnectResponse,
    Notification,
    Request(OpCode),
    /// Header and body.
    Reply(OpCode),
    /// A reply that is an error and ends behind its header, as errors do.
    Refusal,
}

impl Message {
    pub(crate) fn of(line: &Value, direction: Direction, fields: &Value) -> Self {
        let op = || {
            let name = line["opcode"].as_str().expect("the frame names its operation");
            let known = OpCode::KNOWN.iter().find(|op| op.name() == Some(name));
            *known.unwrap_or_else(|| panic!("operation {name} is not known"))
        };
        let is_refusal = fields["record"].is_null() && line["err"] != 0;
        match (line["kind"].as_str(), direction) {
            (Some("connect-request"), Direction::ClientToServer) => Self::ConnectRequest,
            (Some("connect-response"), Direction::ServerToClient) => Self::ConnectResponse,
            (Some("notification"), Direction::ServerToClient) => Self::Notification,
            (Some("request" | "ping"), Direction::ClientToServer) => Self::Request(op()),
            (Some("reply"), Direction::ServerToClient) if is_refusal => Self::Refusal,
            (Some("reply" | "ping"), Direction::ServerToClient) => Self::Reply(op()),
            (kind, _) => panic!("kind {kind:?} does not go this way"),
        }
    }

    /// Whether the last byte is a flag that old clients and servers leave out.
    pub(crate) const fn may_lack_its_last_byte(self) -> bool {
        matches!(self, Self::ConnectRequest | Self::ConnectResponse)
    }

    /// Decodes `content`, a frame without its length prefix, and says what is in it.
    pub(crate) fn describe(self, content: &Bytes) -> Result<Description, DecodeError> {
        self.visit(Describe(content))
    }

    /// Decodes `content` and encodes the result.
    pub(crate) fn reencode(self, content: &Bytes) -> Result<Bytes, DecodeError> {
        self.visit(Reencode(content))
    }

    fn visit<'a, V: Visit<'a>>(self, visitor: V) -> V::Output {
        match self {
            Self::ConnectRequest => visitor.visit::<(), ConnectRequest<'a>>(),
            Self::ConnectResponse => visitor.visit::<(), ConnectResponse>(),
            Self::Notification => visitor.visit::<ReplyHeader, WatcherEvent>(),
            Self::Refusal => visitor.visit::<ReplyHeader, ()>(),
            Self::Request(op) => dispatch!(op, R => visitor.visit::<RequestHeader, R<'_>>())
                .expect("operation has a request"),
            Self::Reply(op) => {
                dispatch!(op, R => visitor.visit::<ReplyHeader, <R<'_> as Request>::Response>())
                    .expect("operation has a request")
            }
        }
    }
}

/// A frame's content as the files write it, and encoded anew.
pub(crate) struct Description {
    pub(crate) fields: Value,
    pub(crate) content: Content,
}

/// Bytes that encode as themselves.
pub(crate) struct Content(Bytes);

impl Encode for Content {
    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.0);
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }
}

/// What the records of a frame can do.
trait Record<'a>: Decode<'a> + Encode + Debug + PartialEq + Serialize {}
impl<'a, T: Decode<'a> + Encode + Debug + PartialEq + Serialize> Record<'a> for T {}

/// Receives the types of header and body; either may be `()`.
trait Visit<'a> {
    type Output;
    fn visit<H: Record<'a>, B: Record<'a>>(self) -> Self::Output;
}

struct Describe<'a>(&'a Bytes);

impl<'a> Visit<'a> for Describe<'a> {
    type Output = Result<Description, DecodeError>;
    fn visit<H: Record<'a>, B: Record<'a>>(self) -> Self::Output {
        let (header, body) = decode::<H, B>(self.0)?;
        let _ = format!("{header:?} {body:#?}");
        Ok(Description {
            fields: json!({"header": header, "record": record_name::<B>(), "body": body}),
            content: Content(encode(&header, &body)),
        })
    }
}

struct Reencode<'a>(&'a Bytes);

impl<'a> Visit<'a> for Reencode<'a> {
    type Output = Result<Bytes, DecodeError>;
    fn visit<H: Record<'a>, B: Record<'a>>(self) -> Self::Output {
        let (header, body) = decode::<H, B>(self.0)?;
        Ok(encode(&header, &body))
    }
}

pub(crate) fn decode<'a, H: Decode<'a>, B: Decode<'a>>(
    content: &'a Bytes,
) -> Result<(H, B), DecodeError> {
    let mut reader = Reader::new(content);
    let decoded = (H::decode(&mut reader)?, B::decode(&mut reader)?);
    reader.finish()?;
    Ok(decoded)
}

pub(crate) fn encode(header: &impl Encode, body: &impl Encode) -> Bytes {
    let mut out = BytesMut::new();
    header.encode(&mut out);
    body.encode(&mut out);
    out.freeze()
}

/// The protocol's name of a record, from the name of its type.
fn record_name<B>() -> Option<String> {
    let path = std::any::type_name::<B>();
    let path = path.split('<').next().unwrap_or(path);
    let name = path.rsplit("::").next().unwrap_or(path);
    Some(match name {
        "()" | "Ping" | "CloseSession" | "WhoAmIRequest" => return None,
        "Create2Request" | "CreateContainerRequest" => "CreateRequest".to_owned(),
        "DeleteContainerRequest" => "DeleteRequest".to_owned(),
        "MultiRequest" | "MultiReadRequest" | "MultiResponse" => "Multi".to_owned(),
        name => ["Acl", "Sasl", "Ttl"].iter().fold(name.to_owned(), |name, abbreviation| {
            name.replace(abbreviation, &abbreviation.to_uppercase())
        }),
    })
}
