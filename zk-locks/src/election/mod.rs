//! Elections: one leader at a time, and the next one known.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::{Client, MultiError, ReadError, Rejection, Stat, WriteError};

use crate::{
    Status,
    builder::Builder,
    contender::Contender,
    error::{AcquireError, CheckError, Lost, ReleaseError},
    guard::Guard,
    layout::Role,
    line::Line,
    queue::Queue,
    ticket::Ticket,
};

mod latch;
mod leaders;

pub use self::{
    latch::{LatchState, LeaderLatch},
    leaders::{Leader, Leaders},
};

/// An election: whoever has stood for longest leads, until it resigns or is lost.
///
/// A campaign costs what a [`Lock`](crate::Lock) does, a proclamation one request, and whoever follows pays two reads
/// for each change. A leader that is [lost](Guard::lost) stops what it does, and stands again behind all others if it
/// wants to; a [`LeaderLatch`] does so by itself.
///
/// It is a lock whose holder says who it is, and whom others can watch. Nodes are those of Curator's
/// `LeaderLatch` (or of kazoo's `Election`, by the [layout](Builder::layout)): its users stand in the same
/// election on the same path.
///
/// ```
/// # async fn lead(_: &zk_locks::Leadership) {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::Election;
///
/// let election = Election::new(&zk, "/elections/scheduler");
/// let leadership = election.campaign(b"10.0.0.7:8080").await?;
/// // Stops as soon as it is not certain any more that we lead.
/// leadership.scope(lead(&leadership)).await?;
/// leadership.resign().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    line: Arc<Line>,
}

/// Settings of an [`Election`]. The [description](Builder::description) is not used: candidates say themselves
/// what is to be known of them.
pub type ElectionBuilder = Builder<Election>;

impl Election {
    /// An election under `path`, with default settings. The path is created at the first campaign, as for
    /// [`Lock::new`](crate::Lock::new).
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// An election under `path`, with settings.
    pub fn builder(client: &Client, path: &str) -> ElectionBuilder {
        Builder::new(client, path, |line| Self { line: Arc::new(line) })
    }

    /// Stands for the election with what others are to know, such as an address, and waits until elected.
    ///
    /// Two requests in one round trip if nobody else stands; while waiting, two more, and one notification
    /// for the end of the one in front. Other implementations show the data as text: let it be UTF-8.
    ///
    /// Dropping the future is standing down, wherever it was: no node stays behind.
    ///
    /// # Errors
    /// [`AcquireError`], as for [`Lock::acquire`](crate::Lock::acquire).
    pub async fn campaign(&self, data: &[u8]) -> Result<Leadership, AcquireError> {
        let place = self.line.join_with(Role::Lead, None, data).await?;
        let guard = Ticket::new(self.line.clone(), place).wait().await?;
        Ok(Leadership { guard })
    }

    /// As [`campaign`](Election::campaign), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; the node is removed in the background.
    pub async fn campaign_timeout(
        &self,
        data: &[u8],
        time: Duration,
    ) -> Result<Leadership, AcquireError> {
        timeout(time, self.campaign(data)).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Stands for the election again and again as long as the session lives: see [`LeaderLatch`].
    #[must_use = "dropping it is standing down"]
    pub fn latch(&self, data: &[u8]) -> LeaderLatch {
        LeaderLatch::new(self.clone(), data)
    }

    /// Follows who leads, without standing. Nothing happens before its first [`next`](Leaders::next).
    #[must_use]
    pub fn observe(&self) -> Leaders {
        Leaders::new(&self.line)
    }

    /// The queue of candidates, to look at it from outside, or take somebody out of it.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.line.queue()
    }

    /// Who stands, the leader first. Their data is their description, as text.
    ///
    /// Two round trips, and one read for each of them.
    ///
    /// # Errors
    /// [`ReadError`] if they cannot be read. An election in which nobody has ever stood has no candidates.
    pub async fn candidates(&self) -> Result<Vec<Contender>, ReadError> {
        self.queue().contenders().await
    }
}

/// The lead in an election. What a [`Guard`] can, it can: token, loss, check, scope.
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
/// let leader = election.observe().next().await?.ok_or("we lead")?;
/// assert_eq!((&leader.data[..], leader.token), (&b"10.0.0.7:8080"[..], leadership.token()));
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it resigns"]
pub struct Leadership {
    guard: Guard,
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
    /// Tells [observers](Election::observe) something else: writes the data of our node, if it is there. The
    /// [token](Guard::token) stays what it was. One request.
    ///
    /// Dropping the future does not stop the write once it has been polled.
    ///
    /// # Errors
    /// [`CheckError::Lost`] if we do not lead any more; nothing was written then.
    /// [`CheckError::Unavailable`] if the write was not confirmed. It may have happened if the error in it says
    /// so; to proclaim the same again does no harm.
    pub async fn proclaim(&self, data: &[u8]) -> Result<Stat, CheckError> {
        if let Status::Lost(lost) = self.status() {
            return Err(lost.into());
        }
        let client = self.guard.held().client();
        let outcome = client.multi().check(self.path()).set(self.path(), data).await;
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

    /// Resigns, and waits until the next one can lead: as [`Guard::release`].
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn resign(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.guard.release()
    }
}
