//! Any failure, and those of what is made of several requests.

use zk_proto::path::PathError;

use crate::{
    error::{
        Cause, ConnectError, MultiError, ReadError, Rejection, ServersError, SessionEnd, WriteError,
    },
    watch::WatchEnd,
};

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
    /// Of a transaction: a server has refused one of its operations.
    #[error(transparent)]
    Multi(#[from] MultiError),
    /// Of deleting a node and everything below it.
    #[error(transparent)]
    DeleteRecursive(#[from] Box<DeleteRecursiveError>),
    /// Of making a session.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Of a session: it is over, and with it what was waited for.
    #[error(transparent)]
    Session(#[from] SessionEnd),
    /// Of a watch that goes on.
    #[error(transparent)]
    Watch(#[from] WatchEnd),
    /// Of closing a session.
    #[error(transparent)]
    Close(#[from] CloseError),
    /// Of a path that is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Of something that needs no answer.
    #[error(transparent)]
    Cause(#[from] Cause),
}

impl From<ServersError> for Error {
    fn from(error: ServersError) -> Self {
        Self::Connect(error.into())
    }
}

impl From<DeleteRecursiveError> for Error {
    fn from(error: DeleteRecursiveError) -> Self {
        Self::DeleteRecursive(Box::new(error))
    }
}

impl Error {
    /// Whether something may have been written although no server said so.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        match self {
            Self::Write(error) => matches!(error, WriteError::InDoubt(_)),
            Self::DeleteRecursive(error) => error.error.is_in_doubt(),
            _ => false,
        }
    }

    /// What a server said no with, if one did.
    #[must_use]
    pub fn rejection(&self) -> Option<Rejection> {
        match self {
            Self::Read(error) => error.rejection(),
            Self::Write(error) => error.rejection(),
            Self::Multi(error) => Some(error.rejection),
            Self::DeleteRecursive(error) => error.error.rejection(),
            _ => None,
        }
    }

    /// Why the session ended, if that is the cause.
    #[must_use]
    pub fn session_end(&self) -> Option<SessionEnd> {
        match self {
            Self::Read(error) => error.session_end(),
            Self::Write(error) => error.session_end(),
            Self::DeleteRecursive(error) => error.error.session_end(),
            Self::Connect(ConnectError::SessionEnded(end))
            | Self::Session(end)
            | Self::Watch(WatchEnd::Session(end))
            | Self::Close(CloseError::Ended(end))
            | Self::Cause(Cause::SessionEnded(end)) => Some(*end),
            _ => None,
        }
    }
}

/// Why a node and everything below it could not be deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{deleted} nodes deleted before {path}: {error}")]
pub struct DeleteRecursiveError {
    /// How many nodes were certainly deleted.
    pub deleted: usize,
    /// The node that could not be.
    pub path: String,
    /// Why.
    pub error: Error,
}

/// Why a close was not confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseError {
    /// The session had ended otherwise.
    #[error("{0}")]
    Ended(SessionEnd),
    /// No server has confirmed; the session ends when it expires, if it has not been closed before.
    #[error("no server has confirmed the close")]
    Unconfirmed,
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use zk_proto::OpCode;

    use super::*;
    use crate::error::InDoubt;

    /// What stands in a log is `{}`: it says the cause, and nothing is said again by those who print sources.
    #[test]
    fn errors_say_their_causes_once() {
        let cause = || Cause::SessionEnded(SessionEnd::Expired);
        let read = ReadError::Unavailable(cause());
        let write = WriteError::NotApplied(cause());
        let doubt = WriteError::InDoubt(InDoubt { op: OpCode::SET_DATA, cause: cause() });
        let deleting = |error| DeleteRecursiveError { deleted: 2, path: "/a/b".into(), error };
        for (error, said) in [
            (Error::from(read.clone()), "read not answered: session expired"),
            (write.into(), "write not applied: session expired"),
            (doubt.into(), "setData in doubt: session expired"),
            (
                deleting(read.into()).into(),
                "2 nodes deleted before /a/b: read not answered: session expired",
            ),
            (CloseError::Ended(SessionEnd::Expired).into(), "session expired"),
            (WatchEnd::Session(SessionEnd::Expired).into(), "session expired"),
            (cause().into(), "session expired"),
        ] {
            assert_eq!(error.to_string(), said);
            assert!(error.source().is_none(), "{error}");
            assert_eq!(error.session_end(), Some(SessionEnd::Expired), "{error}");
        }
    }
}
