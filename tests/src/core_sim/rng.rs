//! Chance from a seed.

use std::time::Duration;

/// The testkit's generator, and what plans are drawn with.
#[derive(Clone, Debug)]
pub(crate) struct Rng(zk_testkit::sim::Rng);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(zk_testkit::sim::Rng::new(seed))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// Less than `bound`, up to a bias that does not matter here; 0 if that is 0.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// The same for places in a list.
    pub(crate) const fn index(&mut self, len: usize) -> usize {
        self.0.index(len)
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        *self.0.pick(items)
    }

    /// True so many times out of a thousand.
    pub(crate) const fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// From `least` up to, but not including, `most`, in microseconds.
    pub(crate) const fn micros(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_micros(least + self.below(most - least))
    }
}
