//! A stream of events, held against all that is read: what changes without an event was not to be missed.

use std::collections::BTreeMap;

use zk_client::{Stat, WatchItem, WatchStream, Zxid};

/// A stream, and what its client knows.
pub(super) struct Streamed {
    stream: WatchStream,
    recursive: bool,
    /// Each node as it was read last, or missing, since the stream has been there.
    known: BTreeMap<String, Option<Zxid>>,
    /// Whether events were left out since the last node was found.
    gap: bool,
    /// How many events there were of each node, but for one for each change that was read.
    events: BTreeMap<String, u64>,
}

impl Streamed {
    pub(super) const fn new(stream: WatchStream, recursive: bool) -> Self {
        Self { stream, recursive, known: BTreeMap::new(), gap: false, events: BTreeMap::new() }
    }

    fn covers(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.stream.path());
        below.is_some_and(|below| below.is_empty() || self.recursive && below.starts_with('/'))
    }

    /// Takes in what has come, and says whether more may.
    pub(super) fn goes_on(&mut self) -> bool {
        while let Some(item) = self.stream.try_next() {
            match item {
                WatchItem::Event(event) => *self.events.entry(event.path).or_default() += 1,
                // Any of them may have changed.
                _ => {
                    self.known.clear();
                    self.gap = true;
                }
            }
        }
        self.stream.end().is_none()
    }

    /// A node was found like this, or missing. Returns what was known of it, if it has changed without an event.
    pub(super) fn missed(&mut self, path: &str, stat: Option<&Stat>) -> Option<Option<Zxid>> {
        if !self.covers(path) {
            return None;
        }
        if std::mem::take(&mut self.gap) {
            // One of what was left out may be later than this state.
            return None;
        }
        let now = stat.map(|stat| stat.mzxid);
        let before = self.known.insert(path.to_owned(), now)?;
        if before == now {
            return None;
        }
        // What came with the answer, or right behind it, may be about a later change.
        match self.events.get_mut(path).filter(|events| **events > 0) {
            Some(events) => {
                *events -= 1;
                None
            }
            None => Some(before),
        }
    }
}
