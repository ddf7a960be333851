//! Interprets replies.

use std::mem;

use bytes::Bytes;
use zk_proto::{
    ErrorCode, OpCode,
    frame::RequestFrame,
    jute::{Decode, DecodeError, decode_prefix},
    session::{Answer, OnLoss},
};

use crate::{
    chroot::Chroot,
    error::{CallError, Cause},
    request::{
        asked::{Mismatch, Node, Part},
        call_options::CallOptions,
        handle::Handle,
        watch_stream::Attached,
    },
};

/// How a reply is turned into a typed result.
pub(crate) enum ReadAnswer<T> {
    /// Most replies say all there is to know.
    Alone(fn(&Answer) -> Result<T, Unread>),
    /// Others say it only together with what was asked for.
    InContext(ReadInContext<T>),
}

pub(crate) type ReadInContext<T> = fn(Answer, Box<ReplyContext>) -> Result<T, Unresolved>;

impl<T> Clone for ReadAnswer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ReadAnswer<T> {}

/// How the reply to a submitted request will be read.
pub(crate) enum Reading<T> {
    Alone(fn(&Answer) -> Result<T, Unread>),
    InContext(ReadInContext<T>, Box<ReplyContext>),
    /// Creates have a context of their own, which takes no allocation but the new node's path.
    Created(ReadCreated<T>, Requested),
}

pub(crate) type ReadCreated<T> = fn(OpCode, Answer, Requested) -> Result<T, Unresolved<Requested>>;

impl<T> Reading<T> {
    /// Moves it out, piece by piece: most are as small as a pointer.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Self {
        match self {
            Self::Alone(read) => Self::Alone(*read),
            other => mem::replace(other, Self::Alone(|_| Err(Unread::Mismatch("read twice")))),
        }
    }
}

/// What the client knows about a request when its reply arrives.
#[derive(Debug)]
pub(crate) struct ReplyContext {
    pub(crate) chroot: Chroot,
    pub(crate) watch: Attached,
    /// The operations, if there are several.
    pub(crate) asked: Box<[Part]>,
    pub(crate) instead: Option<Box<Instead>>,
}

/// What the client knows about a create when its reply arrives.
#[derive(Debug)]
pub(crate) struct Requested {
    pub(crate) node: Node,
    pub(crate) instead: Option<Box<Instead>>,
}

/// The older request, for servers that do not know the one that was sent.
#[derive(Debug)]
pub(crate) struct Instead {
    pub(crate) handle: Handle,
    pub(crate) options: CallOptions,
    pub(crate) frame: RequestFrame,
    pub(crate) on_loss: OnLoss,
    /// The number of the connection at the time of the request.
    pub(crate) connection: u64,
}

impl Instead {
    /// Records that the request was carried out as it was. That says something of the server of that time alone, as the
    /// answer may have waited for its caller.
    pub(crate) fn was_needless(&self) {
        self.handle.shared.known().capabilities.learn_create2(self.connection);
    }
}

impl ReplyContext {
    /// The server does not know the operation, and has certainly not carried it out.
    pub(crate) fn unknown_operation(mut self: Box<Self>) -> Unresolved {
        let instead = self.instead.take();
        Unresolved::again(instead, self)
    }
}

impl Requested {
    /// As [`ReplyContext::unknown_operation`].
    pub(crate) fn unknown_operation(mut self) -> Unresolved<Self> {
        let instead = self.instead.take();
        Unresolved::again(instead, self)
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
pub(crate) enum Unresolved<C = Box<ReplyContext>> {
    Unread(Unread),
    /// The older request comes next, and its reply is read in this context.
    Again(Box<Instead>, C),
}

impl<C> Unresolved<C> {
    fn again(instead: Option<Box<Instead>>, context: C) -> Self {
        match instead {
            Some(instead) => Self::Again(instead, context),
            None => Unread::Code(ErrorCode::UNIMPLEMENTED).into(),
        }
    }
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

impl<U: Into<Unread>, C> From<U> for Unresolved<C> {
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
