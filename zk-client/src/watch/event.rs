//! What watches tell.

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
    /// What.
    pub kind: EventType,
    /// To which node, relative to the client's chroot.
    pub path: String,
    /// The transaction that did it. Servers before 3.9 do not say, and none does for an event that was
    /// missed while disconnected.
    pub zxid: Option<Zxid>,
}

/// What has become of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Kept,
    /// There was no room, and what had been kept has gone too.
    Lagged,
}

/// How far a persistent watch sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WatchMode {
    /// The node itself: created, written, deleted; and its set of children.
    Node,
    /// The node and everything below it: created, written, deleted. What it says of a child it does not say of the
    /// set of children again.
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

/// What a [`WatchStream`](crate::WatchStream) has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchItem {
    /// Something happened to a node.
    Event(NodeEvent),
    /// Something may have happened that nobody will tell: whoever keeps a picture of the nodes reads all of them
    /// anew. What happens after this is told.
    Resync(Resync),
}

/// Why events may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resync {
    /// The connection was lost, and there is a new one. Servers do not tell what happened in between. (Also after
    /// both kinds of watches were set on one path of a server before 3.9, which cannot keep them apart.)
    Reconnected,
    /// More events came than are kept for a slow reader: see [`AddWatch::capacity`](crate::AddWatch::capacity).
    Lagged,
}

/// Why a [`WatchStream`](crate::WatchStream) has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum WatchEnd {
    /// The session is over.
    #[error("{0}")]
    Session(SessionEnd),
    /// The session has moved to a server of before 3.6, which has no such watches.
    #[error("the server has no persistent watches")]
    Unsupported,
    /// Somebody has [removed](crate::Client::remove_watches) it.
    #[error("the watch was removed")]
    Removed,
}
