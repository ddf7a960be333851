//! Histograms of durations.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// How many buckets a [`Histogram`] has.
const BUCKETS: usize = 40;

/// Durations in buckets by powers of two of a microsecond: from below 1 us to above 3 days, in 328 bytes, without a
/// lock.
///
/// ```
/// use std::time::Duration;
/// use zk_client::Histogram;
///
/// let waits = Histogram::default();
/// for millis in [1, 2, 3, 900] {
///     waits.add(Duration::from_millis(millis));
/// }
/// assert_eq!((waits.count(), waits.sum()), (4, Duration::from_millis(906)));
/// // At most twice the actual value.
/// assert!(waits.quantile(0.75).is_some_and(|most| most < Duration::from_millis(6)));
/// ```
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    /// In microseconds.
    sum: AtomicU64,
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("sum", &self.sum())
            .field("median", &self.quantile(0.5))
            .field("at_most", &self.quantile(1.0))
            .finish()
    }
}

/// Adds to a count with a single writer: at no more than the cost of a load and a store.
pub(crate) fn raise_alone(count: &AtomicU64, by: u64) {
    count.store(count.load(Relaxed).wrapping_add(by), Relaxed);
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; BUCKETS], sum: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Counts one duration.
    pub fn add(&self, duration: Duration) {
        let (count, micros) = self.place(duration);
        count.fetch_add(1, Relaxed);
        self.sum.fetch_add(micros, Relaxed);
    }

    /// As `add`, but cheaper, for a single writer.
    pub(crate) fn add_alone(&self, duration: Duration) {
        let (count, micros) = self.place(duration);
        raise_alone(count, 1);
        raise_alone(&self.sum, micros);
    }

    /// Returns the bucket of a duration, and its microseconds.
    fn place(&self, duration: Duration) -> (&AtomicU64, u64) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        (&self.counts[bucket.min(BUCKETS - 1)], micros)
    }

    /// Returns each limit with the number of durations up to it that are beyond the one before: buckets, which Prometheus
    /// wants added up. The last one has no limit.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        self.counts.iter().enumerate().map(|(bucket, count)| {
            let limit = (bucket < BUCKETS - 1).then(|| Duration::from_micros((1 << bucket) - 1));
            (limit, count.load(Relaxed))
        })
    }

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets().map(|(_, count)| count).sum()
    }

    /// Returns the sum of all durations.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum.load(Relaxed))
    }

    /// Returns a duration that this share of all durations does not exceed; at most twice the smallest such. `None` if
    /// there are none, or if it is beyond all limits.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let counts: Vec<_> = self.buckets().collect();
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float becomes an integer by saturating, and counts stay below 2^53"
        )]
        let rank = ((all as f64 * share).ceil() as u64).clamp(1, all.max(1));
        let mut below = 0;
        counts.into_iter().find_map(|(limit, count)| {
            below += count;
            (below >= rank).then_some(limit)
        })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_bounds_its_share_of_samples() {
        let histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for micros in [0, 1, 3, 100, 100_000] {
            histogram.add(Duration::from_micros(micros));
        }
        assert_eq!(histogram.count(), 5);
        assert_eq!(histogram.sum(), Duration::from_micros(100_104));
        let at = |share| histogram.quantile(share).unwrap().as_micros();
        assert_eq!(
            [at(0.0), at(0.2), at(0.4), at(0.6), at(0.8), at(1.0)],
            [0, 0, 1, 3, 127, 131_071]
        );
        let shown =
            "Histogram { count: 5, sum: 100.104ms, median: Some(3µs), at_most: Some(131.071ms) }";
        assert_eq!(format!("{histogram:?}"), shown);
        histogram.add(Duration::MAX);
        assert_eq!(histogram.quantile(1.0), None);
    }
}
