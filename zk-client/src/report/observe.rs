//! Telling what happens with a session: to metrics, to logs.

use std::time::Duration;

use zk_proto::{ErrorCode, OpCode, SessionId, session::LinkError};

use crate::error::SessionEnd;

/// Hears what happens with the session that it is [set](crate::ConnectOptions::observer) for. What happens with locks
/// has an observer of its own, in `zk-locks`.
///
/// The methods are called by the session's own task, in the order in which things happen, and before users hear of
/// them: they should be quick, and must not wait for the session. Nothing is computed for an observer that is not there.
///
/// The example `metrics` makes of it, and of [`Client::stats`](crate::Client::stats), what a metrics system reads.
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
    /// A server serves the session.
    fn connected(&self, connected: &Connected<'_>) {
        let _ = connected;
    }

    /// It does not any more. Nothing is told of attempts here.
    fn disconnected(&self, why: &LinkError) {
        let _ = why;
    }

    /// An attempt to connect has failed.
    fn attempt_failed(&self, server: &str, why: &LinkError) {
        let _ = (server, why);
    }

    /// The session is over.
    fn ended(&self, end: SessionEnd) {
        let _ = end;
    }

    /// A request has come to its end.
    fn answered(&self, answered: &Answered) {
        let _ = answered;
    }

    /// A [`WatchStream`](crate::WatchStream)'s reader was too slow.
    fn lagged(&self) {}
}

/// A connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Connected<'a> {
    /// To which server, as `host:port`.
    pub server: &'a str,
    /// Of which session.
    pub session: SessionId,
    /// How long servers keep the session without hearing from it.
    pub timeout: Duration,
    /// Whether the server is cut off from the quorum.
    pub read_only: bool,
    /// Number of connections that the session has had, with this one.
    pub epoch: u64,
}

/// A request that has come to its end.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Answered {
    /// What was asked for.
    pub op: OpCode,
    /// Since the session had it.
    pub took: Duration,
    /// What came of it.
    pub ending: Ending,
}

/// What has come of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It was carried out.
    Ok,
    /// A server answered with an error.
    Rejected(ErrorCode),
    /// It was certainly not carried out.
    NotSent,
    /// It was sent, and there is no answer.
    Unknown,
}
