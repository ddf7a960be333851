//! Watches: events, arming, restoring, removing.

use crate::{
    code::ErrorCode,
    data::{AddWatchMode, EventType, KeeperState, WatcherType, Zxid},
    list::List,
    record::record,
    request::define::{requests, same_record},
    text::{Str, Text},
};

record! {
    /// Pushed by a server with [`Xid::NOTIFICATION`](crate::Xid::NOTIFICATION).
    WatcherEvent {
        /// The kind of change.
        #[cfg_attr(feature = "serde", serde(rename = "type"))]
        kind: EventType,
        /// Always [`KeeperState::SYNC_CONNECTED`] from a server.
        state: KeeperState,
        /// The node's path.
        path: Text,
    }
}

record! {
    /// A [`WatcherEvent`] that borrows from its frame.
    WatcherEventView<'a> of WatcherEvent {
        /// As in [`WatcherEvent`].
        #[cfg_attr(feature = "serde", serde(rename = "type"))]
        kind: EventType,
        /// As in [`WatcherEvent`].
        state: KeeperState,
        /// As in [`WatcherEvent`].
        path: Str<'a>,
    }
}

record! {
    /// Re-arm one-shot watches on a new connection.
    SetWatches {
        /// Changes after this one are reported at once instead of arming.
        relative_zxid: Zxid,
        /// Paths with a watch on the data of a node that existed.
        data_watches: List<Text>,
        /// Paths with a watch on a node that was missing.
        exist_watches: List<Text>,
        /// Paths with a watch on the set of children.
        child_watches: List<Text>,
    }
}

record! {
    /// Re-arm watches of all kinds on a new connection. Since 3.6.0.
    SetWatches2 {
        /// Changes after this one are reported at once instead of arming; not so for persistent ones.
        relative_zxid: Zxid,
        /// Paths with a watch on the data of a node that existed.
        data_watches: List<Text>,
        /// Paths with a watch on a node that was missing.
        exist_watches: List<Text>,
        /// Paths with a watch on the set of children.
        child_watches: List<Text>,
        /// Paths with a persistent watch.
        persistent_watches: List<Text>,
        /// Paths with a persistent recursive watch.
        persistent_recursive_watches: List<Text>,
    }
}

record! {
    /// Arm a persistent watch. Since 3.6.0.
    AddWatchRequest<'a> {
        /// The node's path; the node need not exist.
        path: Str<'a>,
        /// The reach of the watch.
        mode: AddWatchMode,
    }
}

record! {
    /// An error code as a body.
    #[derive(Copy)]
    ErrorResponse {
        /// In a multi the same as in the header; 0 after arming a watch.
        err: ErrorCode,
    }
}

record! {
    /// Ask whether this connection has a watch.
    CheckWatchesRequest<'a> {
        /// The path of exactly this node.
        path: Str<'a>,
        /// The kind of watch.
        #[cfg_attr(feature = "serde", serde(rename = "type"))]
        kind: WatcherType,
    }
}

same_record! {
    /// Remove the watches of a kind that this connection has on a path. Since 3.5.0.
    RemoveWatchesRequest(CheckWatchesRequest);
}

requests! {
    SetWatches = SET_WATCHES -> ();
    SetWatches2 = SET_WATCHES2 -> ();
    AddWatchRequest<'_> = ADD_WATCH -> ErrorResponse;
    CheckWatchesRequest<'_> = CHECK_WATCHES -> ();
    RemoveWatchesRequest<'_> = REMOVE_WATCHES -> ();
}
