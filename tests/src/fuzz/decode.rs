//! Records: whatever decodes can be looked at, and is the same again when encoded and decoded.

use std::{
    cell::OnceCell,
    fmt::Debug,
    io::{Write as _, sink},
};

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use zk_proto::{
    OpCode, Request, dispatch,
    frame::{ReplyHeader, RequestHeader},
    jute::{Decode, Encode, Reader, decode_exact},
    request::{ConnectRequest, ConnectResponse, WatcherEvent},
};

use super::{connect, parts};

/// The first byte of an input that is a frame of the handshake; any other stands for an operation.
const HANDSHAKE: u8 = 0;

/// The first byte of an input to `reply_decode` and `request_decode` whose rest is a frame of `op`, or
/// of the handshake. Watch events are the operation [`OpCode::NOTIFICATION`].
#[must_use]
pub fn choice_of(op: Option<OpCode>) -> u8 {
    let at = OpCode::KNOWN.iter().position(|&known| Some(known) == op);
    at.map_or(HANDSHAKE, |at| u8::try_from(at + 1).expect("there are few operations"))
}

fn op_of(choice: u8) -> Option<OpCode> {
    let at = usize::from(choice).checked_sub(1)?;
    OpCode::KNOWN.get(at % OpCode::KNOWN.len()).copied()
}

/// A frame of a server: a byte that says of which kind, and what is behind the length prefix.
pub(super) fn reply_decode(input: &[u8]) {
    with_frame(input, |op, frame| match op {
        None => {
            frame.check::<(), ConnectResponse>();
            connect::greeted(frame.content);
        }
        Some(OpCode::NOTIFICATION) => frame.check::<ReplyHeader, WatcherEvent>(),
        Some(op) => {
            dispatch!(op, R => frame.check::<ReplyHeader, <R<'_> as Request>::Response>());
            parts::of_reply(op, &frame.behind::<ReplyHeader>());
        }
    });
}

/// A frame of a client: a byte that says of which kind, and what is behind the length prefix.
pub(super) fn request_decode(input: &[u8]) {
    with_frame(input, |op, frame| match op {
        None => frame.check::<(), ConnectRequest<'_>>(),
        Some(op) => {
            dispatch!(op, R => frame.check::<RequestHeader, R<'_>>());
            parts::of_request(op, &frame.behind::<RequestHeader>());
        }
    });
}

fn with_frame(input: &[u8], test: impl FnOnce(Option<OpCode>, Frame<'_>)) {
    let Some((&choice, content)) = input.split_first() else {
        return;
    };
    let content = Bytes::copy_from_slice(content);
    test(op_of(choice), Frame { content: &content, again: &OnceCell::new() });
}

/// The bytes behind a length prefix.
#[derive(Clone, Copy)]
struct Frame<'a> {
    content: &'a Bytes,
    /// Room for what comes of encoding what has been decoded.
    again: &'a OnceCell<Bytes>,
}

impl<'a> Frame<'a> {
    /// What is behind a header; nothing if there is none.
    fn behind<H: Decode<'a>>(self) -> Bytes {
        let mut reader = Reader::new(self.content);
        let header = H::decode(&mut reader);
        header.map_or_else(|_| Bytes::new(), |_| self.content.slice(reader.offset()..))
    }

    /// Takes the frame for a header, which may be `()`, and a body.
    fn check<H: Decode<'a>, B>(self)
    where
        B: Decode<'a> + Encode + Debug + PartialEq + Serialize,
    {
        let mut reader = Reader::new(self.content);
        if H::decode(&mut reader).is_err() {
            return;
        }
        let mut skipper = reader.clone();
        let body = B::decode(&mut reader);
        let skipped = B::skip(&mut skipper);
        match body {
            Ok(body) => {
                assert_eq!(skipped, Ok(()));
                assert_eq!(skipper.offset(), reader.offset());
                // Never shown, and so without taking memory for it.
                write!(sink(), "{body:?}").expect("a sink takes everything");
                serde_json::to_writer(sink(), &body).expect("what decodes can be shown");
                let encoded = self.again.get_or_init(|| encode(&body));
                assert_eq!(decode_exact::<B>(encoded), Ok(body));
            }
            Err(error) => {
                assert_eq!(skipped, Err(error));
                assert!(error.offset <= self.content.len(), "{error}");
            }
        }
    }
}

pub(super) fn encode(record: &impl Encode) -> Bytes {
    let mut out = BytesMut::new();
    record.encode(&mut out);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_choice_of_its_own() {
        for &op in OpCode::KNOWN {
            assert_eq!(op_of(choice_of(Some(op))), Some(op));
        }
        assert_eq!(op_of(choice_of(None)), None);
    }
}
