//! Who contends for what.

use std::fmt;

/// What one contender wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Lock,
    Read,
    Write,
    /// One of [`PERMITS`].
    Permit,
}

/// Where the locks are, and the semaphore.
pub(super) const LOCK: &str = "/lock";
pub(super) const SEMAPHORE: &str = "/semaphore";
pub(super) const LEASES: &str = "/semaphore/leases";

/// What is there from the beginning.
pub(super) const PATHS: [&str; 4] = [LOCK, SEMAPHORE, "/semaphore/locks", LEASES];

/// How many permits a semaphore has here.
pub(super) const PERMITS: u32 = 2;

/// Who contends. Each contender has a client to itself, unless it is said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Two exclusive locks: the least that there is.
    Two,
    /// Three exclusive locks.
    Three,
    /// Three exclusive locks, two of them of one client.
    Shared,
    /// A reader, a writer, and another reader.
    ReadersAndWriter,
    /// A writer, a reader, and another writer.
    WritersAndReader,
    /// Three who want one of two permits.
    Semaphore,
}

impl Scenario {
    /// All of them, the smallest first.
    pub const ALL: [Self; 6] = [
        Self::Two,
        Self::Three,
        Self::Shared,
        Self::ReadersAndWriter,
        Self::WritersAndReader,
        Self::Semaphore,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Two => "two",
            Self::Three => "three",
            Self::Shared => "shared",
            Self::ReadersAndWriter => "readers-and-writer",
            Self::WritersAndReader => "writers-and-reader",
            Self::Semaphore => "semaphore",
        }
    }

    /// The number of each contender's client, and what it wants.
    pub(super) const fn contenders(self) -> &'static [(usize, Wish)] {
        match self {
            Self::Two => &[(0, Wish::Lock), (1, Wish::Lock)],
            Self::Three => &[(0, Wish::Lock), (1, Wish::Lock), (2, Wish::Lock)],
            Self::Shared => &[(0, Wish::Lock), (0, Wish::Lock), (1, Wish::Lock)],
            Self::ReadersAndWriter => &[(0, Wish::Read), (1, Wish::Write), (2, Wish::Read)],
            Self::WritersAndReader => &[(0, Wish::Write), (1, Wish::Read), (2, Wish::Write)],
            Self::Semaphore => &[(0, Wish::Permit), (1, Wish::Permit), (2, Wish::Permit)],
        }
    }

    /// How many clients there are.
    pub(super) fn clients(self) -> usize {
        self.contenders().iter().map(|(client, _)| client + 1).max().unwrap_or(0)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
