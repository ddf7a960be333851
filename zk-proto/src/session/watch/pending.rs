//! Pending registrations: the watches and subscribers that unanswered requests will add.

use alloc::sync::Arc;

use super::{
    intent::{WatchBy, WatchIntent},
    kind::Kind,
    server_side::ServerWatches,
    subscribers::Watcher,
};
use crate::session::{
    in_flight::{InFlight, Sent},
    output::Outgoing,
    pending_request::{PendingRequest, Purpose},
};

impl<R, W> PendingRequest<R, W> {
    /// The persistent watch that it asks the server for.
    pub(crate) fn asks(&self) -> Option<(WatchBy, &Arc<str>)> {
        if let Self::Own { purpose: Purpose::Rearm(path), .. } = self {
            return Some((WatchBy::Recursive, path));
        }
        self.rare()?.asks.as_ref().map(|(by, path)| (*by, path))
    }

    /// The watcher that it is to register, if any.
    pub(crate) const fn pending(&self) -> Option<&WatchIntent<W>> {
        match self {
            Self::User { request: Outgoing { watch: Some(watch), .. }, .. } => Some(watch),
            _ => None,
        }
    }
}

impl<R, W: Watcher> PendingRequest<R, W> {
    /// Records the watch that a request asks the server for. Returns whether the request can do without it.
    pub(crate) fn note_watches(&self, server_watches: &mut ServerWatches) -> bool {
        let unwatched = match self.pending() {
            Some(watch) => {
                let carried = server_watches.at(&watch.path).carry(watch.by);
                // A watch without watchers is not requested from the next server.
                carried || !watch.by.is_persistent() && watch.watcher.is_gone()
            }
            None => self.rare().is_some_and(|rare| rare.is_unwanted),
        };
        if let Some((by, path)) = self.asks() {
            server_watches.asked(by, path);
        } else if let Self::Own { purpose: Purpose::Unwatch(path), .. } = self {
            server_watches.removed(path);
        }
        unwatched
    }

    /// Whether it removes all watches from a path.
    fn removes_watches_at(&self, path: &str) -> bool {
        match self {
            Self::Own { purpose: Purpose::Unwatch(removed), .. } => **removed == *path,
            _ => false,
        }
    }

    /// Whether it changes the persistent watches that the server has on a path.
    fn changes_watches_at(&self, path: &str) -> bool {
        self.removes_watches_at(path) || self.asks().is_some_and(|(_, asked)| **asked == *path)
    }
}

impl<R, W: Watcher> InFlight<R, W> {
    /// Keeps unanswered requests of kind `by` from registering subscribers on `path` that `gone` picks.
    pub(crate) fn cancel_pending(
        &mut self,
        by: WatchBy,
        path: &str,
        mut gone: impl FnMut(&W) -> bool,
    ) {
        for slot in self.slots_mut() {
            let PendingRequest::User { request: Outgoing { watch, .. }, rare, .. } = slot else {
                continue;
            };
            let cancelled = watch.take_if(|watch| {
                let is_there = Kind::registered_by(watch.by) == Kind::registered_by(by);
                is_there && *watch.path == *path && gone(&watch.watcher)
            });
            // Before 3.9, a watch for once would replace one that goes on.
            if cancelled.is_some_and(|watch| !watch.by.is_persistent()) {
                rare.get_or_insert_default().is_unwanted = true;
            }
        }
    }

    /// Records once more what has been sent about a path, after the refusal of an earlier request for a watch on it. Returns
    /// whether a read has been sent in the belief that there would be that watch: without one of its own, which it needs, or
    /// with one that replaces another before 3.9.
    pub(crate) fn note_sent_at(&self, path: &str, server_watches: &mut ServerWatches) -> bool {
        let mut is_misled = false;
        for Sent { slot, unwatched, .. } in &self.sent {
            let watch = slot.pending().filter(|watch| *watch.path == *path);
            if let Some(watch) = watch.filter(|watch| !watch.watcher.is_gone()) {
                let carried = server_watches.at(path).carry(watch.by);
                let replaces = carried && !server_watches.keeps_kinds_apart();
                is_misled |= if *unwatched { !carried } else { replaces };
            }
            if slot.changes_watches_at(path) {
                slot.note_watches(server_watches);
            }
        }
        is_misled
    }

    /// Whether a request for a persistent watch on a path was sent and is yet to be answered.
    pub(crate) fn is_to_be_persistent(&self, path: &str) -> bool {
        let mut asked = self.sent.iter().filter_map(|sent| sent.slot.asks());
        asked.any(|(by, asked)| by == WatchBy::Persistent && **asked == *path)
    }

    /// Whether a request that removes all watches from a path waits to be sent.
    pub(crate) fn is_to_be_unwatched(&self, path: &str) -> bool {
        self.waiting.iter().any(|slot| slot.removes_watches_at(path))
    }

    /// Whether an unanswered request is to register a watcher on a path.
    pub(crate) fn has_pending_at(&self, path: &str) -> bool {
        let mut pending = self.slots().filter_map(PendingRequest::pending);
        pending.any(|watch| *watch.path == *path)
    }
}
