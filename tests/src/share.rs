//! How much of what they could try the tests do that try everything.
//!
//! A run of `cargo test` tries a share, drawn by the commit, so that each commit tries another; with `ZK_TESTS=whole` all of
//! it, as `.ci/nightly` does.

use std::env::{self, VarError};

use zk_testkit::sim::Rng;

use crate::sim::commit;

/// Of each so many in a row, one is in a share.
const ONE_IN: usize = 16;

/// What is tried of a row of cases.
#[derive(Debug)]
pub enum Share {
    /// Everything.
    Whole,
    /// One of each few.
    Part {
        /// Draws which.
        draw: Rng,
        /// How many there were.
        seen: usize,
        /// Which one it is of the few at hand.
        chosen: usize,
    },
}

impl Share {
    /// What the environment says is to be tried of these cases.
    ///
    /// # Panics
    /// If `ZK_TESTS` is neither `whole` nor `share`.
    pub fn of(cases: &str) -> Self {
        match env::var("ZK_TESTS").as_deref() {
            Ok("whole") => return Self::Whole,
            Ok("share") | Err(VarError::NotPresent) => {}
            other => panic!("ZK_TESTS must be `whole` or `share`, not {other:?}"),
        }
        let commit = commit();
        println!("{cases}: one in {ONE_IN}, drawn from {commit}; all of them with ZK_TESTS=whole");
        let draw = Rng::new(hash(&commit) ^ hash(cases));
        Self::Part { draw, seen: 0, chosen: 0 }
    }

    /// Whether the next case is tried.
    pub fn takes_next(&mut self) -> bool {
        let Self::Part { draw, seen, chosen } = self else { return true };
        if *seen % ONE_IN == 0 {
            *chosen = draw.index(ONE_IN);
        }
        let takes = *seen % ONE_IN == *chosen;
        *seen += 1;
        takes
    }

    /// At least so many of so many cases are tried.
    pub const fn at_least(&self, all: usize) -> usize {
        match self {
            Self::Whole => all,
            Self::Part { .. } => all / ONE_IN,
        }
    }
}

/// A number for a text, the same on every machine: FNV-1a.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough that each place of a few is drawn.
    const CASES: usize = 6_400;

    fn part(seed: u64) -> Share {
        Share::Part { draw: Rng::new(seed), seen: 0, chosen: 0 }
    }

    fn taken(mut share: Share) -> Vec<usize> {
        (0..CASES).filter(|_| share.takes_next()).collect()
    }

    #[test]
    fn share_is_one_of_each_few_and_any_of_them() {
        let taken = taken(part(7));
        let rows: Vec<usize> = taken.iter().map(|case| case / ONE_IN).collect();
        assert_eq!(rows, (0..CASES / ONE_IN).collect::<Vec<_>>());
        for place in 0..ONE_IN {
            assert!(taken.iter().any(|case| case % ONE_IN == place), "{place} is never tried");
        }
        assert_eq!(part(7).at_least(CASES), taken.len());
    }

    #[test]
    fn another_commit_tries_other_cases() {
        assert_ne!(taken(part(hash("a1"))), taken(part(hash("a2"))));
    }

    #[test]
    fn whole_leaves_out_nothing() {
        assert_eq!(taken(Share::Whole).len(), CASES);
        assert_eq!(Share::Whole.at_least(CASES), CASES);
    }
}
