//! Reasons: refusals of servers, missing replies, ends of sessions.

use std::fmt;

use zk_proto::{
    ErrorCode,
    jute::DecodeError,
    path::PathError,
    session::{self, CloseReason, Costly},
};

use super::link::LinkError;

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The connection was lost.
    #[error("disconnected: {0}")]
    Disconnected(LinkError),
    /// The session ended.
    #[error("{0}")]
    SessionEnded(SessionEnd),
    /// The request is longer than servers accept.
    #[error("request of {len} bytes exceeds the limit of {len_max}")]
    TooLarge {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        len_max: usize,
    },
    /// The reply is longer than this client accepts. It cost the connection.
    #[error(
        "reply of {len} bytes exceeds the limit of {len_max}: see ConnectOptions::reply_len_max"
    )]
    ReplyTooLarge {
        /// Its length in bytes.
        len: usize,
        /// The [limit](crate::ConnectOptions::reply_len_max) in bytes.
        len_max: usize,
    },
    /// Servers close one connection after another over this request, though connections without it live: it is longer
    /// than they accept (`jute.maxbuffer`), or something in it makes them fail. It is not sent again, so that all other
    /// requests can be answered. Only for requests that are harmless to repeat; others are in doubt after the first
    /// lost connection.
    #[error("{0}")]
    CostsConnection(Box<Costly>),
    /// There was no connection, and the request was [not to wait](crate::Request::fail_fast) for one.
    #[error("not connected")]
    NotConnected,
    /// There was no reply in the [time allowed](crate::Request::timeout).
    #[error("deadline exceeded")]
    DeadlineExceeded,
    /// Too many requests, or bytes of requests, are pending or in flight: see
    /// [`ConnectOptions::requests_max`](crate::ConnectOptions::requests_max) and
    /// [`request_bytes_max`](crate::ConnectOptions::request_bytes_max).
    #[error("queue is full")]
    QueueFull,
    /// An argument that no server would accept.
    #[error("{0}")]
    InvalidPath(#[from] PathError),
    /// Arguments that cannot be combined.
    #[error("{0}")]
    InvalidArgument(&'static str),
    /// The server is throttling and has not processed the request.
    #[error("server is throttling")]
    Throttled,
    /// The reply cannot be decoded.
    #[error("answer not understood: {0}")]
    Undecodable(DecodeError),
    /// The reply belongs to a different request.
    #[error("answer does not fit the request: {0}")]
    Mismatch(&'static str),
}

/// Why a session ended. It never comes back, and neither do its ephemeral nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The servers have expired it, or must have by now: four thirds of its timeout after their last message.
    #[error("session expired")]
    Expired,
    /// The servers refuse the credentials.
    #[error("authentication failed")]
    AuthFailed,
    /// The application closed it.
    #[error("session closed")]
    Closed,
}

/// The error code of a server's reply.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use zk_client::Rejection;
///
/// let error = zk.set("/missing", b"").await.unwrap_err();
/// let rejection = error.rejection().ok_or("a server has answered")?;
/// assert_eq!(rejection, Rejection::NoNode);
/// assert_eq!(rejection.code().0, -101);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rejection {
    /// The node, or the parent of a node to create, does not exist.
    NoNode,
    /// The node exists already.
    NodeExists,
    /// The expected version is not the present one.
    BadVersion,
    /// The node to delete has children.
    NotEmpty,
    /// This connection's identities lack the permission.
    NoAuth,
    /// Empty or malformed access control list.
    InvalidAcl,
    /// The parent is ephemeral.
    NoChildrenForEphemerals,
    /// A quota would be exceeded.
    QuotaExceeded,
    /// The server is cut off from the quorum and takes no writes.
    ReadOnly,
    /// The server does not know the operation, or has the feature switched off.
    Unimplemented,
    /// The server does not accept the arguments.
    BadArguments,
    /// Ephemeral nodes are not available in this (local) session.
    EphemeralOnLocalSession,
    /// Any other code, known to [`ErrorCode`] or not.
    Other(ErrorCode),
}

impl Rejection {
    /// The code that the server sent.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::NoNode => ErrorCode::NO_NODE,
            Self::NodeExists => ErrorCode::NODE_EXISTS,
            Self::BadVersion => ErrorCode::BAD_VERSION,
            Self::NotEmpty => ErrorCode::NOT_EMPTY,
            Self::NoAuth => ErrorCode::NO_AUTH,
            Self::InvalidAcl => ErrorCode::INVALID_ACL,
            Self::NoChildrenForEphemerals => ErrorCode::NO_CHILDREN_FOR_EPHEMERALS,
            Self::QuotaExceeded => ErrorCode::QUOTA_EXCEEDED,
            Self::ReadOnly => ErrorCode::NOT_READ_ONLY,
            Self::Unimplemented => ErrorCode::UNIMPLEMENTED,
            Self::BadArguments => ErrorCode::BAD_ARGUMENTS,
            Self::EphemeralOnLocalSession => ErrorCode::EPHEMERAL_ON_LOCAL_SESSION,
            Self::Other(code) => code,
        }
    }
}

impl From<ErrorCode> for Rejection {
    fn from(code: ErrorCode) -> Self {
        const NAMED: [Rejection; 12] = [
            Rejection::NoNode,
            Rejection::NodeExists,
            Rejection::BadVersion,
            Rejection::NotEmpty,
            Rejection::NoAuth,
            Rejection::InvalidAcl,
            Rejection::NoChildrenForEphemerals,
            Rejection::QuotaExceeded,
            Rejection::ReadOnly,
            Rejection::Unimplemented,
            Rejection::BadArguments,
            Rejection::EphemeralOnLocalSession,
        ];
        NAMED.into_iter().find(|named| named.code() == code).unwrap_or(Self::Other(code))
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rejected: {}", self.code())
    }
}

impl From<CloseReason> for SessionEnd {
    fn from(over: CloseReason) -> Self {
        match over {
            CloseReason::Expired => Self::Expired,
            CloseReason::AuthFailed => Self::AuthFailed,
            _ => Self::Closed,
        }
    }
}

impl From<SessionEnd> for CloseReason {
    fn from(end: SessionEnd) -> Self {
        match end {
            SessionEnd::Expired => Self::Expired,
            SessionEnd::AuthFailed => Self::AuthFailed,
            SessionEnd::Closed => Self::Closed,
        }
    }
}

impl From<session::Cause> for Cause {
    fn from(cause: session::Cause) -> Self {
        match cause {
            session::Cause::LinkLost(error) => Self::Disconnected(error.into()),
            session::Cause::SessionOver(over) => Self::SessionEnded(over.into()),
            session::Cause::NotConnected => Self::NotConnected,
            session::Cause::Withdrawn => Self::DeadlineExceeded,
            session::Cause::TooLarge { len, len_max } => Self::TooLarge { len, len_max },
            session::Cause::ReplyTooLarge { len, len_max } => Self::ReplyTooLarge { len, len_max },
            session::Cause::CostsConnection(costly) => Self::CostsConnection(costly),
            session::Cause::Refused(ErrorCode::THROTTLED_OP) => Self::Throttled,
            session::Cause::Refused(ErrorCode::SESSION_CLOSED_REQUIRE_AUTH) => {
                Self::SessionEnded(SessionEnd::AuthFailed)
            }
            session::Cause::Refused(code) if code.ends_session() => {
                Self::SessionEnded(SessionEnd::Expired)
            }
            other => Self::Disconnected(LinkError::Other(other.to_string())),
        }
    }
}

impl Cause {
    pub(super) const fn session_end(&self) -> Option<SessionEnd> {
        match self {
            Self::SessionEnded(end) => Some(*end),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_are_the_codes_that_they_name() {
        for (rejection, code) in [
            (Rejection::NoNode, -101),
            (Rejection::NoAuth, -102),
            (Rejection::BadVersion, -103),
            (Rejection::NoChildrenForEphemerals, -108),
            (Rejection::NodeExists, -110),
            (Rejection::NotEmpty, -111),
            (Rejection::InvalidAcl, -114),
            (Rejection::ReadOnly, -119),
            (Rejection::EphemeralOnLocalSession, -120),
            (Rejection::QuotaExceeded, -125),
            (Rejection::Unimplemented, -6),
            (Rejection::BadArguments, -8),
            (Rejection::Other(ErrorCode(-1)), -1),
            (Rejection::Other(ErrorCode(-4242)), -4242),
        ] {
            assert_eq!((rejection.code(), ErrorCode(code).into()), (ErrorCode(code), rejection));
        }
    }
}
