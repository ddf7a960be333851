//! What is waited for, and given up.

use zk_testkit::sim::Rng;

use super::pass;
use crate::polls::dropped_when_woken;

/// Wakes until something is given up, at most: a lock is there after fewer.
const WAKES_MAX: u64 = 4;

/// How long something is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    millis: u64,
    /// It is given up in the moment of this wake too: what it has been woken for is not looked at.
    wakes: Option<u64>,
}

impl Patience {
    /// At most so many milliseconds.
    pub(crate) fn drawn(rng: &mut Rng, most: u64) -> Self {
        let wakes = rng.one_in(2).then(|| rng.within(1, WAKES_MAX));
        Self { millis: rng.scaled(1, most), wakes }
    }

    /// What comes of it, unless it is given up.
    pub(crate) async fn wait<F: Future>(self, future: F) -> Option<F::Output> {
        // On the heap: it would be in the callers' futures several times.
        let future = Box::pin(future);
        tokio::select! {
            biased;
            output = dropped_when_woken(self.wakes.unwrap_or(u64::MAX), future) => output,
            () = pass(self.millis) => None,
        }
    }
}
