//! Reads under way, and how many of them go into one request.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use super::source::{Reads, Wants};
use crate::{
    error::{ReadError, Rejection},
    request::{ReadResult, pending::Pending},
};

/// Nodes read concurrently: enough to fill a connection, few enough to leave room for other requests.
const AT_ONCE: usize = 256;

/// Most reads in one request. With so many, a server answers 100 000 nodes of 100 bytes in a sixth of the time of as many
/// gets (`zk-bench ours cache`). By default servers take 1 MiB for a node, and as many of these are half of the [longest
/// reply](crate::ConnectOptions::reply_len_max).
const TOGETHER_MAX: usize = 32;

/// Reads in the first requests, when nothing is known of the lengths of replies.
const TOGETHER_FIRST: usize = 8;

/// Bytes that one reply should have, about: other requests of the session wait behind it.
const REPLY_LEN: usize = 64 << 10;

/// Longest set of children that is listed together with other reads.
pub(super) const CHILDREN_TOGETHER_MAX: usize = 64;

/// What to read of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dirty {
    pub(super) node: bool,
    /// The set of its children, if they belong to the copy.
    pub(super) children: bool,
    /// Whether the reply may be long.
    pub(super) alone: bool,
}

impl Dirty {
    /// Of a node of which nothing is known.
    pub(super) const NEW: Self = Self { node: true, children: true, alone: false };

    /// Of a node that has changed, in a tree of which every change is told.
    pub(super) const CHANGED: Self = Self { node: true, children: false, alone: false };
}

/// Reads under way, in one or more requests.
pub(super) enum Reading {
    /// What is to be read of one node, each in a request of its own.
    Alone { path: Arc<str>, dirty: Dirty, wants: Wants, reads: Reads },
    /// One read of each of several nodes, in one request: of its data if anything of the node itself is to be read,
    /// otherwise of its children.
    Together { nodes: Vec<(Arc<str>, Dirty)>, results: Pending<Results, ReadError> },
}

/// What a request with several reads resolves to.
pub(super) type Results = Vec<Result<ReadResult, Rejection>>;

/// All reads under way, in the order of their submission, in which they are waited for.
pub(super) struct Flight {
    queue: VecDeque<Reading>,
    /// The nodes. None is read twice at a time: a busy server may answer the later request first.
    nodes: BTreeSet<Arc<str>>,
    together: Together,
}

/// How many reads go into one request: the more, the shorter the last replies were.
struct Together {
    count: usize,
    /// Whether a server has refused such a request, or its reply was too long.
    refused: bool,
}

impl Flight {
    pub(super) const fn new() -> Self {
        let together = Together { count: TOGETHER_FIRST, refused: false };
        Self { queue: VecDeque::new(), nodes: BTreeSet::new(), together }
    }

    /// Whether there is room for as many reads as go into one request. Filling any room would make requests small for
    /// good.
    pub(super) fn has_room(&self) -> bool {
        self.nodes.is_empty() || self.nodes.len().saturating_add(self.together()) <= AT_ONCE
    }

    pub(super) fn reads(&self, path: &str) -> bool {
        self.nodes.contains(path)
    }

    /// How many reads go into one request at the moment.
    pub(super) const fn together(&self) -> usize {
        if self.together.refused { 1 } else { self.together.count }
    }

    /// Sets a node aside to be read.
    pub(super) fn begin(&mut self, path: &Arc<str>) {
        self.nodes.insert(path.clone());
    }

    pub(super) fn push(&mut self, reading: Reading) {
        self.queue.push_back(reading);
    }

    /// The oldest, to be waited for.
    pub(super) fn pop(&mut self) -> Option<Reading> {
        self.queue.pop_front()
    }

    /// A node has been read.
    pub(super) fn end(&mut self, path: &str) {
        self.nodes.remove(path);
    }

    /// So many reads were answered by one reply, of which the longest was so long.
    pub(super) fn answered(&mut self, reads: usize, longest: usize) {
        let fit = REPLY_LEN.checked_div(longest).unwrap_or(REPLY_LEN);
        let more = self.together.count.max(reads.saturating_mul(2));
        self.together.count = more.min(fit).clamp(1, TOGETHER_MAX);
    }

    /// Reads each node by itself from now on.
    pub(super) const fn refuse_together(&mut self) {
        self.together.refused = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_replies_bring_more_reads_together() {
        let mut flight = Flight::new();
        let mut counts = Vec::new();
        for _ in 0..4 {
            counts.push(flight.together());
            flight.answered(flight.together(), 100);
        }
        assert_eq!(counts, [8, 16, 32, 32]);
        flight.answered(1, 100);
        assert_eq!(flight.together(), 32, "a single read says nothing against several");
    }

    #[test]
    fn node_is_being_read_until_its_answer() {
        let mut flight = Flight::new();
        let path: Arc<str> = "/a".into();
        flight.begin(&path);
        assert!(flight.reads("/a") && !flight.reads("/b"));
        flight.end("/a");
        assert!(!flight.reads("/a"));
    }

    #[test]
    fn long_replies_are_split_at_once() {
        let mut flight = Flight::new();
        flight.answered(32, 100);
        flight.answered(32, 10_000);
        assert_eq!(flight.together(), 6);
        flight.answered(6, 1 << 20);
        assert_eq!(flight.together(), 1);
        flight.answered(32, 0);
        flight.refuse_together();
        assert_eq!(flight.together(), 1);
    }
}
