//! How long the lock stays in a process.

use std::time::Duration;

/// How long the lock stays in a process: see [`CohortLock`](crate::CohortLock).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use std::time::Duration;
/// use zk_locks::{CohortLock, OnLoss, Passing};
///
/// let terms = Passing::default().most(16).time(Duration::from_millis(20)).on_loss(OnLoss::Fail);
/// let lock = CohortLock::new(&zk, "/locks/report").passing(terms);
/// lock.acquire().await?.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "give it to `CohortLock::passing`"]
pub struct Passing {
    pub(super) most: u32,
    pub(super) time: Duration,
    pub(super) linger: Duration,
    pub(super) on_loss: OnLoss,
}

/// What happens to a cohort's waiting tasks when its node is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLoss {
    /// They queue up again behind all others, if the session is still there; otherwise they fail.
    #[default]
    Requeue,
    /// They fail.
    Fail,
}

impl Default for Passing {
    fn default() -> Self {
        Self {
            most: 64,
            time: Duration::from_millis(50),
            linger: Duration::ZERO,
            on_loss: OnLoss::default(),
        }
    }
}

impl Passing {
    /// The most tasks that hold the lock in turn while another process waits. At least 1, which is the order of asking
    /// among all processes. Default 64.
    pub const fn most(mut self, sections: u32) -> Self {
        self.most = sections;
        self
    }

    /// The longest time the lock stays in the process while another one waits; after it, the lock is not passed on any
    /// more. Default 50 ms.
    pub const fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// How long the node stays when no task wants the lock and no contender waits for it: a task that asks meanwhile
    /// gets it without a request. A contender from elsewhere waits until the cohort has learned of it. The node is
    /// deleted when the last value of the cohort is dropped. Default: not at all.
    ///
    /// A lock that was taken by [`try_acquire`](crate::CohortLock::try_acquire) while no task waited does not linger.
    pub const fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// What happens to the waiters when the node is lost.
    pub const fn on_loss(mut self, policy: OnLoss) -> Self {
        self.on_loss = policy;
        self
    }
}
