//! What is asked for next.

use std::{future::IntoFuture as _, sync::Arc};

use super::{
    flight::{Dirty, Reading},
    source::{Source, Wants},
    work::Work,
};

impl Work<'_> {
    /// Submits reads as long as there is room.
    pub(super) fn submit(&mut self, source: &Source) {
        while self.flight.has_room() && self.submit_some(source) {}
    }

    /// Submits several reads in one request, or all those of one node. Returns whether there was anything to read.
    fn submit_some(&mut self, source: &Source) -> bool {
        let mut nodes = Vec::new();
        while nodes.len() < self.flight.together() {
            let Some((path, dirty)) = self.next() else { break };
            let alone = !self.goes_together(source, dirty);
            if alone && !nodes.is_empty() {
                break;
            }
            self.dirty.remove(&path);
            self.flight.begin(&path);
            nodes.push((path, dirty));
            if alone {
                break;
            }
        }
        let single = if nodes.len() > 1 { None } else { nodes.pop() };
        let reading = match single {
            Some((path, dirty)) => self.read_alone(source, path, dirty),
            None if nodes.is_empty() => return false,
            None => self.read_together(nodes),
        };
        self.flight.push(reading);
        true
    }

    /// The first node that is to be read and is not being read.
    fn next(&self) -> Option<(Arc<str>, Dirty)> {
        let next = self.dirty.iter().find(|(path, _)| !self.flight.reads(path));
        next.map(|(path, &dirty)| (path.clone(), dirty))
    }

    /// Whether a node may be read together with others. Only data and children can be, and only without watches.
    fn goes_together(&self, source: &Source, dirty: Dirty) -> bool {
        !source.is_of_singles() && !dirty.alone && (self.of.with_data || !dirty.node)
    }

    fn read_together(&self, nodes: Vec<(Arc<str>, Dirty)>) -> Reading {
        let request = nodes.iter().fold(self.client.multi_read(), |request, (path, dirty)| {
            if dirty.node { request.get(path) } else { request.children(path) }
        });
        let results = request.into_future();
        Reading::Together { nodes, results }
    }

    fn read_alone(&self, source: &Source, path: Arc<str>, dirty: Dirty) -> Reading {
        let wants = self.wants(source, &path, dirty);
        let reads = source.read(&self.client, &path, wants);
        Reading::Alone { path, dirty, wants, reads }
    }

    fn wants(&self, source: &Source, path: &Arc<str>, dirty: Dirty) -> Wants {
        let singles = source.is_of_singles();
        let is_root = *path == self.of.root;
        let (watch_node, watch_children) = source.lacks(path);
        // Without watches, metadata tell whether there are any children.
        let children = dirty.children && (singles || !dirty.node);
        // The root need not exist, and a read that is refused arms nothing: servers without persistent watches let
        // everyone ask for existence.
        let by_existence = is_root || self.refused.contains_key(path);
        Wants {
            existence: dirty.node && if singles { by_existence } else { !self.of.with_data },
            data: dirty.node && (self.of.with_data || singles && !by_existence),
            children: children && self.goes_below(path),
            watch_node,
            watch_children,
        }
    }
}
