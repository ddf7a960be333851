//! Chance from a seed, by an algorithm that will not change: seeds of failures must not expire.

use std::time::Duration;

/// `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Less than `bound`, up to a bias that does not matter here; 0 if that is 0.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        let chance = self.next();
        match chance.checked_rem(bound) {
            Some(chance) => chance,
            None => 0,
        }
    }

    /// The same for places in a list.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.index(items.len())]
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
