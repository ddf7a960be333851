//! The lead in an election.

use std::{fmt, ops::Deref};

use zk_client::{MultiError, Rejection, Stat, WriteError};

use crate::{
    error::{CheckError, Lost, ReleaseError},
    guard::{Guard, Status},
};

/// The lead in an election. It dereferences to [`Guard`]: token, loss, check, scope.
///
/// Dropping it resigns in the background.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::Election;
///
/// let election = Election::new(&zk, "/elections/scheduler");
/// let leadership = election.campaign(b"starting").await?;
/// leadership.proclaim(b"10.0.0.7:8080").await?;
/// let leader = election.follow().next().await?.ok_or("we lead")?;
/// assert_eq!((&leader.data[..], leader.token), (&b"10.0.0.7:8080"[..], leadership.token()));
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it resigns"]
pub struct Leadership {
    pub(super) guard: Guard,
}

impl Deref for Leadership {
    type Target = Guard;
    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leadership").field(&self.guard).finish()
    }
}

impl Leadership {
    /// Publishes other data to [observers](crate::Election::follow): writes our node, if it is there. The
    /// [token](Guard::token) stays the same. One request, and one read where the node is watched, as it is after a second
    /// of leading: the event of this write uses up the watch, and what has been written might be a
    /// [request](crate::Queue::revoke) for the lead back.
    ///
    /// Dropping the future does not stop the write once it has been polled. If servers throttle it, it may even come behind a
    /// later one: await what is to be the last.
    ///
    /// # Errors
    /// [`CheckError::Lost`] if we do not lead any more; what was written before that, if anything, goes with our node.
    /// [`CheckError::Unavailable`] if the write was not confirmed. Its cause shows whether the write may have happened;
    /// proclaiming the same data again does no harm.
    pub async fn proclaim(&self, data: &[u8]) -> Result<Stat, CheckError> {
        if let Status::Lost(lost) = self.status() {
            return Err(lost.into());
        }
        let client = self.guard.held().client();
        // Submitted, so that one that waits for room is not withdrawn either.
        let outcome = client.multi().check(self.path()).set(self.path(), data).submit().await;
        if let Status::Lost(lost) = self.status() {
            return Err(lost.into());
        }
        match outcome {
            Ok(Ok(results)) => {
                let set = results.into_iter().find_map(|result| match result {
                    zk_client::OpResult::Set(stat) => Some(stat),
                    _ => None,
                });
                Ok(set.unwrap_or_default())
            }
            Ok(Err(MultiError { rejection: Rejection::NoNode, .. })) => {
                self.guard.held().lose(Lost::NodeDeleted);
                Err(Lost::NodeDeleted.into())
            }
            Ok(Err(MultiError { rejection, .. })) => {
                Err(CheckError::Unavailable(WriteError::Rejected(rejection)))
            }
            Err(error) => Err(CheckError::Unavailable(error)),
        }
    }

    /// Resigns, and waits until the next candidate can lead: as [`Guard::release`].
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn resign(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.guard.release()
    }
}
