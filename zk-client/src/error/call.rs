//! Errors of failed requests: whether they were applied.

use zk_proto::OpCode;

use super::cause::{Cause, Rejection, SessionEnd};

/// Why a read failed. Reads change nothing, so there is no doubt to report.
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
    /// A server answered with an error.
    #[error("{0}")]
    Rejected(Rejection),
    /// There was no reply.
    #[error("read not answered: {0}")]
    Unavailable(Cause),
}

/// Why a write did not succeed, as far as is known.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use zk_client::{OpCode, Rejection, WriteError};
/// use zk_testkit::proxy::Match;
///
/// zk.create("/order", b"").await?;
/// let error = zk.create("/order", b"").await.unwrap_err();
/// assert_eq!(error.rejection(), Some(Rejection::NodeExists));
///
/// // Carried out, and the answer lost. The rule holds until its handle is dropped.
/// let lost = server.on(Match::reply(OpCode::CREATE2).once()).reset();
/// match zk.create("/order/1", b"").await {
///     Err(WriteError::InDoubt { op, cause }) => {
///         println!("{op}: {cause}");
///         // From here on a read is conclusive.
///         zk.resolve_in_doubt().await?;
///         assert!(zk.exists("/order/1").await?.is_some());
///     }
///     other => println!("{other:?}"),
/// }
/// # assert_eq!(lost.times_fired(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A server answered with an error. Nothing was written.
    #[error("{0}")]
    Rejected(Rejection),
    /// The request never reached a server, or was rejected unread. Nothing was written.
    #[error("write not applied: {0}")]
    NotApplied(Cause),
    /// The request was sent and not answered. It may or may not be applied, now or a little later;
    /// [`Client::resolve_in_doubt`](crate::Client::resolve_in_doubt) returns once a read is conclusive.
    #[error("{op} in doubt: {cause}")]
    InDoubt {
        /// The operation.
        op: OpCode,
        /// Why there was no reply.
        cause: Cause,
    },
}

impl ReadError {
    /// Returns the error a server answered with, if one did.
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
    /// Returns the error a server answered with, if one did.
    #[must_use]
    pub const fn rejection(&self) -> Option<Rejection> {
        match self {
            Self::Rejected(rejection) => Some(*rejection),
            Self::NotApplied(_) | Self::InDoubt { .. } => None,
        }
    }

    /// Why the session ended, if that is the cause.
    #[must_use]
    pub const fn session_end(&self) -> Option<SessionEnd> {
        match self {
            Self::NotApplied(cause) | Self::InDoubt { cause, .. } => cause.session_end(),
            Self::Rejected(_) => None,
        }
    }
}
