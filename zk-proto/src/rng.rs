//! Seeded randomness, by an algorithm that will not change: seeds in bug reports must not expire.

use core::time::Duration;

/// `SplitMix64`: enough for jitter and shuffling, and nothing that needs secrecy.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in `0..=max`, up to a bias that does not matter for jitter.
    pub(crate) const fn up_to(&mut self, max: u64) -> u64 {
        let chance = self.next();
        match max.checked_add(1) {
            Some(bound) => match chance.checked_rem(bound) {
                Some(chance) => chance,
                None => 0,
            },
            None => chance,
        }
    }

    /// Uniform in `0..=max`, in whole milliseconds.
    pub(crate) fn duration_up_to(&mut self, max: Duration) -> Duration {
        Duration::from_millis(self.up_to(u64::try_from(max.as_millis()).unwrap_or(u64::MAX)))
    }

    /// A random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = usize::try_from(self.up_to(last as u64)).unwrap_or(last);
            items.swap(last, other);
        }
    }
}
