//! Notices for watchers.

use alloc::sync::Arc;

use crate::{
    data::{EventType, Zxid},
    session::fault::CloseReason,
};

/// A notice for a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchNotice {
    /// A node has changed.
    Event(NodeEvent),
    /// Persistent watches only: the watch was armed again on a new connection. Servers do not report the changes in
    /// between.
    Gap,
    /// Persistent watches only: the session's present server has no such watches. Last.
    Unsupported,
    /// The session is over. Last.
    Over(CloseReason),
}

/// A change of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// The kind of change.
    pub kind: EventType,
    /// The node's path, as the server knows it.
    pub path: Arc<str>,
    /// The transaction of the change. Servers before 3.9 do not report it, and none does for an event that was missed
    /// while disconnected.
    pub zxid: Option<Zxid>,
}
