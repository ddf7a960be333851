//! Errors that answer the one question that matters: was it applied?

use std::{fmt, sync::Arc, time::Duration};

use zk_proto::{
    ErrorCode, OpCode,
    jute::DecodeError,
    path::PathError,
    session::{self, Costly, LinkError, Over},
};

/// Why a read gave nothing. Reads change nothing, so there is no doubt to report.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use zk_client::{ReadError, Rejection};
///
/// match zk.get("/missing").await {
///     Ok((data, _)) => println!("{data:?}"),
///     Err(ReadError::Rejected(Rejection::NoNode)) => println!("not there"),
///     Err(error) if error.session_end().is_some() => println!("a new client is needed: {error}"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A server answered, and the answer is no.
    #[error("{0}")]
    Rejected(Rejection),
    /// There was no answer.
    #[error("read not answered")]
    Unavailable(#[source] Cause),
}

/// Why a write did not succeed, as far as is known.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use zk_client::{Rejection, WriteError};
///
/// zk.create("/a", b"").await?;
/// let error = zk.create("/a", b"").await.unwrap_err();
/// assert_eq!(error.rejection(), Some(Rejection::NodeExists));
///
/// server.pause(); // not even the end of the session is heard of
/// let error = zk.create("/b", b"").timeout(std::time::Duration::from_millis(10)).await.unwrap_err();
/// assert!(matches!(error, WriteError::InDoubt(_)), "it was sent");
/// # server.resume();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A server answered, and the answer is no. Nothing was written.
    #[error("{0}")]
    Rejected(Rejection),
    /// The request never reached a server, or was turned away unread. Nothing was written.
    #[error("write not applied")]
    NotApplied(#[source] Cause),
    /// The request was sent and not answered. It may or may not have been written, now or a little
    /// later; [`Client::settle`](crate::Client::settle) tells when a read is conclusive.
    #[error("{0}")]
    InDoubt(InDoubt),
}

/// A write of which nobody knows whether it happened.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use zk_client::{OpCode, WriteError};
/// use zk_testkit::proxy::Match;
///
/// server.on(Match::reply(OpCode::CREATE2).once()).reset(); // carried out, and the answer lost
/// match zk.create("/order", b"").await {
///     Err(WriteError::InDoubt(doubt)) => {
///         println!("{doubt}: {}", doubt.cause);
///         // From here on a read is conclusive.
///         zk.settle().await?;
///         assert!(zk.exists("/order").await?.is_some());
///     }
///     other => println!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{op} in doubt")]
#[must_use = "the write may have happened"]
pub struct InDoubt {
    /// The operation.
    pub op: OpCode,
    /// Why there was no answer.
    #[source]
    pub cause: Cause,
}

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
    /// The answer is longer than this client takes. The connection was lost over it.
    #[error(
        "reply of {len} bytes exceeds the limit of {len_max}: see ConnectOptions::reply_len_max"
    )]
    ReplyTooLarge {
        /// Its length in bytes.
        len: usize,
        /// The [limit](crate::ConnectOptions::reply_len_max) in bytes.
        len_max: usize,
    },
    /// Servers end the connection over the request, one after the other, though connections live without it: it is longer
    /// than they take (`jute.maxbuffer`), or there is something in it that they fail over. It is not sent again, so that
    /// everybody else's requests can be answered. Only of requests that are harmless to repeat; others are in doubt over the
    /// first connection that they cost.
    #[error("{0}")]
    CostsConnection(Box<Costly>),
    /// There was no connection, and the request was [not to wait](crate::Get::fail_fast) for one.
    #[error("not connected")]
    NotConnected,
    /// There was no answer in the [time allowed](crate::Get::timeout).
    #[error("deadline exceeded")]
    DeadlineExceeded,
    /// Too many requests are waiting or in flight already, or too many bytes of them: see
    /// [`ConnectOptions::requests_max`](crate::ConnectOptions::requests_max) and
    /// [`request_bytes_max`](crate::ConnectOptions::request_bytes_max).
    #[error("queue is full")]
    QueueFull,
    /// An argument that no server would accept.
    #[error("{0}")]
    InvalidPath(#[from] PathError),
    /// Arguments that do not go together.
    #[error("{0}")]
    InvalidArgument(&'static str),
    /// The server is throttling and has not looked at the request.
    #[error("server is throttling")]
    Throttled,
    /// The answer does not make sense.
    #[error("answer not understood: {0}")]
    Undecodable(DecodeError),
    /// The answer is one to something else than what was asked for.
    #[error("answer does not fit the request: {0}")]
    Mismatch(&'static str),
}

/// Why a session ended. It never comes back, and neither do its ephemeral nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The servers have forgotten it, or must have by now.
    #[error("session expired")]
    Expired,
    /// The servers refuse the credentials.
    #[error("authentication failed")]
    AuthFailed,
    /// It was closed by its user.
    #[error("session closed")]
    Closed,
}

/// What a server said no with.
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
    /// Ephemeral nodes are not to be had in this (local) session.
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

impl From<Over> for SessionEnd {
    fn from(over: Over) -> Self {
        match over {
            Over::Expired => Self::Expired,
            Over::AuthFailed => Self::AuthFailed,
            _ => Self::Closed,
        }
    }
}

impl From<SessionEnd> for Over {
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
            session::Cause::LinkLost(error) => Self::Disconnected(error),
            session::Cause::SessionOver(over) => Self::SessionEnded(over.into()),
            session::Cause::NotConnected => Self::NotConnected,
            session::Cause::Withdrawn => Self::DeadlineExceeded,
            session::Cause::TooLarge { len, len_max } => Self::TooLarge { len, len_max },
            session::Cause::ReplyTooLarge { len, len_max } => Self::ReplyTooLarge { len, len_max },
            session::Cause::CostsConnection(costly) => Self::CostsConnection(costly),
            other => Self::Disconnected(LinkError::Other(other.to_string())),
        }
    }
}

/// Any failure of an operation, for callers that treat them alike.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use zk_client::{Client, Error, Rejection};
///
/// async fn count_up(zk: &Client) -> Result<(), Error> {
///     let (_, stat) = zk.get("/counter").await?;
///     zk.set("/counter", b"+1").version(stat.version).await?;
///     Ok(())
/// }
///
/// match count_up(&zk).await {
///     Err(error) if error.is_in_doubt() => println!("it may have been counted: {error}"),
///     Err(error) if error.rejection() == Some(Rejection::BadVersion) => println!("once more"),
///     other => println!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Of a read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Of a write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Of making a session.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Error {
    /// Whether something may have been written although no server said so.
    #[must_use]
    pub const fn is_in_doubt(&self) -> bool {
        matches!(self, Self::Write(WriteError::InDoubt(_)))
    }

    /// What a server said no with, if one did.
    #[must_use]
    pub const fn rejection(&self) -> Option<Rejection> {
        match self {
            Self::Read(error) => error.rejection(),
            Self::Write(error) => error.rejection(),
            Self::Connect(_) => None,
        }
    }

    /// Why the session ended, if that is the cause.
    #[must_use]
    pub const fn session_end(&self) -> Option<SessionEnd> {
        match self {
            Self::Read(error) => error.session_end(),
            Self::Write(error) => error.session_end(),
            Self::Connect(ConnectError::SessionEnded(end)) => Some(*end),
            Self::Connect(_) => None,
        }
    }
}

impl ReadError {
    /// What a server said no with, if one did.
    #[must_use]
    pub const fn rejection(&self) -> Option<Rejection> {
        match self {
            Self::Rejected(rejection) => Some(*rejection),
            Self::Unavailable(_) => None,
        }
    }

    /// Why the session ended, if that is the cause.
    #[must_use]
    pub const fn session_end(&self) -> Option<SessionEnd> {
        match self {
            Self::Unavailable(cause) => cause.session_end(),
            Self::Rejected(_) => None,
        }
    }
}

impl WriteError {
    /// What a server said no with, if one did.
    #[must_use]
    pub const fn rejection(&self) -> Option<Rejection> {
        match self {
            Self::Rejected(rejection) => Some(*rejection),
            Self::NotApplied(_) | Self::InDoubt(_) => None,
        }
    }

    /// Why the session ended, if that is the cause.
    #[must_use]
    pub const fn session_end(&self) -> Option<SessionEnd> {
        match self {
            Self::NotApplied(cause) | Self::InDoubt(InDoubt { cause, .. }) => cause.session_end(),
            Self::Rejected(_) => None,
        }
    }
}

impl Cause {
    const fn session_end(&self) -> Option<SessionEnd> {
        match self {
            Self::SessionEnded(end) => Some(*end),
            _ => None,
        }
    }
}

/// Why there is no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The connection string makes no sense.
    #[error("connection string: {0}")]
    InvalidServers(#[from] ServersError),
    /// No server made a session in time. Some may be reachable but not part of a quorum.
    #[error("no session within the time allowed; last attempt: {}", LastAttempt(last))]
    TimedOut {
        /// The last attempt that failed: server and reason.
        last: Option<(Arc<str>, LinkError)>,
    },
    /// The servers refused.
    #[error("{0}")]
    SessionEnded(SessionEnd),
    /// The [margin](crate::ConnectOptions::lease_margin) leaves nothing of the lease.
    #[error("a lease margin of {margin:?} leaves nothing of a session timeout of {timeout:?}")]
    LeaseMargin {
        /// The margin.
        margin: Duration,
        /// The session timeout that was wished for.
        timeout: Duration,
    },
    /// The system gave no random numbers.
    #[error("no randomness: {0}")]
    Entropy(String),
}

/// How [`ConnectError::TimedOut`] tells of the last attempt.
struct LastAttempt<'a>(&'a Option<(Arc<str>, LinkError)>);

impl fmt::Display for LastAttempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((server, error)) => write!(f, "{server}: {error}"),
            None => f.write_str("still under way"),
        }
    }
}

/// What is wrong with a connection string.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServersError {
    /// It names no server.
    #[error("no server named")]
    Empty,
    /// A server's address makes no sense.
    #[error("{0:?} is not HOST, HOST:PORT or [IPV6]:PORT")]
    Address(String),
    /// A list of other servers for a client that has its chroot already.
    #[error("a chroot where only servers are to be named")]
    UnexpectedChroot,
    /// What follows the servers is not a path.
    #[error("{0}")]
    Chroot(#[from] PathError),
}
