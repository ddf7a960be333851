//! What is told to those who wait for a watch.

use alloc::sync::Arc;

use crate::{
    data::{EventType, Zxid},
    session::fault::Over,
};

/// News for a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchNotice {
    /// Something happened to a node.
    Event(NodeEvent),
    /// Persistent watches only: the watch was armed again on a new connection. Servers do not say what
    /// happened in between.
    Gap,
    /// Persistent watches only: the server that the session lives on now has no such watches. Last.
    Unsupported,
    /// The session is over. Last.
    Over(Over),
}

/// Something happened to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// What.
    pub kind: EventType,
    /// To which node, as the server knows it.
    pub path: Arc<str>,
    /// The transaction that did it. Servers before 3.9 do not say, and none does for an event that was
    /// missed while disconnected.
    pub zxid: Option<Zxid>,
}
