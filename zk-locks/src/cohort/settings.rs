//! How long the lock stays in a process.

use std::time::Duration;

use super::CohortLock;
use crate::builder::Builder;

impl Builder<CohortLock> {
    /// The most tasks that hold the lock in turn while another process waits. At least 1, which is the order of asking
    /// among all processes. Default 64.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// use std::time::Duration;
    /// use zk_locks::CohortLock;
    ///
    /// let lock = CohortLock::builder(&zk, "/locks/report")
    ///     .max_sections(16)
    ///     .max_stay(Duration::from_millis(20))
    ///     .build();
    /// lock.acquire().await?.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn max_sections(mut self, sections: u32) -> Self {
        self.settings.stay.max_sections = sections;
        self
    }

    /// The longest time the lock stays in the process while another one waits; after it, the lock is not passed on any
    /// more. Default 50 ms.
    pub const fn max_stay(mut self, time: Duration) -> Self {
        self.settings.stay.max_time = time;
        self
    }

    /// How long the node stays when no task wants the lock and no contender waits for it: a task that asks meanwhile
    /// gets it without a request. A contender from elsewhere waits until the cohort has learned of it. The node is
    /// deleted when the last value of the cohort is dropped. Default: not at all.
    ///
    /// A lock that was taken by [`try_acquire`](CohortLock::try_acquire) while no task waited does not linger.
    pub const fn linger(mut self, time: Duration) -> Self {
        self.settings.stay.linger = time;
        self
    }

    /// Fails the waiting tasks when the node is lost. Default: they queue up again behind all others, if the session is
    /// still there.
    pub const fn fail_on_loss(mut self) -> Self {
        self.settings.stay.requeues = false;
        self
    }
}
