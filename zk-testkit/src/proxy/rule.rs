use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use zk_proto::frame::encode_frame_with;
use zk_proto::{ErrorCode, OpCode};

use super::dissect::Piece;
use super::frame::{Direction, Frame, Kind};

/// Which frames a rule is about: all conditions must hold.
///
/// ```
/// use zk_proto::OpCode;
/// use zk_testkit::proxy::Match;
///
/// // The third answer to a create below /locks.
/// let third = Match::reply(OpCode::CREATE2).path("/locks/").nth(3);
/// # let _ = third;
/// ```
#[derive(Clone, Default)]
#[must_use = "a match does nothing until a proxy is given it"]
pub struct Match {
    direction: Option<Direction>,
    kind: Option<Kind>,
    op: Option<OpCode>,
    path: Option<String>,
    connection: Option<u64>,
    predicates: Vec<Predicate>,
    skip: u64,
    times: Option<u64>,
}

type Predicate = Arc<dyn Fn(&Frame) -> bool + Send + Sync>;

impl Match {
    /// Every frame.
    pub fn any() -> Self {
        Self::default()
    }

    /// Every frame that goes this way.
    pub fn going(direction: Direction) -> Self {
        Self { direction: Some(direction), ..Self::any() }
    }

    /// Every frame of this kind, whichever way it goes.
    pub fn kind(kind: Kind) -> Self {
        Self { kind: Some(kind), ..Self::any() }
    }

    /// Requests for this operation.
    pub fn request(op: OpCode) -> Self {
        Self { op: Some(op), ..Self::requests() }
    }

    /// All requests, but for heartbeats and the handshake.
    pub fn requests() -> Self {
        Self::kind(Kind::Request)
    }

    /// Answers to requests for this operation, with or without error.
    pub fn reply(op: OpCode) -> Self {
        Self { op: Some(op), ..Self::replies() }
    }

    /// All answers to requests, but for heartbeats and the handshake.
    pub fn replies() -> Self {
        Self::kind(Kind::Reply)
    }

    /// The first frame of a client.
    pub fn connect_request() -> Self {
        Self::kind(Kind::ConnectRequest)
    }

    /// The first frame of a server.
    pub fn connect_response() -> Self {
        Self::kind(Kind::ConnectResponse)
    }

    /// Watch events.
    pub fn notification() -> Self {
        Self::kind(Kind::Notification)
    }

    /// A client's heartbeats.
    pub fn ping() -> Self {
        Self::kind(Kind::Ping).and_going(Direction::ToServer)
    }

    /// A server's answers to heartbeats.
    pub fn ping_reply() -> Self {
        Self::kind(Kind::Ping).and_going(Direction::ToClient)
    }

    fn and_going(mut self, direction: Direction) -> Self {
        self.direction = Some(direction);
        self
    }

    /// Only frames whose path contains this text.
    pub fn path(mut self, part: impl Into<String>) -> Self {
        self.path = Some(part.into());
        self
    }

    /// Only replies with this error code.
    pub fn error(self, code: ErrorCode) -> Self {
        self.when(move |frame| frame.error == Some(code))
    }

    /// Only frames of this connection; the first that the proxy accepts is number 1.
    pub fn connection(mut self, number: u64) -> Self {
        self.connection = Some(number);
        self
    }

    /// Only frames for which this is true.
    ///
    /// The predicate runs inside the proxy and must not call it.
    pub fn when(mut self, predicate: impl Fn(&Frame) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// Passes over the first frames that match.
    pub fn skip(mut self, frames: u64) -> Self {
        self.skip = frames;
        self
    }

    /// At most so many frames, after those that are skipped.
    pub fn times(mut self, frames: u64) -> Self {
        self.times = Some(frames);
        self
    }

    /// Only the first frame that matches.
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Only the frame that matches as the `n`th, counted from 1.
    ///
    /// # Panics
    ///
    /// If `n` is 0.
    pub fn nth(self, n: u64) -> Self {
        let skipped = n.checked_sub(1).expect("matches are counted from 1");
        self.skip(skipped).once()
    }

    fn admits(&self, frame: &Frame) -> bool {
        let is = |wanted: Option<bool>| wanted.unwrap_or(true);
        let has_part = |part: &String| frame.path.as_ref().is_some_and(|path| path.contains(part));
        is(self.direction.map(|wanted| frame.direction == wanted))
            && is(self.kind.map(|wanted| frame.kind == wanted))
            && is(self.op.map(|wanted| frame.op == Some(wanted)))
            && is(self.connection.map(|wanted| frame.connection == wanted))
            && is(self.path.as_ref().map(has_part))
            && self.predicates.iter().all(|predicate| predicate(frame))
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Match")
            .field("direction", &self.direction)
            .field("kind", &self.kind)
            .field("op", &self.op)
            .field("path", &self.path)
            .field("connection", &self.connection)
            .field("predicates", &self.predicates.len())
            .field("skip", &self.skip)
            .field("times", &self.times)
            .finish()
    }
}

/// What happens to a frame that a rule is about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Reaction {
    /// Sends it on this much later. What follows in the same direction waits behind it, but its
    /// own delay runs meanwhile: a delay for every frame is a longer line, not a narrower one.
    Delay(Duration),
    /// Swallows it.
    Drop,
    /// Keeps it, and all that follows in the same direction, until the rule is released.
    Hold,
    /// Sends on something else instead.
    Rewrite(Rewrite),
    /// Ends the connection, on both sides, as a program does that closes its socket.
    Cut(Forward),
    /// Ends the connection: with a reset (RST) for the client, and orderly for the server, so
    /// that a request which was sent on first is not lost.
    Reset(Forward),
    /// Sends on nothing more on this connection, either only this way or both, without ending
    /// it. [`Proxy::resume`](super::Proxy::resume) undoes it, and what was kept back is sent on.
    Silence(Silence, Forward),
}

/// How much of a frame is sent on before its rule strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forward {
    /// Nothing.
    #[default]
    Nothing,
    /// So many bytes, the four of the length prefix included.
    Bytes(usize),
    /// The whole frame.
    Frame,
}

impl Forward {
    pub(super) fn len(self, frame: usize) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Bytes(bytes) => bytes.min(frame),
            Self::Frame => frame,
        }
    }
}

/// Which ways a silence extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Only the way of the frame that met the rule.
    ThisWay,
    /// Both ways.
    BothWays,
}

/// What takes a frame's place.
#[derive(Clone)]
pub struct Rewrite(Substitute);

#[derive(Clone)]
enum Substitute {
    Changed(Arc<Change>),
    Forged(Bytes),
}

type Change = dyn Fn(&mut Vec<u8>) + Send + Sync;

impl Rewrite {
    /// A change of the frame's contents, without the length prefix, which is put right; of bytes that are no frame, such
    /// as a four-letter word, all are changed. It runs inside the proxy and must not call it.
    pub fn new(change: impl Fn(&mut Vec<u8>) + Send + Sync + 'static) -> Self {
        Self(Substitute::Changed(Arc::new(change)))
    }

    /// These bytes as they are, which need not be frames, or be frames of any length.
    pub fn forged(bytes: impl Into<Bytes>) -> Self {
        Self(Substitute::Forged(bytes.into()))
    }

    /// What is sent on instead of a piece.
    pub(super) fn of(&self, piece: &Piece) -> Bytes {
        let change = match &self.0 {
            Substitute::Changed(change) => change,
            Substitute::Forged(bytes) => return bytes.clone(),
        };
        let mut contents = piece.payload().to_vec();
        change(&mut contents);
        if !piece.is_frame {
            return contents.into();
        }
        let mut frame = BytesMut::new();
        encode_frame_with(&mut frame, |out| out.extend_from_slice(&contents));
        frame.freeze()
    }
}

impl fmt::Debug for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rewrite(..)")
    }
}

/// A rule's name inside one proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleId(pub(super) u64);

/// A rule at work.
#[derive(Debug)]
pub(super) struct Rule {
    condition: Match,
    reaction: Reaction,
    seen: u64,
    pub(super) fired: u64,
    /// Whether frames that it held may go.
    pub(super) released: bool,
    pub(super) last: Option<Frame>,
}

impl Rule {
    pub(super) fn new(condition: Match, reaction: Reaction) -> Self {
        Self { condition, reaction, seen: 0, fired: 0, released: false, last: None }
    }

    /// Counts a frame, and says what is to happen to it.
    pub(super) fn judge(&mut self, frame: &Frame) -> Option<Reaction> {
        let times = self.condition.times.unwrap_or(u64::MAX);
        if self.released || self.fired >= times || !self.condition.admits(frame) {
            return None;
        }
        self.seen += 1;
        if self.seen <= self.condition.skip {
            return None;
        }
        self.fired += 1;
        Some(self.reaction.clone())
    }
}
