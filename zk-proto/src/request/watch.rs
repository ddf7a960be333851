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
        /// What happened.
        #[cfg_attr(feature = "serde", serde(rename = "type"))]
        kind: EventType,
        /// Always [`KeeperState::SYNC_CONNECTED`] from a server.
        state: KeeperState,
        /// To which node.
        path: Text,
    }
}

record! {
    /// A [`WatcherEvent`] as it stands in its frame.
    WatcherEventView<'a> of WatcherEvent {
        /// As there.
        #[cfg_attr(feature = "serde", serde(rename = "type"))]
        kind: EventType,
        /// As there.
        state: KeeperState,
        /// As there.
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
        /// On which node; it need not exist.
        path: Str<'a>,
        /// How far it sees.
        mode: AddWatchMode,
    }
}

record! {
    /// An error code as a body.
    #[derive(Copy)]
    ErrorResponse {
        /// In a multi the same as in the header in front; 0 after arming a watch.
        err: ErrorCode,
    }
}

record! {
    /// Whether this connection has a watch.
    CheckWatchesRequest<'a> {
        /// On exactly this node.
        path: Str<'a>,
        /// Of which kind.
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
