//! What to make of an answer.

use std::sync::Arc;

use bytes::Bytes;
use zk_proto::{
    ErrorCode, OpCode,
    jute::{Decode, DecodeError, decode_prefix},
    session::Answer,
};

use crate::{
    carry::level::Level,
    chroot::Chroot,
    request::{
        asked::{Asked, Mismatch},
        watch_stream::Attached,
    },
};

/// Makes a typed result of an answer.
pub(crate) type ReadAnswer<T> = fn(Answer, ReplyContext) -> Result<T, Unread>;

/// What is known about a request when its answer comes.
#[derive(Debug)]
pub(crate) struct ReplyContext {
    pub(crate) op: OpCode,
    pub(crate) chroot: Chroot,
    /// Of requests that tell something of the servers.
    pub(crate) level: Option<Arc<Level>>,
    pub(crate) watch: Attached,
    /// Whether there is something else to ask for.
    pub(crate) has_alternative: bool,
    pub(crate) asked: Asked,
}

impl ReplyContext {
    /// Notes what the answer tells of the servers.
    pub(crate) fn learn(&self, note: impl FnOnce(&Level)) {
        if let Some(level) = &self.level {
            note(level);
        }
    }
}

/// An answer that gives no result.
pub(crate) enum Unread {
    Code(ErrorCode),
    Decode(DecodeError),
    /// It is the answer to something else.
    Mismatch(&'static str),
    /// The server does not know what it was asked for, and has certainly not done it. There is an older way to ask.
    Again(ReplyContext),
}

impl From<Mismatch> for Unread {
    fn from(Mismatch(what): Mismatch) -> Self {
        Self::Mismatch(what)
    }
}

impl From<DecodeError> for Unread {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

/// Decodes the body of an answer without error.
pub(crate) fn body<'a, T: Decode<'a>>(answer: &'a Answer) -> Result<T, Unread> {
    if answer.code.is_ok() {
        decode_prefix(&answer.body).map_err(Unread::Decode)
    } else {
        Err(Unread::Code(answer.code))
    }
}

/// Data up to this long is copied out of the buffer that it was read into, which it would otherwise keep
/// from being reused.
const COPY_LEN_MAX: usize = 4 << 10;

/// A part of an answer's body, as something that does not keep more memory than it needs.
pub(crate) fn detached(body: &Bytes, part: &[u8]) -> Bytes {
    if part.len() <= COPY_LEN_MAX { Bytes::copy_from_slice(part) } else { body.slice_ref(part) }
}
