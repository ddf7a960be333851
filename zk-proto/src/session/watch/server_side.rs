//! The persistent watches of the server at the other end, as requested on this connection.
//!
//! Servers before 3.9 keep one watch for each path and connection, and the last request decides its kind: a read that
//! arms a one-shot watch silently replaces a persistent one by that (ZOOKEEPER-4466). The session does not know the
//! server's version, so the following rules apply to all:
//!
//! * Where there is a persistent watch, a one-shot watch *leans* on it: the read is sent without asking for a watch,
//!   since the events arrive anyway.
//! * No watch is removed from a path as long as the path has watchers here; then all are. Removing one kind removes
//!   others too before 3.9 (ZOOKEEPER-4471).
//! * Of a persistent and a recursive watch on one path the recursive one must be requested last. What it lacks of the
//!   other, and of a one-shot watch for children that it replaces, events of the set of children, follows from its own
//!   events.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::intent::WatchBy;

/// The persistent watches on a path, once the server has read everything that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) persistent: bool,
    pub(crate) recursive: bool,
}

impl Modes {
    /// Whether events of a one-shot watch arrive without asking for it.
    pub(crate) const fn carry(self, by: WatchBy) -> bool {
        match by {
            WatchBy::Data | WatchBy::Exists => self.persistent || self.recursive,
            // A recursive watch does not report sets of children, wherever it replaces the other.
            WatchBy::Children => self.persistent && !self.recursive,
            WatchBy::Persistent | WatchBy::Recursive => false,
        }
    }
}

/// What the server has on one path.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Once it has read everything that was sent.
    modes: Modes,
    /// Whether a recursive watch is about to be replaced: events may come by it until the last request that does so is
    /// answered.
    is_replaced: bool,
    /// Whether the server has confirmed any, which it may still have.
    is_armed: bool,
}

/// The persistent watches of one connection, by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerWatches {
    paths: BTreeMap<Arc<str>, Place>,
    /// Paths with watches that are to be removed later: the server had no time, a request may need them, or nothing may lean
    /// on them.
    left: BTreeSet<Arc<str>>,
    /// Whether the server has proved to keep kinds apart: events have zxids since the same release.
    keeps_kinds_apart: bool,
    /// Whether servers have turned out not to know the removal of watches (before 3.5): each attempt costs a connection. So
    /// this outlasts connections, until one has shown to be newer.
    cannot_remove: bool,
}

impl ServerWatches {
    pub(crate) fn at(&self, path: &str) -> Modes {
        self.paths.get(path).copied().unwrap_or_default().modes
    }

    /// Whether events may come by a recursive watch on this path, which has replaced every other one there before 3.9.
    pub(crate) fn may_be_recursive(&self, path: &str) -> bool {
        self.paths.get(path).is_some_and(|place| place.modes.recursive || place.is_replaced)
    }

    pub(crate) fn is_any(&self) -> bool {
        !self.paths.is_empty() || !self.left.is_empty()
    }

    pub(crate) fn is_any_at(&self, path: &str) -> bool {
        self.paths.contains_key(path) || self.left.contains(path)
    }

    /// Records a request for a watch.
    pub(crate) fn asked(&mut self, by: WatchBy, path: &Arc<str>) {
        if !by.is_persistent() {
            return;
        }
        let Place { modes, is_replaced, .. } = self.paths.entry(path.clone()).or_default();
        if by == WatchBy::Recursive {
            modes.recursive = true;
            return;
        }
        modes.persistent = true;
        if !self.keeps_kinds_apart {
            *is_replaced |= core::mem::take(&mut modes.recursive);
        }
    }

    /// Records that a persistent watch is there.
    pub(crate) fn has_replaced(&mut self, path: &str) {
        if let Some(place) = self.paths.get_mut(path) {
            place.is_replaced = false;
        }
    }

    /// Records that the server does not know the removal of watches.
    pub(crate) const fn removal_is_unknown(&mut self) {
        self.cannot_remove = true;
    }

    pub(crate) const fn can_remove(&self) -> bool {
        !self.cannot_remove
    }

    /// Records that the server has armed what it was asked for.
    pub(crate) fn armed(&mut self, path: &str) {
        self.cannot_remove = false;
        if let Some(place) = self.paths.get_mut(path) {
            place.is_armed = true;
        }
    }

    /// Corrects the watches on a path, of which the server refused one. What it had before is still to be removed.
    pub(crate) fn set(&mut self, path: &Arc<str>, modes: Modes) {
        if modes == Modes::default() {
            if self.paths.remove(path).is_some_and(|place| place.is_armed) {
                self.left.insert(path.clone());
            }
        } else {
            self.paths.entry(path.clone()).or_default().modes = modes;
        }
    }

    /// Records a request to remove all watches on a path.
    pub(crate) fn removed(&mut self, path: &str) {
        self.paths.remove(path);
        self.left.remove(path);
    }

    /// Records that the watches on a path are to be removed later.
    pub(crate) fn not_removed(&mut self, path: Arc<str>) {
        self.left.insert(path);
    }

    /// Takes the paths of which this is so.
    pub(crate) fn take_left(&mut self) -> BTreeSet<Arc<str>> {
        core::mem::take(&mut self.left)
    }

    pub(crate) const fn keeps_kinds_apart(&self) -> bool {
        self.keeps_kinds_apart
    }

    pub(crate) const fn event_had_zxid(&mut self) {
        self.keeps_kinds_apart = true;
    }

    /// Resets the state: the server drops all watches of a lost connection.
    pub(crate) fn link_lost(&mut self) {
        *self = Self { cannot_remove: self.cannot_remove, ..Self::default() };
    }
}
