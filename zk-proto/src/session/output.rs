//! What a session asks of its driver and tells its users.

use alloc::{boxed::Box, sync::Arc};
use core::time::Duration;

use bytes::Bytes;

use super::{
    fault::{Cause, LinkError, Over, SaslFault},
    watch::{WatchIntent, WatchNotice},
};
use crate::{
    code::ErrorCode,
    data::{SessionId, Zxid},
    frame::RequestFrame,
    text::Secret,
};

/// Something to do, in the order in which it is polled.
#[derive(Debug)]
pub enum Output<R, W> {
    /// Resolve `server` and connect to it; report with [`Session::dialed`](super::Session::dialed).
    Dial {
        /// `host:port`, as configured.
        server: Arc<str>,
    },
    /// Drop the connection, or stop dialing. No report is due.
    HangUp,
    /// Ask `server` over a connection of its own whether it takes writes: send `isro`, read the answer;
    /// report with [`Session::probed`](super::Session::probed).
    Probe {
        /// `host:port`, as configured.
        server: Arc<str>,
    },
    /// An attempt to connect has failed; the next one is under way or on the retry timer.
    Failed {
        /// `host:port`, as configured.
        server: Arc<str>,
        /// Why.
        error: LinkError,
    },
    /// A step of a SASL exchange is due; report with [`Session::sasl_stepped`](super::Session::sasl_stepped). An
    /// exchange that was under way on an earlier connection is over.
    Sasl {
        /// With whom: `host:port`, as configured.
        server: Arc<str>,
        /// What the step is about.
        said: SaslSaid,
    },
    /// Exactly one for each submitted request.
    Reply {
        /// What was submitted with the request.
        token: R,
        /// What became of it.
        outcome: Outcome,
    },
    /// News for a watch.
    Watch {
        /// What was submitted with the request that armed the watch.
        watcher: W,
        /// The news.
        notice: WatchNotice,
    },
    /// The state has changed.
    State(State),
}

/// A request on its way into the session.
#[derive(Debug)]
pub struct Outgoing<R, W> {
    /// The encoded request.
    pub frame: RequestFrame,
    /// Comes back with the outcome.
    pub token: R,
    /// The watch that the request arms if it is answered well: one of those, and only those, that ask for a watch.
    pub watch: Option<Box<WatchIntent<W>>>,
    /// What to do if the connection is lost with the request sent and unanswered.
    pub on_loss: OnLoss,
    /// What it is waited for with.
    pub patience: Patience,
}

/// How much trouble of servers the session bears with before it gives a request back that has not been carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// None: it is [given back](Cause::NotConnected) wherever it would have to wait for a connection.
    FailFast,
    /// It waits for connections. That a server [has no time](ErrorCode::THROTTLED_OP) for it is its answer.
    #[default]
    Connections,
    /// It is also sent again when a server had no time for it: after a pause, longer each time, and behind whatever
    /// has been submitted meanwhile. Requests that stood behind it are carried out before it, and answered.
    ///
    /// If the session is closed meanwhile, it is sent once more in front of the end.
    Throttling,
}

/// A request's place in the order of all requests of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub(crate) u64);

/// What becomes of a request whose user waits no longer.
#[derive(Debug)]
pub enum Withdrawn<'a, R> {
    /// It will not be sent any more, and gives its token back. There is no [`Output::Reply`] for it.
    Unsent {
        /// What was submitted with it.
        token: R,
        /// Whether it was sent over an earlier connection, so that it may have been carried out.
        was_sent: bool,
    },
    /// It is on its way, and keeps its place until the answer comes and the token with it.
    Sent(&'a mut R),
}

/// What to do with a request that was sent when its connection was lost before the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLoss {
    /// Report [`Outcome::Unknown`]: carrying it out twice would not be the same.
    Report,
    /// Send it again on the next connection of the same session: carrying it out twice is harmless.
    Resend,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server answered.
    Answered(Answer),
    /// The request has certainly not been carried out: no byte of it was given to a connection.
    NotSent(Cause),
    /// The request was sent and not answered: it may or may not have been carried out.
    Unknown(Cause),
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The state that the answer reflects; 0 if none, as where a server that does not know the question was not asked
    /// again.
    pub zxid: Zxid,
    /// Whether the request succeeded.
    pub code: ErrorCode,
    /// Empty unless it did.
    pub body: Bytes,
}

/// What a step of a SASL exchange is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaslSaid {
    /// Nothing has been said: a new exchange begins.
    Nothing,
    /// The server's answer to the last step. `None` is what it sends when its mechanism has nothing to say, and also
    /// in answer to a first step that it has no mechanism for.
    Answer(Secret<Option<Bytes>>),
}

/// What a SASL mechanism wants done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaslStep {
    /// Say this to the server, and wait for its answer.
    Say(Secret<Bytes>),
    /// Both sides are satisfied.
    Done,
    /// It cannot go on.
    Failed(SaslFault),
}

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A server serves the session.
    Connected(Negotiated),
    /// No server does; the session lives on for a while. Reported once for each loss.
    Disconnected(LinkError),
    /// The session has ended.
    Over(Over),
}

/// What a handshake has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The session.
    pub id: SessionId,
    /// How long servers keep the session without hearing from it.
    pub timeout: Duration,
    /// Whether the server is cut off from the quorum.
    pub read_only: bool,
}

/// What a server said when it was asked whether it takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// It does.
    ReadWrite,
    /// It does not, or cannot be reached.
    ReadOnly,
    /// It answered something else: the question is not allowed there.
    Unknown,
}
