//! Which recipe, whose processes, and what has to have been seen.

use std::{fmt, str::FromStr};

use super::{
    claim::{Mode, Party},
    counts::{Counts, Who},
};

/// A recipe that several implementations have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// `Lock`, Curator's `InterProcessMutex`, and kazoo's `Lock` with Curator's names.
    Exclusive,
    /// `RwLock` and Curator's `InterProcessReadWriteLock`, both with downgrades.
    ReadWrite,
    /// `Semaphore` and Curator's `InterProcessSemaphoreV2`.
    Semaphore,
    /// `LeaderLatch` and Curator's `LeaderLatch`.
    Leader,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Exclusive, Self::ReadWrite, Self::Semaphore, Self::Leader];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::ReadWrite => "read-write",
            Self::Semaphore => "semaphore",
            Self::Leader => "leader",
        }
    }

    /// The participants.
    #[must_use]
    pub const fn parties(self) -> &'static [Party] {
        match self {
            Self::Exclusive => &[Party::Ours, Party::Curator, Party::Kazoo],
            Self::ReadWrite | Self::Semaphore | Self::Leader => &[Party::Ours, Party::Curator],
        }
    }

    /// How many may have a lease at a time.
    #[must_use]
    pub const fn permits(self) -> usize {
        match self {
            Self::Semaphore => 3,
            Self::Exclusive | Self::ReadWrite | Self::Leader => 1,
        }
    }

    /// The nodes that have no children when no contender is there.
    #[must_use]
    pub fn queues(self, path: &str) -> Vec<String> {
        match self {
            Self::Semaphore => vec![format!("{path}/locks"), format!("{path}/leases")],
            Self::Exclusive | Self::ReadWrite | Self::Leader => vec![path.to_owned()],
        }
    }

    /// What has not been seen yet of what two implementations can do to each other.
    #[must_use]
    pub fn unseen(self, parties: &[Party], counts: &Counts) -> Vec<String> {
        use Mode::{Alone, Downgraded, Lease, Read};
        let (handed_over, shared): (&[_], &[_]) = match self {
            Self::Exclusive | Self::Leader => (&[(Alone, Alone)], &[]),
            Self::ReadWrite => (
                &[(Alone, Alone), (Alone, Read), (Read, Alone), (Downgraded, Alone)],
                &[(Read, Read), (Downgraded, Read)],
            ),
            Self::Semaphore => (&[], &[(Lease, Lease)]),
        };
        let mut unseen = Vec::new();
        for &first in parties {
            for &second in parties.iter().filter(|second| **second != first) {
                let pair = |modes: &(Mode, Mode)| ((first, modes.0), (second, modes.1));
                let seen = |pairs: &[_], seen: &dyn Fn(&(Who, Who)) -> bool, how: &str| {
                    let missing = pairs.iter().map(pair).filter(|pair| !seen(pair));
                    let told = |((first, was), (second, is)): (Who, Who)| {
                        format!("{first} ({}) {how} {second} ({})", was.name(), is.name())
                    };
                    missing.map(told).collect::<Vec<_>>()
                };
                unseen.extend(seen(
                    handed_over,
                    &|pair| counts.handed_over.contains_key(pair),
                    "before",
                ));
                unseen.extend(seen(shared, &|pair| counts.shared.contains_key(pair), "beside"));
            }
        }
        unseen
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scenario| scenario.name() == text);
        found.ok_or_else(|| format!("no scenario is called {text}"))
    }
}
