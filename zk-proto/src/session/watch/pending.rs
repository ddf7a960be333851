//! Pending registrations: what unanswered requests will have the server watch, and whom they will register.

use alloc::sync::Arc;

use super::{
    intent::{WatchBy, WatchIntent},
    kind::Kind,
    server_side::ServerWatches,
    subscribers::Watcher,
};
use crate::session::{
    flight::Flight,
    output::Outgoing,
    slot::{Purpose, Slot},
};

impl<R, W> Slot<R, W> {
    /// What it makes the server watch for good.
    pub(crate) fn asks(&self) -> Option<&(WatchBy, Arc<str>)> {
        self.rare()?.asks.as_ref()
    }

    /// Whom it is to register, if anybody.
    pub(crate) const fn pending(&self) -> Option<&WatchIntent<W>> {
        match self {
            Self::User { request: Outgoing { watch: Some(watch), .. }, .. } => Some(watch),
            _ => None,
        }
    }
}

impl<R, W: Watcher> Slot<R, W> {
    /// Notes what a request will have the server watch. Returns whether it does without the watch that it could ask for.
    pub(crate) fn note_watches(&self, server_watches: &mut ServerWatches) -> bool {
        let unwatched = self.pending().is_some_and(|watch| {
            let carried = server_watches.at(&watch.path).carry(watch.by);
            // What nobody waits for any more is not asked of the next server.
            carried || !watch.by.is_persistent() && watch.watcher.is_gone()
        });
        if let Some((by, path)) = self.asks() {
            server_watches.asked(*by, path);
        } else if let Self::Own { purpose: Purpose::Unwatch(path), .. } = self {
            server_watches.removed(path);
        }
        unwatched
    }
}

impl<R, W: Watcher> Flight<R, W> {
    /// Keeps unanswered requests of kind `by` from registering subscribers on `path` that `gone` picks.
    pub(crate) fn cancel_pending(
        &mut self,
        by: WatchBy,
        path: &str,
        mut gone: impl FnMut(&W) -> bool,
    ) {
        for slot in self.slots_mut() {
            let Slot::User { request: Outgoing { watch, .. }, .. } = slot else { continue };
            watch.take_if(|watch| {
                let is_there = Kind::registered_by(watch.by) == Kind::registered_by(by);
                is_there && *watch.path == *path && gone(&watch.watcher)
            });
        }
    }

    /// Whether an unanswered request is to register anybody on a path.
    pub(crate) fn has_pending_at(&self, path: &str) -> bool {
        let mut pending = self.slots().filter_map(Slot::pending);
        pending.any(|watch| *watch.path == *path)
    }
}
