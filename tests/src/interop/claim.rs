//! Who has the lock, and what for.

use std::{fmt, str::FromStr};

/// Whose program a contender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// `zk-locks`.
    Ours,
    /// Curator's recipes.
    Curator,
    /// kazoo's `Lock` with Curator's names.
    Kazoo,
    /// kazoo's `Lock` as it is, which Curator's users and it do not see each other.
    KazooAsIs,
    /// One of ours that joins the queue and does not wait in it, so that the resource has something to notice.
    Impatient,
}

impl Party {
    const ALL: [Self; 5] =
        [Self::Ours, Self::Curator, Self::Kazoo, Self::KazooAsIs, Self::Impatient];

    /// Its name on the wire and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Curator => "curator",
            Self::Kazoo => "kazoo",
            Self::KazooAsIs => "kazoo-as-is",
            Self::Impatient => "impatient",
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Party {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|party| party.name() == text);
        found.ok_or_else(|| format!("no party is called {text}"))
    }
}

/// What a contender has the lock for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// To be alone.
    Alone,
    /// To be there together with others who read.
    Read,
    /// The same, after having been alone.
    Downgraded,
    /// To be one of so many.
    Lease,
}

impl Mode {
    /// Its name on the wire and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Read => "read",
            Self::Downgraded => "downgraded",
            Self::Lease => "lease",
        }
    }

    /// Whether the two may never be there together.
    #[must_use]
    pub const fn excludes(self, other: Self) -> bool {
        matches!((self, other), (Self::Alone, _) | (_, Self::Alone))
    }
}

/// A contender that claims to have the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The connection that says so: no two contenders share one.
    pub connection: u64,
    /// Whose program it is.
    pub party: Party,
    /// What for.
    pub mode: Mode,
    /// The fencing token.
    pub token: i64,
    /// The lock's node. Its name has an id of the attempt in it, so that it is unique.
    pub node: String,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { party, mode, token, node, .. } = self;
        write!(f, "{party} ({}, token {token}, {node})", mode.name())
    }
}
