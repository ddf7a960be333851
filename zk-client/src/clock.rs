//! The one place that reads a clock.

use std::{sync::Arc, time::Duration};

/// A clock for sessions: the time since some fixed moment.
///
/// It must never go back, and should advance while the machine sleeps: a session expires on the servers' clocks
/// meanwhile, and a lock holder must notice on waking.
///
/// ```
/// use std::{
///     sync::{
///         Arc,
///         atomic::{AtomicU64, Ordering},
///     },
///     time::Duration,
/// };
/// use zk_client::{Clock, ConnectOptions};
///
/// /// For tests: the machine sleeps when the test says so.
/// #[derive(Clone, Default)]
/// struct ByHand(Arc<AtomicU64>);
///
/// impl Clock for ByHand {
///     fn now(&self) -> Duration {
///         Duration::from_millis(self.0.load(Ordering::Relaxed))
///     }
/// }
///
/// let clock = ByHand::default();
/// let options = ConnectOptions::new("zk1:2181")?.clock(clock.clone());
/// clock.0.fetch_add(20_000, Ordering::Relaxed); // twenty seconds later
/// # drop(options);
/// # Ok::<(), zk_client::ServersError>(())
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Time since a moment of the clock's choice.
    fn now(&self) -> Duration;
}

/// The production clock: `CLOCK_BOOTTIME` on Linux, elsewhere tokio's monotonic clock.
///
/// Under a paused tokio runtime use [`TokioClock`], which pauses too.
pub(crate) fn production() -> Arc<dyn Clock> {
    #[cfg(target_os = "linux")]
    {
        Arc::new(boot::BootClock)
    }
    #[cfg(not(target_os = "linux"))]
    {
        Arc::new(TokioClock::new())
    }
}

/// Tokio's monotonic clock, which tests can pause. It stands still while the machine sleeps.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use zk_client::{ConnectOptions, TokioClock};
///
/// // In a test with `#[tokio::test(start_paused = true)]`.
/// let zk = ConnectOptions::new("zk1:2181")?.clock(TokioClock::new()).connect().await?;
/// # drop(zk);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    epoch: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { epoch: tokio::time::Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

#[cfg(target_os = "linux")]
mod boot {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    pub(super) struct BootClock;

    impl super::Clock for BootClock {
        fn now(&self) -> Duration {
            let now = clock_gettime(ClockId::Boottime);
            let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
            let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
            Duration::new(seconds, nanoseconds)
        }
    }
}
