//! The time that counts: operations, processor, allocations, memory.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::time::Timespec;
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats};

use crate::{report::Report, seen, task::Task};

/// One in so many operations is timed: reading the clock twice costs as much as a tenth of a small one.
const TIMED: u64 = 16;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Time(Instant),
    /// So many operations.
    Count(u64),
}

impl Until {
    /// What one of so many workers, by its number, has to do of it.
    pub(crate) const fn share(self, worker: usize, workers: usize) -> Self {
        match self {
            Self::Count(count) => {
                let (worker, workers) = (worker as u64, workers as u64);
                Self::Count(count / workers + (worker < count % workers) as u64)
            }
            Self::Time(_) => self,
        }
    }
}

/// What one worker has done that repeats an operation.
#[derive(Debug)]
pub(crate) struct Tally {
    until: Until,
    /// Every how many operations one is timed.
    timed: u64,
    begun: u64,
    pub(crate) operations: u64,
    /// Times of single operations, in nanoseconds.
    pub(crate) samples: Vec<u64>,
}

impl Tally {
    pub(crate) fn new(until: Until) -> Self {
        Self { until, timed: TIMED, begun: 0, operations: 0, samples: Vec::with_capacity(1 << 16) }
    }

    /// One that times every operation: those that take long.
    pub(crate) fn precise(until: Until) -> Self {
        Self { timed: 1, ..Self::new(until) }
    }

    /// So many, none of them timed.
    pub(crate) fn of(operations: usize) -> Self {
        Self { operations: operations as u64, ..Self::new(Until::Count(0)) }
    }

    /// Whether to begin one more; with the time, if it is to be timed.
    pub(crate) fn next(&mut self) -> Option<Option<Instant>> {
        let timed = self.begun % self.timed == 0;
        let now = timed.then(Instant::now);
        let goes_on = match self.until {
            Until::Time(end) => now.is_none_or(|now| now < end),
            Until::Count(count) => self.begun < count,
        };
        self.begun += u64::from(goes_on);
        goes_on.then_some(now)
    }

    /// One that was begun then has ended.
    pub(crate) fn ended(&mut self, begun: Option<Instant>) {
        self.operations += 1;
        if let Some(begun) = begun {
            self.took(begun.elapsed());
        }
    }

    /// What took so long is to be among the samples.
    pub(crate) fn took(&mut self, time: Duration) {
        self.samples.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.samples.extend(other.samples);
    }
}

/// When everything that is counted was looked at for the first time.
#[derive(Debug)]
pub(crate) struct Window {
    seen: Option<u64>,
    heap: Stats,
    processor: Duration,
    begun: Instant,
}

impl Window {
    /// Begins to count.
    pub(crate) fn open(task: &Task) -> Self {
        let seen = seen::requests(&task.server);
        let (heap, processor) = (INSTRUMENTED_SYSTEM.stats(), processor());
        Self { seen, heap, processor, begun: Instant::now() }
    }

    /// Ends it, and tells what has been done in it.
    pub(crate) fn close(self, client: &str, task: &Task, mut tally: Tally) -> Report {
        let elapsed = self.begun.elapsed();
        let processor = processor().saturating_sub(self.processor);
        let heap = INSTRUMENTED_SYSTEM.stats() - self.heap;
        let seen = self.seen.zip(seen::requests(&task.server));
        tally.samples.sort_unstable();
        let operations = tally.operations.max(1) as f64;
        let counted = cfg!(feature = "count-allocations");
        Report {
            client: client.to_owned(),
            workload: task.name(),
            in_flight: task.in_flight,
            payload: task.payload,
            threads: task.threads,
            style: format!("{:?}", task.style).to_lowercase(),
            unawaited: task.unawaited,
            operations: tally.operations,
            seconds: elapsed.as_secs_f64(),
            ops_per_second: tally.operations as f64 / elapsed.as_secs_f64(),
            p50_us: percentile(&tally.samples, 0.5),
            p99_us: percentile(&tally.samples, 0.99),
            p999_us: percentile(&tally.samples, 0.999),
            cpu_us_per_op: processor.as_secs_f64() * 1e6 / operations,
            cpu_share: processor.as_secs_f64() / elapsed.as_secs_f64(),
            allocations_per_op: counted
                .then_some((heap.allocations + heap.reallocations) as f64 / operations),
            heap_bytes: counted.then(live_heap),
            resident_kib: status("VmRSS:"),
            peak_kib: status("VmHWM:"),
            // Asking for the second time is a request too.
            requests_seen: seen.map(|(before, after)| after.saturating_sub(before + 1)),
            more: serde_json::Map::default(),
        }
    }
}

/// Time that this process has had of processors, the system's on its behalf included.
fn processor() -> Duration {
    let usage = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let Timespec { tv_sec, tv_nsec } = usage;
    Duration::new(u64::try_from(tv_sec).unwrap_or_default(), u32::try_from(tv_nsec).unwrap_or(0))
}

/// Bytes on the heap, if allocations are counted.
pub(crate) fn live_heap() -> usize {
    let stats = INSTRUMENTED_SYSTEM.stats();
    let grown = isize::try_from(stats.bytes_allocated).unwrap_or(isize::MAX)
        - isize::try_from(stats.bytes_deallocated).unwrap_or(isize::MAX);
    usize::try_from(grown).unwrap_or_default()
}

/// In microseconds.
fn percentile(sorted: &[u64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = (last as f64 * share).round() as usize;
    sorted.get(at).map(|&nanoseconds| nanoseconds as f64 / 1e3)
}

/// A figure in KiB that the system has of this process.
pub(crate) fn status(key: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_samples() {
        let samples: Vec<u64> = (0..=1000).map(|n| n * 1000).collect();
        assert_eq!(percentile(&samples, 0.5), Some(500.0));
        assert_eq!(percentile(&samples, 0.999), Some(999.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn tally_starts_exactly_the_given_count() {
        let mut tally = Tally::new(Until::Count(40));
        let begun = std::iter::from_fn(|| tally.next()).collect::<Vec<_>>();
        assert_eq!(begun.len(), 40);
        assert_eq!(begun.iter().flatten().count(), 3, "one in sixteen is timed");
    }
}
