//! What a frame means, without what must differ between two servers: times, and numbers that servers
//! give.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use zk_proto::{
    OpCode, Request, Xid, dispatch,
    frame::{ReplyHeader, RequestHeader},
    jute::{Decode, Reader, decode_prefix},
    request::{AnyRequest, ConnectResponse, WatcherEvent},
    strategy::{Frame, FrameKind},
};

/// Fields that say when, or in which transaction; what they say is not compared, but whether it is 0.
const NUMBERS: [&str; 6] = ["czxid", "mzxid", "ctime", "mtime", "ephemeralOwner", "sessionId"];

/// Fields that remember, in the root, children of earlier plays. Not compared at all.
const MEMORIES: [&str; 2] = ["pzxid", "cversion"];

/// The answer to a handshake.
pub(crate) fn welcome(frame: &Bytes) -> String {
    match decode_prefix::<ConnectResponse>(frame) {
        Ok(answer) => {
            let (time, id) = (answer.time_out > 0, answer.session_id.0 != 0);
            let password = answer.passwd.0.map(|password| password.len());
            let flag = answer.read_only.0;
            format!("welcome: timeout {time}, session {id}, password {password:?}, flag {flag:?}")
        }
        Err(error) => format!("no welcome: {error}"),
    }
}

/// Any other frame, if it answers a request for `op`.
pub(crate) fn answer(op: OpCode, frame: &Bytes) -> String {
    let mut reader = Reader::new(frame);
    let header = match ReplyHeader::decode(&mut reader) {
        Ok(header) => header,
        Err(error) => return format!("no reply: {error}"),
    };
    let body = frame.slice(reader.offset()..);
    if header.xid == Xid::NOTIFICATION {
        return match decode_prefix::<WatcherEvent>(&body) {
            Ok(event) => format!("event {}", json(&event)),
            Err(error) => format!("no event: {error}"),
        };
    }
    let (xid, zxid, err) = (header.xid, header.zxid.0.signum(), header.err);
    let body = match err.is_ok() {
        true => dispatch!(op, R => match decode_prefix::<<R<'_> as Request>::Response>(&body) {
            Ok(response) => json(&response),
            Err(error) => format!("no answer to {op}: {error}"),
        })
        .unwrap_or_else(|| format!("{body:?}")),
        false => String::new(),
    };
    format!("reply #{xid} zxid {zxid:+} {err} {body}")
}

fn json(record: &impl Serialize) -> String {
    let mut value = serde_json::to_value(record).unwrap_or_default();
    mask(&mut value);
    value.to_string()
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if NUMBERS.contains(&&**name) {
                    *field = Value::Bool(field.as_i64() != Some(0));
                } else if MEMORIES.contains(&&**name) {
                    *field = Value::Null;
                }
                mask(field);
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(mask);
            // Children come in any order.
            items.sort_by_key(ToString::to_string);
        }
        Value::String(text) => {
            let digits = text.len().saturating_sub(10);
            if text.get(digits..).is_some_and(|it| it.len() == 10 && it.parse::<u32>().is_ok()) {
                text.replace_range(digits.., "(number)");
            }
        }
        _ => {}
    }
}

/// What a client says, for the transcript.
pub(crate) fn said(frame: &Frame) -> String {
    let content = frame.content();
    let mut reader = Reader::new(&content);
    match (frame.kind, RequestHeader::decode(&mut reader)) {
        (FrameKind::Request(_), Ok(RequestHeader { xid, op })) => {
            let request = match AnyRequest::decode(op, &mut reader) {
                Ok(request) => serde_json::to_string(&request).unwrap_or_default(),
                Err(error) => error.to_string(),
            };
            format!("#{xid} {op} {request}")
        }
        (kind, _) => format!("{kind:?}"),
    }
}
