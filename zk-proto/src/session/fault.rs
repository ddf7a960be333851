//! Faults of requests, connections and sessions.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString},
    sync::Arc,
};
use core::{error::Error, fmt};

use crate::{code::ErrorCode, frame::FrameError, jute::DecodeError, op::OpCode};

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The connection was lost.
    #[error("connection lost: {0}")]
    LinkLost(LinkError),
    /// The session is over.
    #[error("session over: {0}")]
    SessionOver(CloseReason),
    /// There was no connection, and the request was configured not to wait for one.
    #[error("not connected")]
    NotConnected,
    /// Its user has waited long enough. Made by drivers, from the result of [`Withdrawn`](super::Withdrawn).
    #[error("withdrawn")]
    Withdrawn,
    /// Only the session itself may send this operation: it could not recognize its own answers otherwise.
    #[error("{0} is asked for by the session alone")]
    Reserved(OpCode),
    /// The watch that the request asks for is not the one that is [to be waited for](super::Outgoing::watch).
    #[error("the request and its watcher ask for different watches")]
    WatchMismatch,
    /// The request is longer than servers accept.
    #[error("request of {len} bytes exceeds the limit of {len_max}")]
    TooLarge {
        /// Its length.
        len: usize,
        /// The limit.
        len_max: usize,
    },
    /// The reply is longer than [`Config::reply_len_max`](super::Config::reply_len_max). Nothing behind it can be read,
    /// so the session leaves the connection.
    #[error("reply of {len} bytes exceeds the limit of {len_max}")]
    ReplyTooLarge {
        /// Its length.
        len: usize,
        /// The limit.
        len_max: usize,
    },
    /// Servers end each connection that the request is sent over.
    #[error("{0}")]
    CostsConnection(Box<Costly>),
    /// A write that was sent again over a later connection was refused there, for a reason that says nothing about the
    /// first time: the server is busy or without a quorum, has forgotten the session, or demands credentials.
    #[error("sent again, and refused: {0}")]
    Refused(ErrorCode),
}

/// A request that made servers end connections: one after the other, each as soon as it had arrived, the last ones with
/// nothing else in flight and after the connection had proved to be alive without it. Sending it again would cost the
/// next connection, and with it all other requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{op}{} of {len} bytes has cost {connections} connections: {}",
    path.as_deref().map_or_else(String::new, |path| format!(" {path}")),
    limit(*len, *len_answered)
)]
#[non_exhaustive]
pub struct Costly {
    /// The operation.
    pub op: OpCode,
    /// The node's path, as servers know it, if the request is about one.
    pub path: Option<Arc<str>>,
    /// Length of the request in bytes.
    pub len: usize,
    /// How many connections it has cost, one after the other.
    pub connections: u32,
    /// The longest request of the session that has been answered, in bytes: servers accept at least that.
    pub len_answered: usize,
}

/// The end of the message: what is known of the servers' limit.
fn limit(len: usize, len_answered: usize) -> String {
    if len > len_answered {
        format!(
            "the longest that was answered had {len_answered}; see jute.maxbuffer of the servers"
        )
    } else {
        format!("though one of {len_answered} was answered")
    }
}

/// Why a connection could not be made, or was lost. Drivers report what they met; the rest is the session's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// No process listens there.
    #[error("refused")]
    Refused,
    /// The connection was reset.
    #[error("reset by peer")]
    Reset,
    /// The connection was closed.
    #[error("closed by peer")]
    Closed,
    /// Nothing arrived in time.
    #[error("timed out")]
    TimedOut,
    /// The server does not serve this session now: not part of a quorum, behind it, or full.
    #[error("not served")]
    NotServed,
    /// The bytes received are not ZooKeeper's protocol.
    #[error("protocol violated: {0}")]
    Protocol(String),
    /// What should be the length of a frame cannot be one. Other protocols begin like that: a TLS alert has a "length"
    /// of `0x1503` and two more bytes.
    #[error("protocol violated: {0}")]
    Frame(FrameError),
    /// The session lives on another connection.
    #[error("session moved")]
    Moved,
    /// Watches could not be armed again.
    #[error("watches not restored: {0}")]
    Unrestored(ErrorCode),
    /// Left in favour of a server that takes writes.
    #[error("left for a writable server")]
    Superseded,
    /// The server refuses the credentials of a SASL exchange. Ends the session: asking again would not help.
    #[error("server refused the credentials")]
    SaslRefused,
    /// The server asks for more and more steps of a SASL exchange.
    #[error("no end in {0} steps")]
    SaslEndless(u32),
    /// Left because the list of servers has changed.
    #[error("left for another server of the new list")]
    Rebalanced,
    /// A fault that only the driver can tell from others: of a name, of what secures the connection, of a mechanism.
    #[error("{0}")]
    Driver(DriverFault),
}

/// An error of the driver, which the session passes on as it is. Equal to its clones only.
///
/// ```
/// use zk_proto::session::{DriverFault, LinkError};
///
/// let fault = DriverFault::new(std::fmt::Error);
/// assert!(fault.downcast_ref::<std::fmt::Error>().is_some());
/// assert_eq!(LinkError::Driver(DriverFault::new("no such name")).to_string(), "no such name");
/// ```
#[derive(Clone, Debug)]
pub struct DriverFault(Arc<dyn Error + Send + Sync>);

impl DriverFault {
    /// Wraps an error, or a text.
    #[must_use]
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Arc::from(error.into()))
    }

    /// The error, if it is of this type.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl fmt::Display for DriverFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for DriverFault {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for DriverFault {}

/// Why a session is over. Once over it stays over, and always for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The servers have forgotten the session, or must have by now. Its ephemeral nodes are gone, or
    /// will be.
    #[error("expired")]
    Expired,
    /// The servers refuse the credentials. The session's ephemeral nodes linger until it expires.
    #[error("authentication failed")]
    AuthFailed,
    /// Closed by its user.
    #[error("closed")]
    Closed,
}

/// Why a connection must be left because of something received over it.
pub(crate) enum Broken {
    /// It cannot be understood, or must not be trusted any further.
    Link(LinkError),
    /// It ends the session.
    Session(CloseReason),
}

impl From<DecodeError> for Broken {
    fn from(error: DecodeError) -> Self {
        Self::Link(LinkError::Protocol(error.to_string()))
    }
}
