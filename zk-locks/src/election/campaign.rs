//! An election, for candidates and observers.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_client::Client;

use super::{LeaderLatch, Leadership};
use crate::{
    builder::Builder,
    contender::Contender,
    error::AcquireError,
    follow::Follow,
    front::Front,
    layout::Role,
    queue::Queue,
    ticket::Ticket,
    wait_queue::{Pace, WaitQueue},
};

/// An election: the candidate that has stood for longest leads, until it resigns or is lost.
///
/// A campaign costs what a [`Lock`](crate::Lock) does, a proclamation one request and, after a second of leading, one read;
/// an observer pays two reads for each change. A leader that is [lost](crate::Guard::lost) must stop its work, and may stand
/// again behind all others; a [`LeaderLatch`] does so by itself.
///
/// It is a lock whose holder publishes data, which others can watch. Nodes are those of Curator's `LeaderLatch` (or of
/// kazoo's `Election`, by the [layout](Builder::layout)): its users stand in the same election on the same path.
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
    wait_queue: Arc<WaitQueue>,
}

impl Election {
    /// An election under `path`, with default settings. The path is created at the first campaign, as for
    /// [`Lock::new`](crate::Lock::new).
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// An election under `path`, with settings. The [description](Builder::description) is not used: candidates publish
    /// their own data.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        Builder::new(client, path, |wait_queue| Self { wait_queue: Arc::new(wait_queue) })
    }

    /// Stands for the election with data for others, such as an address, and waits until elected.
    ///
    /// Two requests in one round trip without other candidates; while waiting, two more, and one notification for the
    /// end of the predecessor. Other implementations show the data as text: use UTF-8.
    ///
    /// Dropping the future stands down at any point: no node stays behind.
    ///
    /// # Errors
    /// [`AcquireError`], as for [`Lock::acquire`](crate::Lock::acquire).
    pub async fn campaign(&self, data: &[u8]) -> Result<Leadership, AcquireError> {
        let position = self.wait_queue.join_with(Role::Lead, Pace::MayWait, data).await?;
        let guard = Ticket::new(self.wait_queue.clone(), position).until_granted().await?;
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
        LeaderLatch::new(self.wait_queue.clone(), data)
    }

    /// Follows the leader without standing: another leader, other data of the same one, or `None` if there is no leader.
    /// Sends no request before the first [`next`](Follow::next).
    ///
    /// An observer may learn of a leader before that leader does: act on its [token](Contender::token), not on its name.
    /// Each change costs two reads, one after the other, and one notification.
    #[must_use]
    pub fn follow(&self) -> Follow<Option<Contender>> {
        let WaitQueue { client, path, settings, .. } = &*self.wait_queue;
        Follow::new(Front::new(client, path, settings.filter.clone()))
    }

    /// The queue of candidates, the leader first, seen from outside: to list it, or to take a candidate out of it.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.wait_queue.queue()
    }
}
