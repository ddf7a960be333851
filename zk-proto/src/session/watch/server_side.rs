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

use alloc::{collections::BTreeMap, sync::Arc};

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

/// The persistent watches of one connection, by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerWatches {
    paths: BTreeMap<Arc<str>, Modes>,
    /// Whether the server has proved to keep kinds apart: events have zxids since the same release.
    keeps_kinds_apart: bool,
}

impl ServerWatches {
    pub(crate) fn at(&self, path: &str) -> Modes {
        self.paths.get(path).copied().unwrap_or_default()
    }

    pub(crate) fn is_any(&self) -> bool {
        !self.paths.is_empty()
    }

    pub(crate) fn is_any_at(&self, path: &str) -> bool {
        self.paths.contains_key(path)
    }

    /// Records a request for a watch.
    pub(crate) fn asked(&mut self, by: WatchBy, path: &Arc<str>) {
        match by {
            WatchBy::Persistent => self.paths.entry(path.clone()).or_default().persistent = true,
            WatchBy::Recursive => self.paths.entry(path.clone()).or_default().recursive = true,
            WatchBy::Data | WatchBy::Exists | WatchBy::Children => {}
        }
    }

    /// Corrects the watches on a path.
    pub(crate) fn set(&mut self, path: &Arc<str>, modes: Modes) {
        if modes == Modes::default() {
            self.paths.remove(path);
        } else {
            self.paths.insert(path.clone(), modes);
        }
    }

    /// Records a request to remove all watches on a path.
    pub(crate) fn removed(&mut self, path: &str) {
        self.paths.remove(path);
    }

    pub(crate) const fn keeps_kinds_apart(&self) -> bool {
        self.keeps_kinds_apart
    }

    pub(crate) const fn event_had_zxid(&mut self) {
        self.keeps_kinds_apart = true;
    }

    /// Resets the state: the server drops all watches of a lost connection.
    pub(crate) fn link_lost(&mut self) {
        *self = Self::default();
    }
}
