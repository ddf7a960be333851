//! The one place that reads a clock.

use std::{sync::Arc, time::Duration};

/// A clock for sessions: how long ago was some fixed moment?
///
/// It must never go back, and should go on while the machine sleeps: a session expires on the servers'
/// clocks meanwhile, and whoever holds a lock through it must find out on waking.
pub trait Clock: Send + Sync + 'static {
    /// Time since a moment of the clock's own choice.
    fn now(&self) -> Duration;
}

/// The clock for production: `CLOCK_BOOTTIME` on Linux, elsewhere the monotonic clock of tokio.
///
/// Under a paused tokio runtime choose [`TokioClock`] instead, with which time stands still.
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
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    epoch: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that begins now.
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
