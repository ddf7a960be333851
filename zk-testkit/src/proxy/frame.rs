use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zk_proto::{ErrorCode, EventType, OpCode, SessionId, Xid, Zxid};

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

impl Direction {
    /// The other way.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }
}

/// What sort of message a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A client's first frame.
    ConnectRequest,
    /// A server's first frame.
    ConnectResponse,
    /// Any other frame from a client, but heartbeats.
    Request,
    /// The answer to a request.
    Reply,
    /// A watch event.
    Notification,
    /// A heartbeat, or the answer to one.
    Ping,
    /// A four-letter word such as `srvr`, in place of a session. Its answer is [`Opaque`](Self::Opaque).
    FourLetterWord,
    /// Bytes that are no frames of this protocol, as many as were there at once: TLS, answers to
    /// four-letter words, a stream that has gone wrong.
    Opaque,
}

/// What the proxy did with a frame when it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disposition {
    /// Sent on, as soon as everything before it in its direction had been.
    Forwarded,
    /// To be sent on later; all that follows it in its direction waits behind it.
    Delayed,
    /// Waits until its rule is released, and all that follows it in its direction with it.
    Held,
    /// Waits until the silence is over, if ever.
    Silenced,
    /// Swallowed by a rule.
    Dropped,
    /// Sent on with other contents.
    Rewritten,
    /// Met a rule that ended the connection.
    EndedConnection,
    /// Arrived on a connection that had been ended, and went nowhere.
    Discarded,
}

/// One frame that passed the proxy, or tried to.
///
/// Its `Display` is one line with everything but the contents.
#[derive(Clone)]
#[non_exhaustive]
pub struct Frame {
    /// Position in the one order of all that the proxy saw and did. It grows from frame to frame,
    /// but not always by one.
    pub sequence: u64,
    /// When it arrived.
    pub at: Instant,
    /// When it arrived, counted from the proxy's start.
    pub since_start: Duration,
    /// On which connection, in order of acceptance, from 1.
    pub connection: u64,
    /// Which way it goes.
    pub direction: Direction,
    /// What sort of message it is.
    pub kind: Kind,
    /// The operation; for a reply, that of its request.
    pub op: Option<OpCode>,
    /// The number that ties a reply to its request.
    pub xid: Option<Xid>,
    /// Of a reply: the last transaction that the server had applied.
    pub zxid: Option<Zxid>,
    /// Of a reply: the error code, which may be [`ErrorCode::OK`].
    pub error: Option<ErrorCode>,
    /// Of a notification: what happened.
    pub event: Option<EventType>,
    /// The path that a request begins with (for a multi, the one of its first operation); for a
    /// reply, that of its request; for a notification, that of the event.
    pub path: Option<String>,
    /// Of a connect request or response: the session.
    pub session: Option<SessionId>,
    /// Bytes without the length prefix.
    pub len: usize,
    /// Frames of one batch had all arrived when the proxy looked: they were sent by one write, or
    /// by several in quick succession. Batches are numbered across connections and directions.
    pub batch: u64,
    /// What was done with it.
    pub disposition: Disposition,
    /// When it was sent on, in the order of `sequence`.
    pub(super) departure: Option<u64>,
    pub(super) payload: Bytes,
}

impl Frame {
    /// The contents without the length prefix, or the first 4 KiB of them: header and body, as
    /// `zk_proto` decodes them.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Whether its sender may have known this other frame, which goes the other way: whether that
    /// had been sent on when this one arrived.
    ///
    /// Ask a frame that was taken from the log after both had passed.
    pub fn may_have_seen(&self, other: &Self) -> bool {
        other.departure.is_some_and(|departure| departure < self.sequence)
    }

    /// Whether it is the request for this operation.
    pub fn is_request(&self, op: OpCode) -> bool {
        self.kind == Kind::Request && self.op == Some(op)
    }

    /// Whether it is a reply to a request for this operation.
    pub fn is_reply(&self, op: OpCode) -> bool {
        self.kind == Kind::Reply && self.op == Some(op)
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = match self.direction {
            Direction::ToServer => "->",
            Direction::ToClient => "<-",
        };
        let millis = self.since_start.as_secs_f64() * 1e3;
        let Self { sequence, connection, kind, .. } = self;
        write!(f, "#{sequence} {millis:.3}ms c{connection} {arrow} {kind:?}")?;
        if let Some(op) = self.op {
            write!(f, " {op}")?;
        }
        if let Some(event) = self.event {
            write!(f, " {event}")?;
        }
        if let Some(Xid(xid)) = self.xid {
            write!(f, " xid={xid}")?;
        }
        if let Some(zxid) = self.zxid {
            write!(f, " zxid={zxid}")?;
        }
        if let Some(error) = self.error {
            write!(f, " {error}")?;
        }
        if let Some(session) = self.session {
            write!(f, " session={session}")?;
        }
        if let Some(path) = &self.path {
            write!(f, " {path}")?;
        }
        write!(f, " {}B batch={} {:?}", self.len, self.batch, self.disposition)
    }
}

/// As `Display`: contents may hold credentials.
impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
