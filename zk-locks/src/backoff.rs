//! Pauses between attempts that others undo again and again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The pause after the second failure; it doubles with each further one, up to `PAUSE_MAX`. As those of
/// [`Retry`](zk_client::Retry).
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// An attempt that fails after this time is no repetition of the one before.
const CALM: Duration = Duration::from_secs(10);

/// How long to wait after each failure: not at all after a single one.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    last: Option<Instant>,
}

impl Backoff {
    /// The pause after another failure.
    pub(crate) fn pause(&mut self) -> Duration {
        if self.last.is_none_or(|last| last.elapsed() >= CALM) {
            self.failures = 0;
        }
        let pause = match self.failures {
            0 => Duration::ZERO,
            failures => PAUSE.saturating_mul(1 << (failures - 1).min(6)).min(PAUSE_MAX),
        };
        self.failures = self.failures.saturating_add(1);
        self.last = Some(Instant::now() + pause);
        pause
    }
}

/// Lets a pause pass: of no time, nothing, where a sleep of no time takes up to a millisecond.
pub(crate) async fn pass(pause: Duration) {
    if !pause.is_zero() {
        sleep(pause).await;
    }
}
