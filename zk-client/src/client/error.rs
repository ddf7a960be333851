//! Any failure, and the failures of operations made of several requests.

use zk_proto::path::PathError;

use super::supervise::Interruption;
use crate::{
    error::{Cause, ConnectError, MultiError, ReadError, Rejection, SessionEnd, WriteError},
    watch::WatchEnd,
};

/// Any failure of an operation, for callers that treat all alike.
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
    /// A read failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A write failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A transaction failed: a server refused one of its operations.
    #[error(transparent)]
    Multi(#[from] MultiError),
    /// Deleting a node and everything below it failed.
    #[error("{deleted} nodes deleted before {path}: {error}")]
    DeleteRecursive {
        /// Number of nodes that were certainly deleted.
        deleted: usize,
        /// The node that could not be deleted.
        path: String,
        /// The reason.
        error: Box<Self>,
    },
    /// No session could be established.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The session is over, and with it whatever was awaited.
    #[error(transparent)]
    Session(#[from] SessionEnd),
    /// A persistent watch has ended.
    #[error(transparent)]
    Watch(#[from] WatchEnd),
    /// A path is invalid.
    #[error(transparent)]
    Path(#[from] PathError),
    /// An operation that needs no reply failed.
    #[error(transparent)]
    Cause(#[from] Cause),
}

/// Why a [supervised](crate::Supervise) service has stopped.
impl From<Interruption<Self>> for Error {
    fn from(interruption: Interruption<Self>) -> Self {
        match interruption {
            Interruption::NoSession(error) => error.into(),
            Interruption::SessionEnded(end) => end.into(),
            Interruption::Failed(error) => error,
        }
    }
}

impl Error {
    /// Whether something may have been written although no server confirmed it.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        match self {
            Self::Write(error) => matches!(error, WriteError::InDoubt { .. }),
            Self::DeleteRecursive { error, .. } => error.is_in_doubt(),
            _ => false,
        }
    }

    /// The error a server answered with, if one did.
    #[must_use]
    pub fn rejection(&self) -> Option<Rejection> {
        match self {
            Self::Read(error) => error.rejection(),
            Self::Write(error) => error.rejection(),
            Self::Multi(error) => Some(error.rejection),
            Self::DeleteRecursive { error, .. } => error.rejection(),
            _ => None,
        }
    }

    /// Why the session ended, if that is the cause.
    #[must_use]
    pub fn session_end(&self) -> Option<SessionEnd> {
        match self {
            Self::Read(error) => error.session_end(),
            Self::Write(error) => error.session_end(),
            Self::DeleteRecursive { error, .. } => error.session_end(),
            Self::Connect(ConnectError::SessionEnded(end))
            | Self::Session(end)
            | Self::Watch(WatchEnd::Session(end))
            | Self::Cause(Cause::SessionEnded(end)) => Some(*end),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use zk_proto::OpCode;

    use super::*;
    use crate::{client::retry::SafeToRetry as _, error::LinkError};

    /// Wherever it failed: a retry must neither repeat what may have been done, nor hope in vain.
    #[test]
    fn errors_tell_doubt_and_what_may_be_retried() {
        let over = || Cause::SessionEnded(SessionEnd::Expired);
        let lost = || Cause::Disconnected(LinkError::Reset);
        let doubt = |cause| WriteError::InDoubt { op: OpCode::SET_DATA, cause };
        let multi = |rejection| MultiError { index: 1, rejection };
        for (error, is_in_doubt, is_safe) in [
            (Error::from(ReadError::Unavailable(lost())), false, true),
            (ReadError::Unavailable(over()).into(), false, false),
            (ReadError::Rejected(Rejection::ReadOnly).into(), false, true),
            (ReadError::Rejected(Rejection::NoNode).into(), false, false),
            (WriteError::NotApplied(Cause::NotConnected).into(), false, true),
            (WriteError::NotApplied(over()).into(), false, false),
            (WriteError::Rejected(Rejection::ReadOnly).into(), false, true),
            (WriteError::Rejected(Rejection::BadVersion).into(), false, false),
            (doubt(lost()).into(), true, false),
            (doubt(Cause::DeadlineExceeded).into(), true, false),
            (multi(Rejection::ReadOnly).into(), false, true),
            (multi(Rejection::NoNode).into(), false, false),
            (Cause::Throttled.into(), false, true),
            (over().into(), false, false),
            (ConnectError::TimedOut { last: None }.into(), false, false),
        ] {
            let told = (error.is_in_doubt(), error.is_safe_to_retry());
            assert_eq!(told, (is_in_doubt, is_safe), "{error}");
            for deleted in [0, 2] {
                let error = Box::new(error.clone());
                let error = Error::DeleteRecursive { deleted, path: "/a".into(), error };
                assert_eq!(error.is_in_doubt(), is_in_doubt, "{error}");
                assert_eq!(error.is_safe_to_retry(), is_safe && deleted == 0, "{error}");
            }
        }
    }

    /// `{}` is what logs show: it includes the cause, and programs that print sources do not repeat it.
    #[test]
    fn errors_say_their_causes_once() {
        let cause = || Cause::SessionEnded(SessionEnd::Expired);
        let read = ReadError::Unavailable(cause());
        let write = WriteError::NotApplied(cause());
        let doubt = WriteError::InDoubt { op: OpCode::SET_DATA, cause: cause() };
        let deleting = |error| Error::DeleteRecursive {
            deleted: 2,
            path: "/a/b".into(),
            error: Box::new(error),
        };
        for (error, said) in [
            (Error::from(read.clone()), "read not answered: session expired"),
            (write.into(), "write not applied: session expired"),
            (doubt.into(), "setData in doubt: session expired"),
            (
                deleting(read.into()),
                "2 nodes deleted before /a/b: read not answered: session expired",
            ),
            (WatchEnd::Session(SessionEnd::Expired).into(), "session expired"),
            (cause().into(), "session expired"),
        ] {
            assert_eq!(error.to_string(), said);
            assert!(error.source().is_none(), "{error}");
            assert_eq!(error.session_end(), Some(SessionEnd::Expired), "{error}");
        }
    }
}
