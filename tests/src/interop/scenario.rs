//! Which recipe, whose processes, and what has to have been seen.

use clap::ValueEnum;

use super::{
    claim::{Mode, Party, prints_its_name},
    counts::{Counts, Who},
};

/// A recipe that several implementations have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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

prints_its_name!(Scenario);

impl Scenario {
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
                        format!("{first} ({was}) {how} {second} ({is})")
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
