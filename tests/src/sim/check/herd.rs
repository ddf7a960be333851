//! L3: a release wakes one waiter.

use std::collections::BTreeMap;

use zk_proto::{EventType, request::WatcherEvent};

use super::Checker;
use crate::history::guid;

/// What the paths of all locks begin with.
const LOCKS: &str = "/locks/";

#[derive(Default)]
pub(super) struct Herd {
    /// Which client has created the node with this id.
    makers: BTreeMap<Box<str>, u32>,
    /// Events that have notified a client of the end of another one's node.
    woken: u64,
}

impl Checker {
    /// A client creates a node.
    pub(super) fn makes(&mut self, client: u32, path: &str) {
        if let Some(guid) = guid(path).filter(|_| self.options.calm) {
            self.herd.makers.insert(guid.into(), client);
        }
    }

    /// A client is notified of a change.
    pub(super) fn hears(&mut self, client: u32, event: &WatcherEvent) {
        let path = event.path.lossy();
        if event.kind == EventType::NODE_DELETED && path.starts_with(LOCKS) {
            let maker = guid(&path).and_then(|guid| self.herd.makers.get(guid));
            self.herd.woken += u64::from(maker.is_some_and(|maker| *maker != client));
        }
    }

    /// Without faults, each node of a lock that goes wakes the one behind it. A waiter that gave up may hear
    /// once more of the node that it has waited for.
    pub(super) fn check_herd(&mut self) {
        let count = |name| self.counts.get(name).copied().unwrap_or_default();
        let attempts = count("attempts");
        let given_up = attempts.saturating_sub(count("acquisitions"));
        let woken = self.herd.woken;
        if self.options.calm {
            *self.counts.entry("waiters woken without faults").or_default() += woken;
            if woken > attempts + given_up {
                let text = format!("{woken} wakes by {attempts} nodes, {given_up} given up");
                self.violated("L3", text);
            }
        }
    }
}
