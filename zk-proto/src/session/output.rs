//! Outputs of a session, to its driver and its users.

use alloc::{boxed::Box, sync::Arc};
use core::time::Duration;

use bytes::Bytes;

use super::{
    fault::{Cause, CloseReason, DriverFault, LinkError},
    watch::{WatchIntent, WatchNotice},
};
use crate::{
    code::ErrorCode,
    data::{SessionId, Zxid},
    frame::RequestFrame,
    text::Secret,
};

/// An action or a report, in the order in which it is polled.
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
        /// The error.
        error: LinkError,
    },
    /// A step of a SASL exchange is due; report with [`Session::sasl_stepped`](super::Session::sasl_stepped). An
    /// exchange on an earlier connection is over.
    Sasl {
        /// The server: `host:port`, as configured.
        server: Arc<str>,
        /// The input of the step.
        said: SaslInput,
    },
    /// The outcome of a request: exactly one for each submitted request.
    Reply {
        /// The token that was submitted with the request.
        token: R,
        /// The outcome.
        outcome: Outcome,
    },
    /// A notice for a watch.
    Watch {
        /// The watcher that was submitted with the request that armed the watch.
        watcher: W,
        /// The notice.
        notice: WatchNotice,
    },
    /// The state has changed.
    State(State),
}

/// A request to be submitted.
#[derive(Debug)]
pub struct Outgoing<R, W> {
    /// The encoded request.
    pub frame: RequestFrame,
    /// Returned with the outcome.
    pub token: R,
    /// The watch that the request arms if it succeeds: required for requests that ask for a watch, and only for those.
    pub watch: Option<Box<WatchIntent<W>>>,
    /// What to do if the connection is lost with the request sent and unanswered.
    pub on_loss: OnLoss,
    /// How long the request may wait.
    pub patience: Patience,
}

/// How much trouble of servers the session tolerates before it gives up a request that has not been carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// None: it fails with [`NotConnected`](Cause::NotConnected) wherever it would have to wait for a connection.
    FailFast,
    /// It waits for connections. If a server [throttles](ErrorCode::THROTTLED_OP) it, that is its answer.
    #[default]
    Connections,
    /// It is also resent when a server throttled it: after a pause, longer each time, and behind all requests that have
    /// been submitted meanwhile. Requests that were behind it are carried out before it, and answered.
    ///
    /// If the session is closed meanwhile, it is sent once more before the end.
    Throttling,
}

/// A request's place in the order of all requests of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub(crate) u64);

/// The state of a request whose user waits no longer.
#[derive(Debug)]
pub enum Withdrawn<'a, R> {
    /// It will not be sent any more, and returns its token. There is no [`Output::Reply`] for it.
    Unsent {
        /// The token that was submitted with it.
        token: R,
        /// Whether it was sent over an earlier connection, so that it may have been carried out.
        was_sent: bool,
    },
    /// It was sent, and keeps its place until the answer arrives, or the connection is lost, and with it the token.
    Sent(&'a mut R),
}

/// The handling of a sent request whose connection was lost before the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLoss {
    /// Report [`Outcome::Unknown`]: carrying it out twice would not be the same.
    Report,
    /// Send it again on the next connection of the same session: carrying it out twice is harmless.
    Resend,
}

/// The outcome of a request.
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
    /// The state that the answer reflects; 0 if none, as where the session did not ask again a server that does not
    /// know the operation.
    pub zxid: Zxid,
    /// Whether the request succeeded.
    pub code: ErrorCode,
    /// Empty unless the request succeeded.
    pub body: Bytes,
}

/// The input of a step of a SASL exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaslInput {
    /// None: a new exchange begins.
    Nothing,
    /// The server's answer to the last step. `None` if its mechanism has nothing to send, and also in answer to a first
    /// step if it lacks the mechanism.
    Answer(Secret<Option<Bytes>>),
}

/// The result of a step of a SASL mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaslStep {
    /// Send this to the server, and wait for its answer.
    Say(Secret<Bytes>),
    /// Both sides are satisfied.
    Done,
    /// The exchange has failed; the next server may fare better.
    Failed(DriverFault),
    /// All servers would answer the same, as long as the credentials do not change. Ends the session.
    GivenUp(DriverFault),
}

/// The state of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A server serves the session.
    Connected(Negotiated),
    /// No server does; the session stays alive for a while. Reported once for each loss.
    Disconnected(LinkError),
    /// The session has ended.
    Over(CloseReason),
}

/// The result of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The session.
    pub id: SessionId,
    /// How long servers keep the session without hearing from it.
    pub timeout: Duration,
    /// Whether the server is cut off from the quorum.
    pub read_only: bool,
}

/// A server's answer to the question whether it takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// It does.
    ReadWrite,
    /// It does not, or is unreachable.
    ReadOnly,
    /// It answered something else: the question is not allowed there.
    Unknown,
}
