//! Reads that cost their connections: after each, everything would be read again, and they with it.

use std::{collections::BTreeMap, sync::Arc};

use crate::error::{Cause, ReadError};

/// How many connections a read may cost. One may be lost to damaged bytes.
const CONNECTIONS_MAX: u32 = 3;

/// What a read is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Node,
    Children,
}

/// How many connections reads have cost, and the last error of each.
#[derive(Debug, Default)]
pub(super) struct Costly(BTreeMap<(Arc<str>, Part), (u32, ReadError)>);

impl Costly {
    /// Counts a read that has failed, if it has cost its connection.
    pub(super) fn failed(&mut self, path: &Arc<str>, part: Part, error: &ReadError) {
        let ReadError::Unavailable(Cause::ReplyTooLarge { .. } | Cause::CostsConnection(_)) = error
        else {
            return;
        };
        let (times, last) =
            self.0.entry((path.clone(), part)).or_insert_with(|| (0, error.clone()));
        *times = times.saturating_add(1);
        *last = error.clone();
    }

    /// Why something is not to be read until it is said to have changed.
    pub(super) fn spared(&self, path: &Arc<str>, part: Part) -> Option<&ReadError> {
        if self.0.is_empty() {
            return None;
        }
        let known = self.0.get(&(path.clone(), part));
        known.filter(|(times, _)| *times >= CONNECTIONS_MAX).map(|(_, error)| error)
    }

    /// The node has changed.
    pub(super) fn forget(&mut self, path: &Arc<str>) {
        self.0.retain(|(known, _), _| known != path);
    }
}
