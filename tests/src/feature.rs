//! What servers of older release lines lack.
//!
//! The one place that says so: tests ask here what to expect, and `tests/compat` holds it against every release.

use zk_testkit::real::Release;

/// Something that not all servers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// The metadata of a node in the answer to its create. Before that the client knows the transactions.
    StatAtBirth,
    /// Nodes that go when they are empty.
    Containers,
    /// Nodes that go when they are old.
    TimeToLive,
    /// The configuration as a node.
    Config,
    /// Changes of the configuration.
    Reconfig,
    /// Telling whether there is a watch.
    WatchCheck,
    /// Several reads in one request.
    MultiRead,
    /// Watches that go on.
    PersistentWatches,
    /// The paths of a session's ephemeral nodes.
    Ephemerals,
    /// The number of nodes below one.
    DescendantCount,
    /// The metadata of a node in the answer to a transaction that creates it.
    StatInMulti,
    /// Telling who a session is.
    WhoAmI,
    /// The transaction in events.
    EventZxid,
    /// Telling whether there is a watch that goes on.
    PersistentWatchCheck,
}

impl Feature {
    /// The first release line that has it.
    #[must_use]
    pub const fn since(self) -> Release {
        match self {
            Self::StatAtBirth
            | Self::Containers
            | Self::TimeToLive
            | Self::Config
            | Self::Reconfig
            | Self::WatchCheck => Release::V3_5,
            Self::MultiRead
            | Self::PersistentWatches
            | Self::Ephemerals
            | Self::DescendantCount => Release::V3_6,
            Self::StatInMulti | Self::WhoAmI => Release::V3_7,
            Self::EventZxid | Self::PersistentWatchCheck => Release::V3_9,
        }
    }

    /// Whether servers of this release line have it.
    #[must_use]
    pub fn is_in(self, release: Release) -> bool {
        release >= self.since()
    }
}
