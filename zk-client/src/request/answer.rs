//! Interprets replies.

use std::sync::Arc;

use bytes::Bytes;
use zk_proto::{
    ErrorCode, OpCode,
    frame::RequestFrame,
    jute::{Decode, DecodeError, decode_prefix},
    session::{Answer, OnLoss},
};

use crate::{
    carry::capabilities::Capabilities,
    chroot::Chroot,
    error::{CallError, Cause},
    request::{
        asked::{Asked, Mismatch},
        call_options::CallOptions,
        handle::Handle,
        watch_stream::Attached,
    },
};

/// How a reply is turned into a typed result. The context is there once the request has been submitted.
pub(crate) enum ReadAnswer<T, C = ()> {
    /// Most replies say all there is to know.
    Alone(fn(&Answer) -> Result<T, Unread>),
    /// Others say it only together with what was asked for.
    InContext(ReadInContext<T>, C),
}

pub(crate) type ReadInContext<T> = fn(Answer, Box<ReplyContext>) -> Result<T, Unresolved>;

impl<T> Clone for ReadAnswer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ReadAnswer<T> {}

/// What the client knows about a request when its reply arrives.
#[derive(Debug)]
pub(crate) struct ReplyContext {
    pub(crate) op: OpCode,
    pub(crate) chroot: Chroot,
    /// Present for requests whose reply shows what the server supports.
    pub(crate) capabilities: Option<Arc<Capabilities>>,
    pub(crate) watch: Attached,
    pub(crate) asked: Asked,
    pub(crate) instead: Option<Box<Instead>>,
}

/// The older request, for servers that do not know the one that was sent.
#[derive(Debug)]
pub(crate) struct Instead {
    pub(crate) handle: Handle,
    pub(crate) options: CallOptions,
    pub(crate) frame: RequestFrame,
    pub(crate) on_loss: OnLoss,
}

impl ReplyContext {
    /// Records what the reply shows of the servers.
    pub(crate) fn learn(&self, note: impl FnOnce(&Capabilities)) {
        if let Some(capabilities) = &self.capabilities {
            note(capabilities);
        }
    }

    /// The server does not know the operation, and has certainly not carried it out.
    pub(crate) fn unknown_operation(mut self: Box<Self>) -> Unresolved {
        match self.instead.take() {
            Some(instead) => Unresolved::Again(instead, self),
            None => Unread::Code(ErrorCode::UNIMPLEMENTED).into(),
        }
    }
}

/// A reply without a result.
pub(crate) enum Unread {
    Code(ErrorCode),
    Decode(DecodeError),
    /// The reply belongs to a different request.
    Mismatch(&'static str),
}

/// A reply, read in its context, that is not the request's result.
pub(crate) enum Unresolved {
    Unread(Unread),
    /// The older request comes next.
    Again(Box<Instead>, Box<ReplyContext>),
}

impl Unread {
    /// The error of a request of this kind.
    pub(crate) fn of<E: CallError>(self, op: OpCode) -> E {
        match self {
            Self::Code(code) => E::answered(op, code),
            Self::Decode(error) => E::unknown(op, Cause::Undecodable(error)),
            Self::Mismatch(what) => E::unknown(op, Cause::Mismatch(what)),
        }
    }
}

impl<U: Into<Unread>> From<U> for Unresolved {
    fn from(unread: U) -> Self {
        Self::Unread(unread.into())
    }
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

/// Decodes the body of a reply without error.
pub(crate) fn body<'a, T: Decode<'a>>(answer: &'a Answer) -> Result<T, Unread> {
    if answer.code.is_ok() {
        decode_prefix(&answer.body).map_err(Unread::Decode)
    } else {
        Err(Unread::Code(answer.code))
    }
}

/// Data up to this length is copied out of the read buffer, which it would otherwise keep from being reused.
const COPY_LEN_MAX: usize = 4 << 10;

/// Returns a part of a reply's body, without keeping more memory than needed.
pub(crate) fn detached(body: &Bytes, part: &[u8]) -> Bytes {
    if part.len() <= COPY_LEN_MAX { Bytes::copy_from_slice(part) } else { body.slice_ref(part) }
}
