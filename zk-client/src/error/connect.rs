//! Why no session could be established.

use std::{fmt, sync::Arc, time::Duration};

use zk_proto::path::PathError;

use super::{cause::SessionEnd, link::LinkError};

/// Why no session could be established.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The connection string names no server.
    #[error("connection string: no server named")]
    NoServer,
    /// A server's address in the connection string is invalid.
    #[error("connection string: {0:?} is not HOST, HOST:PORT or [IPV6]:PORT")]
    InvalidServer(String),
    /// The chroot of the connection string is invalid.
    #[error("connection string: {0}")]
    InvalidChroot(PathError),
    /// A list of servers for a client that has its chroot already contains another.
    #[error("connection string: a chroot where only servers are to be named")]
    UnexpectedChroot,
    /// No server created a session in time. Some may be reachable but not part of a quorum.
    #[error("no session within the time allowed; last attempt: {}", LastAttempt(last))]
    TimedOut {
        /// The last failed attempt: server and reason.
        last: Option<(Arc<str>, LinkError)>,
    },
    /// The servers refused.
    #[error("{0}")]
    SessionEnded(SessionEnd),
    /// The [margin](crate::ConnectOptions::lease_margin) leaves less than a quarter of the session timeout.
    #[error("a lease margin of {margin:?} leaves too little of a session timeout of {timeout:?}")]
    LeaseMargin {
        /// The margin.
        margin: Duration,
        /// The requested session timeout.
        timeout: Duration,
    },
    /// The system provided no random numbers.
    #[error("no randomness: {0}")]
    Entropy(String),
}

/// Formats the last attempt for [`ConnectError::TimedOut`].
struct LastAttempt<'a>(&'a Option<(Arc<str>, LinkError)>);

impl fmt::Display for LastAttempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((server, error)) => write!(f, "{server}: {error}"),
            None => f.write_str("still under way"),
        }
    }
}
