//! Reports the events of a session: to metrics, to logs.

use std::time::Duration;

use zk_proto::{
    ErrorCode, OpCode, SessionId,
    jute::decode_prefix,
    request::MultiResponse,
    session::{Answer, Outcome},
};

use crate::error::{LinkError, SessionEnd, WriteError, failure};

/// Receives the events of the session that it is [set](crate::ConnectOptions::observer) for. Locks have an observer of
/// their own, in `zk-locks`.
///
/// The session's own task calls the methods, in the order of the events, and before callers learn of them: they should
/// be quick, and must not wait for the session. Nothing is computed for an absent observer.
///
/// The example `metrics` turns it, and [`Client::stats`](crate::Client::stats), into what a metrics system reads.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// use std::sync::{
///     Arc,
///     atomic::{AtomicU64, Ordering},
/// };
/// use zk_client::{Answered, ConnectOptions, Ending, LinkError, SessionObserver};
///
/// #[derive(Default)]
/// struct Doubts(AtomicU64);
///
/// impl SessionObserver for Doubts {
///     fn disconnected(&self, why: &LinkError) {
///         println!("disconnected: {why}");
///     }
///
///     fn answered(&self, answered: &Answered) {
///         if answered.ending == Ending::Unknown {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let doubts = Arc::new(Doubts::default());
/// let options = ConnectOptions::new(&server.connect_string())?.observer(doubts.clone());
/// options.connect().await?.get("/").await?;
/// assert_eq!(doubts.0.load(Ordering::Relaxed), 0);
/// # Ok(())
/// # }
/// ```
pub trait SessionObserver: Send + Sync + 'static {
    /// Called when a server serves the session.
    fn connected(&self, connected: &Connected<'_>) {
        let _ = connected;
    }

    /// Called when it no longer does. Connection attempts are not reported here.
    fn disconnected(&self, why: &LinkError) {
        let _ = why;
    }

    /// Called when a connection attempt has failed.
    fn attempt_failed(&self, server: &str, why: &LinkError) {
        let _ = (server, why);
    }

    /// Called when the session is over.
    fn ended(&self, end: SessionEnd) {
        let _ = end;
    }

    /// Called when a request that [counts](crate::Stats) has ended. If the session has never had it, because it is over or
    /// there was no room, the task calls this that has asked for it.
    fn answered(&self, answered: &Answered) {
        let _ = answered;
    }

    /// Called when the reader of a [`WatchStream`](crate::WatchStream) was too slow.
    fn lagged(&self) {}
}

/// A connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Connected<'a> {
    /// The server, as `host:port`.
    pub server: &'a str,
    /// The session.
    pub session: SessionId,
    /// How long servers keep the session without hearing from it.
    pub timeout: Duration,
    /// Whether the server is cut off from the quorum.
    pub read_only: bool,
    /// Number of connections that the session has had, including this one.
    pub epoch: u64,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Answered {
    /// The operation.
    pub op: OpCode,
    /// Time since the session received it.
    pub took: Duration,
    /// Its outcome.
    pub ending: Ending,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It was carried out.
    Ok,
    /// A server answered with an error. Of a transaction, that of the operation that failed it.
    Rejected(ErrorCode),
    /// It was certainly not carried out.
    NotSent,
    /// It was sent, and there is no reply.
    Unknown,
}

impl Ending {
    /// The outcome of a request for this operation.
    pub(crate) fn of(op: OpCode, outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Answered(answer) => match code(op, answer) {
                ErrorCode::OK => Self::Ok,
                code => Self::Rejected(code),
            },
            Outcome::NotSent(_) => Self::NotSent,
            Outcome::Unknown(_) => Self::Unknown,
        }
    }

    /// The outcome of a write by what its caller is told.
    pub(crate) const fn of_write<T>(result: &Result<T, WriteError>) -> Self {
        match result {
            Ok(_) => Self::Ok,
            Err(WriteError::Rejected(rejection)) => Self::Rejected(rejection.code()),
            Err(WriteError::NotApplied(_)) => Self::NotSent,
            Err(WriteError::InDoubt { .. }) => Self::Unknown,
        }
    }
}

/// A reply says of a refused transaction that all is well, and only its results say that nothing is.
fn code(op: OpCode, answer: &Answer) -> ErrorCode {
    // All results of a refused one are errors, from the first on: others are not decoded.
    let is_refused = || decode_prefix(&answer.body) == Ok(OpCode::ERROR);
    if op != OpCode::MULTI || !answer.code.is_ok() || !is_refused() {
        return answer.code;
    }
    let response = decode_prefix::<MultiResponse>(&answer.body).ok();
    let failed = response.as_ref().and_then(failure);
    failed.map_or(ErrorCode::OK, |failed| failed.rejection.code())
}
