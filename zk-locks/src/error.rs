//! Errors: why a lock was not granted, or is lost.

use crate::layout::Layout;

use zk_client::{
    Cause, ConnectError, Interruption, MultiError, ReadError, Rejection, SessionEnd, WatchEnd,
    WriteError, path::PathError,
};

/// Why a lock was not acquired. Whatever the reason, no node of the attempt stays behind, with these exceptions:
/// * A client that may create nodes at the lock's path but not list them cannot find the node of a create whose reply was lost,
///   nor can one that [cannot take](crate::ConnectOptions::reply_len_max) the list, or whose request costs one connection after
///   the other: see [`Create::protected`](zk_client::Create::protected). That node stays until the session ends.
/// * Nor does a node go that the client may not delete, unless the session, which keeps trying, is allowed to after all.
/// * Where names have no id, a node whose create was lost, and into which another client has written before it was found, such as a
///   [request for the lock back](crate::Queue::revoke), counts as another's: it stays until the session ends, and the attempt
///   waits behind it.
///
/// Otherwise the outcome is certain: the fate of a lost create is found out before anything is reported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The time allowed has passed.
    #[error("not acquired in time")]
    TimedOut,
    /// A server refused: most likely this client lacks a permission on the lock's path, or on the predecessor's node.
    #[error("{0}")]
    Rejected(Rejection),
    /// The session ended, and with it the place in the queue.
    #[error("{0}")]
    SessionEnded(SessionEnd),
    /// The lock was granted when the servers could no longer be trusted to keep the session: nothing had confirmed it for
    /// the session timeout less the [margin](crate::ConnectOptions::lease).
    #[error("the session was not confirmed in time")]
    LeaseRanOut,
    /// Another client has deleted this attempt's node from the queue.
    #[error("own node was deleted")]
    NodeDeleted,
    /// Another task of the [cohort](crate::Builder::fail_on_loss) held the lock for longer than
    /// [allowed](crate::Builder::release_after), and it is given to the next contender; or the guard that was to be
    /// [upgraded](crate::ReadGuard::try_upgrade) or downgraded was held for so long.
    #[error("lock held for too long")]
    HeldTooLong,
    /// A node that [must](crate::Builder::require_path) exist does not: the lock's path or, for recipes that are one
    /// node, its parent. Nothing was created there.
    #[error("{path} does not exist, and is not to be created")]
    PathMissing {
        /// The path of the missing node.
        path: String,
    },
    /// A node of this very session is ahead that has no owner any more, and that servers refuse to delete: the wait for
    /// it would last as long as the session. Most likely the session lacks the permission to delete below the lock's
    /// path. The session keeps trying.
    #[error("behind {path}, an orphaned node of this session: {rejection}")]
    Orphan {
        /// The path of the node.
        path: String,
        /// Why it still exists.
        rejection: Rejection,
    },
    /// The lock's path has used up its sequence numbers; later contenders could not be ordered. Delete the path (and
    /// let it be recreated) when the queue is empty.
    #[error("sequence numbers of the path are exhausted (at {sequence})")]
    SequenceExhausted {
        /// The number that the server assigned.
        sequence: i32,
    },
    /// More contenders are ahead than [allowed](crate::Builder::max_waiters).
    #[error("{ahead} are in front already")]
    QueueFull {
        /// How many.
        ahead: usize,
    },
    /// There is a node under the lock's path that belongs to no lock, and strangers are
    /// [refused](crate::ForeignNodes::Refuse).
    #[error("a stranger in the queue: {name}")]
    Stranger {
        /// The name of the node.
        name: String,
    },
    /// The [layout](crate::Builder::layout) has no names for this kind of node.
    #[error("{layout:?} has no names for this")]
    NoSuchName {
        /// The layout.
        layout: Layout,
    },
    /// This lock cannot be [downgraded](crate::WriteGuard::downgrade), as its
    /// [builder](crate::Builder::no_downgrade) was configured, its nodes have no ids, or other layouts take its
    /// [write nodes](crate::Names::read_write) for those of exclusive locks.
    #[error("the lock was built without downgrades")]
    NoDowngrade,
    /// A read lock cannot be [upgraded](crate::ReadGuard::try_upgrade): another contender waits to write, a writer or a
    /// reader that wants to upgrade too, and waits for this read lock.
    #[error("another contender waits to write until this read lock is released")]
    WouldDeadlock,
    /// The node that holds a semaphore's number of permits contains something else.
    #[error("no count in {path}")]
    NotACount {
        /// The path of the node.
        path: String,
    },
    /// The [ticket](crate::Ticket) has been used: its lock was granted, or a wait has failed.
    #[error("the ticket has been used")]
    Used,
    /// The lock's path is not a path.
    #[error("{0}")]
    InvalidPath(PathError),
    /// Any other reason why an operation was not answered.
    #[error("{0}")]
    Unavailable(Cause),
}

impl From<ReadError> for AcquireError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Rejected(rejection) => Self::Rejected(rejection),
            ReadError::Unavailable(cause) => cause.into(),
            other => Self::Unavailable(Cause::Disconnected(describe(&other))),
        }
    }
}

impl From<WriteError> for AcquireError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Rejected(rejection) => Self::Rejected(rejection),
            WriteError::NotApplied(cause) => cause.into(),
            WriteError::InDoubt { cause, .. } => cause.into(),
            other => Self::Unavailable(Cause::Disconnected(describe(&other))),
        }
    }
}

/// An error that is unknown here, as a cause.
pub(crate) fn describe(error: &dyn std::error::Error) -> zk_client::LinkError {
    zk_client::LinkError::Other(error.to_string())
}

impl From<Cause> for AcquireError {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::SessionEnded(end) => Self::SessionEnded(end),
            Cause::InvalidPath(error) => Self::InvalidPath(error),
            cause => Self::Unavailable(cause),
        }
    }
}

/// Lost between the grant and its delivery.
impl From<Lost> for AcquireError {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::SessionEnded(end) => Self::SessionEnded(end),
            Lost::LeaseRanOut => Self::LeaseRanOut,
            Lost::NodeDeleted => Self::NodeDeleted,
            Lost::HeldTooLong => Self::HeldTooLong,
        }
    }
}

/// Why a lock that was held is not held any more. It never comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// The session has ended.
    #[error("lock lost: {0}")]
    SessionEnded(SessionEnd),
    /// Nothing has confirmed the session for the session timeout less the [margin](crate::ConnectOptions::lease): the
    /// servers may have granted the lock to another contender. One that was heard from meanwhile may have been cut off
    /// from the leader. It also stands for the end of the session where a server has refused a request for that reason:
    /// that it has ended is certain with the next connection only. Of a [`DurableLock`](crate::DurableLock): its own lease
    /// is over, and was not renewed.
    #[error("lock lost: the session was not confirmed in time")]
    LeaseRanOut,
    /// The lock's node is gone, and not with the session as far as that is known: another client has deleted it. If the
    /// end of the session is not known in time (see [`Guard::lost`](crate::Guard::lost)), this stands for it.
    #[error("lock lost: own node was deleted")]
    NodeDeleted,
    /// It was held for longer than [allowed](crate::Builder::release_after), and is given to the next contender.
    #[error("lock lost: held for too long")]
    HeldTooLong,
}

/// Why a [`check`](crate::Guard::check) failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The lock is not held any more.
    #[error("{0}")]
    Lost(#[from] Lost),
    /// The servers were not reached, or refuse to answer, for want of a permission to read the node. The lock may still be
    /// held.
    #[error("ownership not confirmed: {0}")]
    Unavailable(WriteError),
}

/// Why a release was not confirmed. The caller has nothing to do under the lock any more in any case; whether others can
/// have it depends on the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The session has ended: the node goes, or has gone, with it.
    #[error("{0}")]
    SessionEnded(SessionEnd),
    /// The server refuses to delete the node. The session has not ended, the node stays, and others keep waiting for it.
    /// The session tries again when it has presented another identity or is connected anew, and now and then; the node is
    /// deleted with the session at the latest.
    #[error("{0}")]
    Refused(WriteError),
}

impl From<WriteError> for ReleaseError {
    fn from(error: WriteError) -> Self {
        match error.session_end() {
            Some(end) => Self::SessionEnded(end),
            None => Self::Refused(error),
        }
    }
}

impl ReleaseError {
    /// What it is to those who give up a place: the node of this path stays in front of others if servers refuse to delete it.
    pub(crate) fn of_node(self, path: String) -> AcquireError {
        match self {
            Self::SessionEnded(end) => AcquireError::SessionEnded(end),
            Self::Refused(WriteError::Rejected(rejection)) => {
                AcquireError::Orphan { path, rejection }
            }
            Self::Refused(error) => error.into(),
        }
    }
}

/// Of a write that a failed read has kept from being made.
pub(crate) fn nothing_written(error: ReadError) -> WriteError {
    match error {
        ReadError::Rejected(rejection) => WriteError::Rejected(rejection),
        ReadError::Unavailable(cause) => WriteError::NotApplied(cause),
        other => WriteError::NotApplied(Cause::Disconnected(describe(&other))),
    }
}

/// Any failure of a recipe or of its client: `?` converts all of them, for callers that treat them alike.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), zk_locks::Error> {
/// # let server = zk_testkit::TestServer::start().await.unwrap();
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::{Client, Error, Lock};
///
/// async fn rebuild_index(zk: &Client) -> Result<(), Error> {
///     let guard = Lock::new(zk, "/locks/index").acquire().await?;
///     let (config, _) = guard.scope(zk.get("/config")).await??;
///     println!("rebuilding with {config:?}");
///     Ok(guard.release().await?)
/// }
///
/// let error = rebuild_index(&zk).await.unwrap_err();
/// assert_eq!(error.to_string(), "rejected: NoNode", "there is no configuration");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A lock was not acquired.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// A lock was lost.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// A lock may have been lost.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A release was not confirmed.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// A request of the client failed, or there is no session.
    #[error(transparent)]
    Client(#[from] zk_client::Error),
}

impl Error {
    /// Why the session ended, if that is the cause.
    #[must_use]
    pub fn session_end(&self) -> Option<SessionEnd> {
        match self {
            Self::Acquire(AcquireError::SessionEnded(end))
            | Self::Lost(Lost::SessionEnded(end))
            | Self::Check(CheckError::Lost(Lost::SessionEnded(end)))
            | Self::Release(ReleaseError::SessionEnded(end)) => Some(*end),
            Self::Check(CheckError::Unavailable(error)) => error.session_end(),
            Self::Client(error) => error.session_end(),
            _ => None,
        }
    }
}

/// What converts into the client's error converts into this one.
macro_rules! of_the_client {
    ($($error:ty),*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Client(error.into())
            }
        }
    )*};
}

of_the_client!(
    Cause,
    ConnectError,
    MultiError,
    PathError,
    ReadError,
    SessionEnd,
    WatchEnd,
    WriteError
);

/// Why a supervised service has stopped.
impl From<Interruption<Self>> for Error {
    fn from(interruption: Interruption<Self>) -> Self {
        match interruption {
            Interruption::NoSession(error) => error.into(),
            Interruption::SessionEnded(end) => end.into(),
            Interruption::Failed(error) => error,
            other => Self::Client(Cause::Disconnected(describe(&other)).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever `?` meets in a function that takes locks and sends requests stays what it was.
    #[test]
    fn errors_keep_their_kind() {
        let end = SessionEnd::Expired;
        let of_the_client: [Error; 5] = [
            end.into(),
            Cause::SessionEnded(end).into(),
            ReadError::Unavailable(Cause::SessionEnded(end)).into(),
            WriteError::NotApplied(Cause::SessionEnded(end)).into(),
            ConnectError::SessionEnded(end).into(),
        ];
        for error in of_the_client {
            assert!(matches!(error, Error::Client(_)), "{error:?}");
            assert_eq!(error.session_end(), Some(end), "{error:?}");
        }
        let of_locks: [Error; 5] = [
            AcquireError::SessionEnded(end).into(),
            Lost::SessionEnded(end).into(),
            CheckError::Lost(Lost::SessionEnded(end)).into(),
            CheckError::Unavailable(WriteError::NotApplied(Cause::SessionEnded(end))).into(),
            ReleaseError::SessionEnded(end).into(),
        ];
        assert!(of_locks.iter().all(|error| error.session_end() == Some(end)), "{of_locks:?}");
        assert!(
            matches!(
                of_locks,
                [
                    Error::Acquire(_),
                    Error::Lost(_),
                    Error::Check(_),
                    Error::Check(_),
                    Error::Release(_)
                ]
            ),
            "{of_locks:?}"
        );
        assert_eq!(Error::from(AcquireError::TimedOut).session_end(), None);
    }
}
