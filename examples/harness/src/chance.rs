//! Random choices.

use std::{
    env,
    hash::{BuildHasher as _, RandomState},
    ops::Range,
};

/// Names the seed of a run that is to be repeated.
const SEED: &str = "EXAMPLES_SEED";

/// Random numbers, from a seed that is printed: `EXAMPLES_SEED=… cargo test` draws the same again.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// Draws from a new seed, or from that of the environment.
    ///
    /// # Panics
    /// The environment has one that is no number.
    #[must_use]
    pub fn from_env() -> Self {
        let seed = match env::var(SEED) {
            Ok(seed) => seed.parse().expect("EXAMPLES_SEED is a number"),
            Err(_) => RandomState::new().hash_one(0),
        };
        println!("{SEED}={seed}");
        Self(seed)
    }

    /// Another one, that draws independently of this one.
    #[must_use]
    pub const fn fork(&mut self) -> Self {
        Self(self.draw())
    }

    /// A number of the range, which is not empty.
    pub const fn of(&mut self, range: Range<u64>) -> u64 {
        range.start + self.draw() % (range.end - range.start)
    }

    /// Each of these so many times, in any order.
    ///
    /// # Panics
    /// There are more of them than a machine has room for.
    pub fn shuffled<T: Clone>(&mut self, kinds: &[T], times: usize) -> Vec<T> {
        let mut all: Vec<T> = kinds.iter().cycle().take(kinds.len() * times).cloned().collect();
        for last in (1..all.len()).rev() {
            let end = u64::try_from(last + 1).expect("it is an index");
            all.swap(last, usize::try_from(self.of(0..end)).expect("it is below an index"));
        }
        all
    }

    /// SplitMix64.
    const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
