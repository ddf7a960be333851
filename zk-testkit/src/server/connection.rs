//! One client's connection, as the member that it is to sees it.

use std::{collections::VecDeque, net::SocketAddr};

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode, SessionId, Text, Xid, Zxid,
    frame::{ReplyHeader, RequestHeader, encode_frame_with},
    jute::Encode,
};

use super::{acl::Identities, sasl::Exchange};

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was heard yet.
    Fresh,
    /// It carries a session.
    Bound(SessionId),
    /// It carries a session that only this member knows, and that may not write.
    ReadOnly(SessionId),
}

/// What must wait for its turn, in the order of the requests.
#[derive(Debug)]
pub(super) enum Queued {
    /// A request that was not looked at yet.
    Request { header: RequestHeader, body: Bytes },
    /// An answer that must not leave before the member has applied this transaction.
    Answer { at: Zxid, frame: Bytes, last: bool },
    /// The answer to a sync, which tells how far the member has come.
    Sync { at: Zxid, xid: Xid, path: Text },
    /// A request that is not carried out, since the member has too much to do.
    Throttled { xid: Xid },
}

/// One client's connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) member: usize,
    pub(super) peer: SocketAddr,
    pub(super) identities: Identities,
    pub(super) sasl: Exchange,
    pub(super) phase: Phase,
    pub(super) inbound: BytesMut,
    pub(super) outbound: BytesMut,
    pub(super) queue: VecDeque<Queued>,
    /// How many have left the queue: the place of its front.
    pub(super) taken: u64,
    /// The answer to the handshake.
    pub(super) greeting: Bytes,
    /// A handshake is being answered; until then nothing more is read.
    pub(super) is_deaf: bool,
    /// Nothing more is read; closed once `outbound` is taken.
    pub(super) closing: bool,
    /// Whether it stands in the list of those that have something to say.
    pub(super) listed: bool,
}

impl Connection {
    pub(super) fn new(member: usize, peer: SocketAddr) -> Self {
        Self {
            member,
            peer,
            identities: Identities::new(peer.ip()),
            sasl: Exchange::Start,
            phase: Phase::Fresh,
            inbound: BytesMut::new(),
            outbound: BytesMut::new(),
            queue: VecDeque::new(),
            taken: 0,
            greeting: Bytes::new(),
            is_deaf: false,
            closing: false,
            listed: false,
        }
    }

    /// Takes the front of the queue.
    pub(super) fn take(&mut self) -> Option<Queued> {
        let item = self.queue.pop_front()?;
        self.taken += 1;
        Some(item)
    }

    /// What stands at a place of the queue, which is the same however many in front of it are taken.
    pub(super) fn at(&mut self, place: u64) -> Option<&mut Queued> {
        let index = usize::try_from(place.checked_sub(self.taken)?).ok()?;
        self.queue.get_mut(index)
    }

    pub(super) const fn session(&self) -> Option<SessionId> {
        match self.phase {
            Phase::Fresh => None,
            Phase::Bound(session) | Phase::ReadOnly(session) => Some(session),
        }
    }
}

/// A reply as it goes over the wire. There is no body after an error.
pub(super) fn reply(xid: Xid, zxid: Zxid, answer: Result<&dyn Body, ErrorCode>) -> Bytes {
    let mut out = BytesMut::new();
    encode_frame_with(&mut out, |out| {
        let err = answer.err().unwrap_or(ErrorCode::OK);
        ReplyHeader { xid, zxid, err }.encode(out);
        if let Ok(body) = answer {
            body.write(out);
        }
    });
    out.freeze()
}

/// A refusal, with what may come behind it for no good reason.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) code: ErrorCode,
    pub(super) rest: Encoded,
}

impl From<ErrorCode> for Refused {
    fn from(code: ErrorCode) -> Self {
        Self { code, rest: Encoded::default() }
    }
}

/// The reply that an outcome leads to.
pub(super) fn outcome(xid: Xid, zxid: Zxid, outcome: &Result<Encoded, Refused>) -> Bytes {
    let (err, body) = match outcome {
        Ok(body) => (ErrorCode::OK, body),
        Err(Refused { code, rest }) => (*code, rest),
    };
    let mut out = BytesMut::new();
    encode_frame_with(&mut out, |out| {
        ReplyHeader { xid, zxid, err }.encode(out);
        body.encode(out);
    });
    out.freeze()
}

/// What follows the header of a reply.
pub(super) trait Body {
    fn write(&self, out: &mut BytesMut);
}

impl<T: Encode> Body for T {
    fn write(&self, out: &mut BytesMut) {
        self.encode(out);
    }
}

/// A body that is encoded already.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoded(pub(super) BytesMut);

impl Encoded {
    pub(super) fn of(body: &impl Encode) -> Self {
        let mut out = BytesMut::new();
        body.encode(&mut out);
        Self(out)
    }
}

impl Encode for Encoded {
    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.0);
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }
}
