//! The local copy and the operations that change it.

use std::{
    any::Any,
    collections::BTreeMap,
    mem,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use super::{
    events::{CacheEvent, CacheEvents, Feed},
    node::CachedNode,
};
use crate::error::SessionEnd;

/// The nodes and the listeners, under one lock: no listener is notified of a change before it is visible, or twice.
#[derive(Debug)]
pub(super) struct Contents {
    inner: Mutex<Inner>,
    events_max: usize,
}

#[derive(Debug)]
struct Inner {
    nodes: BTreeMap<Arc<str>, CachedNode>,
    feeds: Vec<Feed>,
    /// Whether no further changes follow.
    ended: bool,
    /// Listeners to wake once the lock has been released.
    woken: Vec<Waker>,
}

impl Contents {
    pub(super) const fn new(events_max: usize) -> Self {
        let nodes = BTreeMap::new();
        let inner = Inner { nodes, feeds: Vec::new(), ended: false, woken: Vec::new() };
        Self { inner: Mutex::new(inner), events_max }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.lock();
        change(&mut inner);
        let woken = mem::take(&mut inner.woken);
        drop(inner);
        woken.into_iter().for_each(Waker::wake);
    }

    pub(super) fn get(&self, path: &str) -> Option<CachedNode> {
        self.lock().nodes.get(path).cloned()
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.lock().nodes.contains_key(path)
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

    pub(super) fn listen(&self, cache: Arc<dyn Any + Send + Sync>) -> CacheEvents {
        let mut inner = self.lock();
        let (feed, events) = CacheEvents::new(self.events_max, inner.ended, cache);
        inner.feeds.push(feed);
        events
    }

    pub(super) fn listen_from_the_start(&self, cache: Arc<dyn Any + Send + Sync>) -> CacheEvents {
        let mut inner = self.lock();
        let (feed, events) = CacheEvents::new(self.events_max, inner.ended, cache);
        for node in inner.nodes.values() {
            feed.tell_at_first(&CacheEvent::Created(node.clone()));
        }
        inner.feeds.push(feed);
        events
    }

    /// Inserts or updates a node.
    pub(super) fn put(&self, node: CachedNode) {
        self.change(|inner| inner.put(node));
    }

    /// Removes a node and everything below it.
    pub(super) fn remove(&self, path: &str) {
        self.change(|inner| inner.remove(path));
    }

    pub(super) fn tell(&self, event: &CacheEvent) {
        self.change(|inner| inner.tell(event));
    }

    /// Ends the streams of all listeners, if `is_over` returns true.
    pub(super) fn end(&self, end: SessionEnd, is_over: impl FnOnce() -> bool) {
        self.change(|inner| {
            if is_over() {
                inner.ended = true;
                inner.tell(&CacheEvent::Ended(end));
            }
        });
    }

    /// Resumes the streams: the cache has been moved to another client.
    pub(super) fn goes_on(&self) {
        let mut inner = self.lock();
        inner.ended = false;
        inner.feeds.retain(Feed::goes_on);
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

    fn put(&mut self, node: CachedNode) {
        let event = match self.nodes.get(&node.path) {
            // Replies of one connection never go back in time; those of another connection may.
            Some(old) if old.stat.mzxid > node.stat.mzxid => return,
            Some(old) if old.stat.czxid != node.stat.czxid => {
                let old = old.clone();
                self.tell(&CacheEvent::Deleted(old));
                CacheEvent::Created(node.clone())
            }
            Some(old) if *old == node => return,
            Some(old) if old.stat.mzxid == node.stat.mzxid && old.data == node.data => {
                // Only the children or the ACL changed, which is not an event of this cache.
                self.nodes.insert(node.path.clone(), node);
                return;
            }
            Some(old) => CacheEvent::Changed { old: old.clone(), new: node.clone() },
            None => CacheEvent::Created(node.clone()),
        };
        self.nodes.insert(node.path.clone(), node);
        self.tell(&event);
    }

    fn remove(&mut self, path: &str) {
        let here = self.nodes.get(path).into_iter();
        let gone: Vec<Arc<str>> =
            here.chain(self.below(path)).map(|node| node.path.clone()).collect();
        // From the bottom up, as servers do.
        for path in gone.iter().rev() {
            if let Some(node) = self.nodes.remove(path) {
                self.tell(&CacheEvent::Deleted(node));
            }
        }
    }

    fn tell(&mut self, event: &CacheEvent) {
        let woken = &mut self.woken;
        self.feeds.retain(|feed| feed.tell(event, woken));
    }
}
