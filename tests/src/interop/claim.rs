//! Who has the lock, and what for.

use std::fmt;

use clap::ValueEnum;

/// Whose program a contender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub enum Party {
    /// `zk-locks`.
    Ours,
    /// Curator's recipes.
    Curator,
    /// kazoo's `Lock` with Curator's names.
    Kazoo,
    /// kazoo's `Lock` as it is, which Curator's users and it do not see each other.
    KazooAsIs,
    /// go-zookeeper's `Lock`, whose names are Curator's.
    Go,
    /// One of ours that joins the queue and does not wait in it, so that the resource has something to notice.
    Impatient,
}

/// Variants print as they are called, on the wire, on the command line and in tables.
macro_rules! prints_its_name {
    ($type:ty) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let called = clap::ValueEnum::to_possible_value(self);
                f.pad(called.expect("no variant is left out").get_name())
            }
        }
    };
}
pub(super) use prints_its_name;

prints_its_name!(Party);
prints_its_name!(Mode);

/// What a contender has the lock for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
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
        write!(f, "{party} ({mode}, token {token}, {node})")
    }
}
