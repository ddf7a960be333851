//! How much of what they could try the tests do that try everything.
//!
//! A run of `cargo test` tries a share, drawn by the commit, so that each commit tries another; with `ZK_TESTS=whole` it
//! tries all of it, as `.ci/run` does.

use std::env::{self, VarError};

use zk_testkit::sim::Rng;

use crate::sim::commit;

/// Of each so many in a row, one is in a share.
const ONE_IN: usize = 4;

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
            Ok("whole") => Self::Whole,
            Ok("share") | Err(VarError::NotPresent) => {
                let commit = commit();
                println!("{cases}: a share, drawn from {commit}; all of them with ZK_TESTS=whole");
                Self::Part { draw: Rng::new(hash(&commit) ^ hash(cases)), seen: 0, chosen: 0 }
            }
            other => panic!("ZK_TESTS must be `whole` or `share`, not {other:?}"),
        }
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

    fn part(seed: u64) -> Share {
        Share::Part { draw: Rng::new(seed), seen: 0, chosen: 0 }
    }

    fn taken(mut share: Share) -> Vec<usize> {
        (0..400).filter(|_| share.takes_next()).collect()
    }

    #[test]
    fn share_is_one_of_each_few_and_any_of_them() {
        let taken = taken(part(7));
        let rows: Vec<usize> = taken.iter().map(|case| case / ONE_IN).collect();
        assert_eq!(rows, (0..400 / ONE_IN).collect::<Vec<_>>());
        for place in 0..ONE_IN {
            assert!(taken.iter().any(|case| case % ONE_IN == place), "{place} is never tried");
        }
        assert_eq!(part(7).at_least(400), taken.len());
    }

    #[test]
    fn another_commit_tries_other_cases() {
        assert_ne!(taken(part(hash("a1"))), taken(part(hash("a2"))));
    }

    #[test]
    fn whole_leaves_out_nothing() {
        assert_eq!(taken(Share::Whole).len(), 400);
        assert_eq!(Share::Whole.at_least(400), 400);
    }
}
