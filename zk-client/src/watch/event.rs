//! Events and items of watches.

use zk_proto::{
    AddWatchMode, EventType, Zxid,
    session::{self, WatchBy},
};

use crate::error::SessionEnd;

pub(crate) type Event = session::NodeEvent;

/// What happened to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeEvent {
    /// The kind of change.
    pub kind: EventType,
    /// The node, relative to the client's chroot.
    pub path: String,
    /// The transaction of the change. Servers before 3.9 do not report it, and none does for an event that was missed
    /// while disconnected.
    pub zxid: Option<Zxid>,
}

/// What happened to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Kept,
    /// There was no room, and the queued events were dropped too.
    Lagged,
}

/// The nodes that a persistent watch covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchMode {
    Node,
    Recursive,
}

impl WatchMode {
    pub(crate) const fn by(self) -> WatchBy {
        match self {
            Self::Node => WatchBy::Persistent,
            Self::Recursive => WatchBy::Recursive,
        }
    }

    pub(crate) const fn on_wire(self) -> AddWatchMode {
        match self {
            Self::Node => AddWatchMode::PERSISTENT,
            Self::Recursive => AddWatchMode::PERSISTENT_RECURSIVE,
        }
    }
}

/// An item of a [`WatchStream`](crate::WatchStream).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchItem {
    /// Something happened to a node.
    Event(NodeEvent),
    /// Events may be missing: a reader that keeps a copy of the nodes reads all of them again. Later events are
    /// reported.
    Resync(Resync),
}

/// Why events may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resync {
    /// The connection was lost, and there is a new one. Servers do not report what happened in between. (Also after
    /// both kinds of watches were set on one path of a server before 3.9, which cannot distinguish them, or of a newer one
    /// that has sent no event so far, by which it is known.)
    Reconnected,
    /// More events arrived than are kept for a slow reader: see [`Request::capacity`](crate::Request::capacity).
    Lagged,
}

/// Why a [`WatchStream`](crate::WatchStream) has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum WatchEnd {
    /// The session is over.
    #[error("{0}")]
    Session(SessionEnd),
    /// The session has moved to a server before 3.6, which has no persistent watches.
    #[error("the server has no persistent watches")]
    Unsupported,
    /// The watch was [removed](crate::Client::remove_watches).
    #[error("the watch was removed")]
    Removed,
}
