//! What the server at the other end keeps of persistent watches, as far as was asked for on this connection.
//!
//! Servers before 3.9 keep one watch for each path and connection, and the last request decides of which kind it
//! is: a read that arms a one-shot watch turns a persistent one into that (ZOOKEEPER-4466), without a word. No
//! version is ever told, so what follows holds for all servers:
//!
//! * Where a persistent watch stands, a one-shot watch *leans* on it: the read is sent without asking for a
//!   watch, since the events come anyway.
//! * Nothing is taken away from a path as long as anybody here waits for anything there; then everything is.
//!   Removing one kind takes others along before 3.9 (ZOOKEEPER-4471).
//! * Of a persistent and a recursive watch on one path the recursive one must be asked for last. What it lacks of
//!   the other, news of the set of children, follows from what it tells.

use alloc::{collections::BTreeMap, sync::Arc};

use super::intent::WatchBy;

/// The persistent watches that stand on a path, or will when the server has read everything that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) persistent: bool,
    pub(crate) recursive: bool,
}

impl Modes {
    /// Whether events of a one-shot watch come without asking for it.
    pub(crate) const fn carry(self, by: WatchBy) -> bool {
        match by {
            WatchBy::Data | WatchBy::Exists => self.persistent || self.recursive,
            // A recursive watch says nothing of sets of children, wherever it replaces the other.
            WatchBy::Children => self.persistent && !self.recursive,
            WatchBy::Persistent | WatchBy::Recursive => false,
        }
    }

    pub(crate) const fn both(self) -> bool {
        self.persistent && self.recursive
    }
}

/// Which persistent watches stand where, on one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerWatches {
    paths: BTreeMap<Arc<str>, Modes>,
    /// Whether the server has shown to be one that keeps kinds apart: events have zxids since the same release.
    keeps_kinds_apart: bool,
}

impl ServerWatches {
    pub(crate) fn at(&self, path: &str) -> Modes {
        self.paths.get(path).copied().unwrap_or_default()
    }

    pub(crate) fn is_any_at(&self, path: &str) -> bool {
        self.paths.contains_key(path)
    }

    /// A watch has been asked for.
    pub(crate) fn asked(&mut self, by: WatchBy, path: &Arc<str>) {
        match by {
            WatchBy::Persistent => self.paths.entry(path.clone()).or_default().persistent = true,
            WatchBy::Recursive => self.paths.entry(path.clone()).or_default().recursive = true,
            WatchBy::Data | WatchBy::Exists | WatchBy::Children => {}
        }
    }

    /// Only these are there after all.
    pub(crate) fn set(&mut self, path: &Arc<str>, modes: Modes) {
        if modes == Modes::default() {
            self.paths.remove(path);
        } else {
            self.paths.insert(path.clone(), modes);
        }
    }

    /// The server has been asked to remove all watches on a path.
    pub(crate) fn removed(&mut self, path: &str) {
        self.paths.remove(path);
    }

    pub(crate) const fn keeps_kinds_apart(&self) -> bool {
        self.keeps_kinds_apart
    }

    pub(crate) const fn event_had_zxid(&mut self) {
        self.keeps_kinds_apart = true;
    }

    /// The connection is gone, and with it everything that the server kept of it.
    pub(crate) fn link_lost(&mut self) {
        *self = Self::default();
    }
}
