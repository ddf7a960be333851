//! What leases are measured by.

use std::{sync::Arc, time::Duration};

/// The time since some fixed moment: see [`ConnectOptions::clock`](crate::ConnectOptions::clock).
pub(crate) type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The production clock: `CLOCK_BOOTTIME` on Linux, elsewhere tokio's monotonic clock.
pub(crate) fn production() -> Clock {
    #[cfg(target_os = "linux")]
    {
        Arc::new(boot_time)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let start = tokio::time::Instant::now();
        Arc::new(move || start.elapsed())
    }
}

#[cfg(target_os = "linux")]
fn boot_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanoseconds)
}
