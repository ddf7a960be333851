//! Chance from a seed, by an algorithm that will not change: seeds in bug reports must not expire.

#[cfg(feature = "sim")]
use std::time::Duration;

/// The next number of `SplitMix64`, whose whole state is one number.
pub(crate) const fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// `SplitMix64`, and what can be drawn from it.
#[cfg(feature = "sim")]
#[derive(Clone, Debug)]
pub struct Rng(u64);

#[cfg(feature = "sim")]
impl Rng {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The sequence of the `index`-th of many, as if each had a seed of its own.
    #[must_use]
    pub const fn stream(seed: u64, index: u64) -> Self {
        let mixed = seed ^ index.rotate_left(32).wrapping_mul(0xA24B_AED4_963E_E407);
        Self(Self(mixed).next())
    }

    /// A sequence of its own for some part of a simulation, so that what one part draws does not
    /// depend on how much the others have drawn.
    #[must_use]
    pub fn fork(&self, part: u64) -> Self {
        let mut other = Self(self.0 ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        Self(other.next())
    }

    /// Any number.
    pub const fn next(&mut self) -> u64 {
        next(&mut self.0)
    }

    /// A number below `bound`; 0 if that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        let chance = self.next();
        if bound == 0 { 0 } else { chance % bound }
    }

    /// A number of `low..=high`.
    pub const fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// A number of `low..=high`, small ones as likely as large ones of the same order of magnitude.
    pub const fn scaled(&mut self, low: u64, high: u64) -> u64 {
        let low_bits = u64::BITS - low.leading_zeros();
        let high_bits = u64::BITS - high.leading_zeros();
        let bits = self.within(low_bits as u64, high_bits as u64);
        let ceiling = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        let number = self.within(ceiling / 2, ceiling);
        if number < low {
            low
        } else if number > high {
            high
        } else {
            number
        }
    }

    /// Whether something happens that happens once in `times`.
    pub const fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Whether something happens that happens so many times out of a thousand.
    pub const fn per_mille(&mut self, times: u64) -> bool {
        self.below(1000) < times
    }

    /// An index of something of this length.
    #[expect(clippy::cast_possible_truncation, reason = "below an index")]
    pub const fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of these.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// A copy of one of these.
    ///
    /// # Panics
    /// If there is none.
    pub fn one_of<T: Clone>(&mut self, items: &[T]) -> T {
        self.pick(items).clone()
    }

    /// A copy of one of these, each as often as its weight says.
    ///
    /// # Panics
    /// If there is none, or none has a weight.
    pub fn weighted<T: Clone>(&mut self, items: &[(usize, T)]) -> T {
        let mut left = self.index(items.iter().map(|(weight, _)| weight).sum());
        let mut items = items.iter();
        loop {
            let (weight, item) =
                items.next().expect("what is left is below the sum of the weights");
            if left < *weight {
                return item.clone();
            }
            left -= weight;
        }
    }

    /// So many whole milliseconds.
    pub const fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.within(low, high))
    }

    /// From `least` up to, but not including, `most` microseconds.
    pub const fn micros(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_micros(least + self.below(most - least))
    }

    /// A random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.index(last + 1);
            items.swap(last, other);
        }
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_is_for_ever() {
        let mut rng = Rng::new(1);
        assert_eq!(rng.next(), 0x910A_2DEC_8902_5CC1);
        assert_eq!(rng.next(), 0xBEEB_8DA1_658E_EC67);
        let mut fork = Rng::new(1).fork(2);
        let mut other = Rng::new(1).fork(3);
        assert_ne!(fork.next(), other.next());
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let mut rng = Rng::new(7);
        for _ in 0..10_000 {
            assert!((3..=9).contains(&rng.within(3, 9)));
            assert!((4..=40_000).contains(&rng.scaled(4, 40_000)));
            assert!(rng.below(5) < 5);
        }
        assert_eq!(rng.below(0), 0);
    }
}
