//! The copy, and what changes it.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Cache, CachedNode,
    events::{CacheEvent, CacheEvents, Feed},
};

/// The nodes, and whoever listens. One lock for both: nobody hears of a change that is not there, or twice.
#[derive(Debug)]
pub(super) struct Contents {
    inner: Mutex<Inner>,
    events_max: usize,
}

#[derive(Debug)]
struct Inner {
    nodes: BTreeMap<Arc<str>, CachedNode>,
    feeds: Vec<Feed>,
}

impl Contents {
    pub(super) const fn new(events_max: usize) -> Self {
        let inner = Inner { nodes: BTreeMap::new(), feeds: Vec::new() };
        Self { inner: Mutex::new(inner), events_max }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, path: &str) -> Option<CachedNode> {
        self.lock().nodes.get(path).cloned()
    }

    pub(super) fn nodes(&self) -> Vec<CachedNode> {
        self.lock().nodes.values().cloned().collect()
    }

    pub(super) fn children(&self, path: &str) -> Vec<CachedNode> {
        let inner = self.lock();
        let below = inner.below(path);
        below.filter(|node| zk_proto::path::parent(&node.path) == Some(path)).cloned().collect()
    }

    /// The paths of a node and everything below it.
    pub(super) fn paths_from(&self, path: &str) -> Vec<Arc<str>> {
        let inner = self.lock();
        let here = inner.nodes.get(path).into_iter();
        here.chain(inner.below(path)).map(|node| node.path.clone()).collect()
    }

    pub(super) fn listen(&self, cache: Cache) -> CacheEvents {
        let (feed, events) = CacheEvents::new(self.events_max, cache);
        self.lock().feeds.push(feed);
        events
    }

    pub(super) fn listen_from_the_start(&self, cache: Cache) -> CacheEvents {
        let (feed, events) = CacheEvents::new(self.events_max, cache);
        let mut inner = self.lock();
        for node in inner.nodes.values() {
            feed.tell_at_first(&CacheEvent::Created(node.clone()));
        }
        inner.feeds.push(feed);
        events
    }

    /// A node is like this.
    pub(super) fn put(&self, node: CachedNode) {
        let mut inner = self.lock();
        let event = match inner.nodes.get(&node.path) {
            // Answers of one connection do not go back in time, those of another may.
            Some(old) if old.stat.mzxid > node.stat.mzxid => return,
            Some(old) if old.stat.czxid != node.stat.czxid => {
                let old = old.clone();
                inner.tell(&CacheEvent::Deleted(old));
                CacheEvent::Created(node.clone())
            }
            Some(old) if *old == node => return,
            Some(old) if old.stat.mzxid == node.stat.mzxid && old.data == node.data => {
                // Children or permissions, which are nobody's news here.
                inner.nodes.insert(node.path.clone(), node);
                return;
            }
            Some(old) => CacheEvent::Changed { old: old.clone(), new: node.clone() },
            None => CacheEvent::Created(node.clone()),
        };
        inner.nodes.insert(node.path.clone(), node);
        inner.tell(&event);
    }

    /// A node is not there, nor anything below it.
    pub(super) fn remove(&self, path: &str) {
        let mut inner = self.lock();
        let here = inner.nodes.get(path).into_iter();
        let gone: Vec<Arc<str>> =
            here.chain(inner.below(path)).map(|node| node.path.clone()).collect();
        // From the bottom up, as servers do.
        for path in gone.iter().rev() {
            if let Some(node) = inner.nodes.remove(path) {
                inner.tell(&CacheEvent::Deleted(node));
            }
        }
    }

    pub(super) fn tell(&self, event: &CacheEvent) {
        self.lock().tell(event);
    }

    /// Nothing follows.
    pub(super) fn end(&self) {
        self.lock().feeds.clear();
    }
}

impl Inner {
    /// Everything below a node, in the order of the paths.
    fn below(&self, path: &str) -> impl Iterator<Item = &CachedNode> + use<'_> {
        let prefix = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        let from: Arc<str> = prefix.as_str().into();
        let nodes = self.nodes.range::<Arc<str>, _>((Bound::Excluded(from), Bound::Unbounded));
        nodes.map(|(_, node)| node).take_while(move |node| node.path.starts_with(&prefix))
    }

    fn tell(&mut self, event: &CacheEvent) {
        self.feeds.retain(|feed| feed.tell(event));
    }
}
