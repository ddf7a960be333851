//! The local copy and the operations that change it.

use std::{
    any::Any,
    collections::BTreeMap,
    mem,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use zk_proto::Stat;

use super::{
    events::{CacheEvent, CacheEvents, Feed},
    kept::Kept,
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
    nodes: BTreeMap<Arc<str>, Kept>,
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
        let (path, kept) = {
            let inner = self.lock();
            let (path, kept) = inner.nodes.get_key_value(path)?;
            (path.clone(), kept.clone())
        };
        Some(kept.node(&path))
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.lock().nodes.contains_key(path)
    }

    pub(super) fn nodes(&self) -> Vec<CachedNode> {
        self.lock().nodes.iter().map(|(path, kept)| kept.node(path)).collect()
    }

    pub(super) fn children(&self, path: &str) -> Vec<CachedNode> {
        let inner = self.lock();
        let children = inner.children(path).map(|(path, kept)| kept.node(path));
        children.collect()
    }

    /// The paths of a node's children.
    pub(super) fn paths_of_children(&self, path: &str) -> Vec<Arc<str>> {
        self.lock().children(path).map(|(path, _)| path.clone()).collect()
    }

    /// The paths of a node and everything below it.
    pub(super) fn paths_from(&self, path: &str) -> Vec<Arc<str>> {
        let inner = self.lock();
        inner.from(path).map(|(path, _)| path.clone()).collect()
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
        for (path, kept) in &inner.nodes {
            feed.tell_at_first(CacheEvent::Created(kept.node(path)));
        }
        inner.feeds.push(feed);
        events
    }

    /// Inserts or updates a node. Returns to no older state.
    pub(super) fn put(&self, path: &Arc<str>, data: &[u8], stat: &Stat) {
        let new = Kept::new(data, stat);
        self.change(|inner| inner.put(path, new, |old| is_older(stat, old)));
    }

    /// Inserts or updates a node, whatever it was before.
    pub(super) fn replace(&self, path: &Arc<str>, data: &[u8], stat: &Stat) {
        let new = Kept::new(data, stat);
        self.change(|inner| inner.put(path, new, |_| false));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().nodes.is_empty()
    }

    /// Removes a node and everything below it.
    pub(super) fn remove(&self, path: &str) {
        self.change(|inner| inner.remove(path));
    }

    /// Removes everything, if `is_over` returns true.
    pub(super) fn clear(&self, is_over: impl FnOnce() -> bool) {
        self.change(|inner| {
            if is_over() {
                inner.remove("/");
            }
        });
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
    fn below(&self, path: &str) -> impl Iterator<Item = (&Arc<str>, &Kept)> + use<'_> {
        below(&self.nodes, path)
    }

    fn from(&self, path: &str) -> impl Iterator<Item = (&Arc<str>, &Kept)> + use<'_> {
        subtree(&self.nodes, path)
    }

    fn children<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a Arc<str>, &'a Kept)> {
        self.below(path).filter(move |(below, _)| zk_proto::path::parent(below) == Some(path))
    }

    fn put(&mut self, path: &Arc<str>, new: Kept, is_kept: impl FnOnce(&Stat) -> bool) {
        let Some(kept) = self.nodes.get_mut(path) else {
            self.tell_of(|| CacheEvent::Created(new.node(path)));
            self.nodes.insert(path.clone(), new);
            return;
        };
        if *kept == new {
            return;
        }
        let old = kept.node(path);
        if is_kept(&old.stat) {
            return;
        }
        *kept = new.clone();
        let new = new.node(path);
        if old.stat.czxid != new.stat.czxid {
            self.tell(&CacheEvent::Deleted(old));
            self.tell(&CacheEvent::Created(new));
        } else if old.stat.mzxid != new.stat.mzxid || old.data != new.data {
            self.tell(&CacheEvent::Changed { old, new });
        }
        // Otherwise only the children or the ACL changed, which is not an event of this cache.
    }

    fn remove(&mut self, path: &str) {
        let gone: Vec<Arc<str>> = self.from(path).map(|(path, _)| path.clone()).collect();
        // From the bottom up, as servers do.
        for path in gone.iter().rev() {
            if let Some(kept) = self.nodes.remove(path) {
                self.tell_of(|| CacheEvent::Deleted(kept.node(path)));
            }
        }
    }

    /// Tells of something, if anybody listens.
    fn tell_of(&mut self, event: impl FnOnce() -> CacheEvent) {
        if !self.feeds.is_empty() {
            self.tell(&event());
        }
    }

    fn tell(&mut self, event: &CacheEvent) {
        let woken = &mut self.woken;
        self.feeds.retain(|feed| feed.tell(event, woken));
    }
}

/// Of what is known by path: everything below a node, in the order of the paths.
fn below<'a, T>(
    known: &'a BTreeMap<Arc<str>, T>,
    path: &str,
) -> impl Iterator<Item = (&'a Arc<str>, &'a T)> + use<'a, T> {
    let prefix = if path == "/" { "/".to_owned() } else { format!("{path}/") };
    let from: Arc<str> = prefix.as_str().into();
    let known = known.range::<Arc<str>, _>((Bound::Excluded(from), Bound::Unbounded));
    known.take_while(move |(path, _)| path.starts_with(&prefix))
}

/// Of what is known by path: a node and everything below it.
pub(super) fn subtree<'a, T>(
    known: &'a BTreeMap<Arc<str>, T>,
    path: &str,
) -> impl Iterator<Item = (&'a Arc<str>, &'a T)> + use<'a, T> {
    known.get_key_value(path).into_iter().chain(below(known, path))
}

/// Whether one state of a node, or of another one at its path, comes before another. Replies of one session never go back in
/// time; those of another session may. By the last change of the data alone, where there is one in between: of the children,
/// members of 3.4 that have started from a snapshot may remember an earlier one (ZOOKEEPER-3125).
fn is_older(one: &Stat, other: &Stat) -> bool {
    let earlier = one.pzxid < other.pzxid || one.aversion < other.aversion;
    one.mzxid < other.mzxid || one.mzxid == other.mzxid && earlier
}

#[cfg(test)]
mod tests {
    use zk_proto::Zxid;

    use super::*;

    fn stat(czxid: i64, mzxid: i64) -> Stat {
        Stat { czxid: Zxid(czxid), mzxid: Zxid(mzxid), ..Stat::default() }
    }

    /// The data is the same in all of them.
    #[test]
    fn older_children_and_permissions_never_replace_newer_ones() {
        let contents = Contents::new(8);
        let path: Arc<str> = "/a".into();
        for (pzxid, aversion) in [(9, 2), (8, 2), (9, 1)] {
            contents.put(&path, b"", &Stat { pzxid: Zxid(pzxid), aversion, ..stat(1, 7) });
            let stat = contents.get("/a").unwrap().stat;
            assert_eq!((stat.pzxid, stat.aversion), (Zxid(9), 2));
        }
        contents.put(&path, b"", &Stat { pzxid: Zxid(10), aversion: 3, ..stat(1, 7) });
        assert_eq!(contents.get("/a").unwrap().stat.pzxid, Zxid(10));
    }

    /// As from a member of 3.4 that has forgotten a child, or of a new node, whose list has not been changed yet.
    #[test]
    fn newer_data_replaces_whatever_its_children_and_permissions() {
        let contents = Contents::new(8);
        let path: Arc<str> = "/a".into();
        let known = Stat { pzxid: Zxid(20), aversion: 2, ..stat(1, 7) };
        for newer in [Stat { pzxid: Zxid(9), ..stat(1, 21) }, stat(22, 22)] {
            contents.put(&path, b"old", &known);
            contents.put(&path, b"new", &newer);
            let node = contents.get("/a").unwrap();
            assert_eq!((&*node.data, node.stat.mzxid), (&b"new"[..], newer.mzxid));
        }
    }

    /// As from a server that lags behind the one before.
    #[test]
    fn older_reply_never_replaces_a_newer_one() {
        let contents = Contents::new(8);
        let mut events = contents.listen(Arc::new(()));
        let path: Arc<str> = "/a".into();
        contents.put(&path, b"newer", &stat(1, 7));
        contents.put(&path, b"older", &stat(1, 6));
        contents.put(&path, b"another", &stat(2, 5));
        let node = contents.get("/a").unwrap();
        assert_eq!((&*node.data, node.stat.mzxid), (&b"newer"[..], Zxid(7)));
        assert_eq!(events.try_next(), Some(CacheEvent::Created(node.clone())));
        assert_eq!(events.try_next(), None);
        contents.put(&path, b"again", &stat(8, 8));
        assert_eq!(events.try_next(), Some(CacheEvent::Deleted(node)));
        assert!(matches!(events.try_next(), Some(CacheEvent::Created(_))));
    }

    /// As from servers that were restored from a backup.
    #[test]
    fn older_reply_replaces_what_another_session_had_read() {
        let contents = Contents::new(8);
        let path: Arc<str> = "/a".into();
        contents.put(&path, b"newer", &stat(1, 7));
        let mut events = contents.listen(Arc::new(()));
        contents.replace(&path, b"older", &stat(1, 6));
        assert!(matches!(events.try_next(), Some(CacheEvent::Changed { .. })));
        contents.replace(&path, b"another", &stat(2, 5));
        assert_eq!(&*contents.get("/a").unwrap().data, b"another");
        assert!(matches!(events.try_next(), Some(CacheEvent::Deleted(_))));
        assert!(matches!(events.try_next(), Some(CacheEvent::Created(_))));
    }

    #[test]
    fn change_of_the_children_alone_is_no_event() {
        let contents = Contents::new(8);
        let path: Arc<str> = "/a".into();
        contents.put(&path, b"data", &stat(1, 1));
        let mut events = contents.listen(Arc::new(()));
        contents.put(&path, b"data", &Stat { pzxid: Zxid(3), num_children: 1, ..stat(1, 1) });
        assert_eq!(contents.get("/a").unwrap().stat.num_children, 1);
        assert_eq!(events.try_next(), None);
    }

    #[test]
    fn children_are_those_one_level_below() {
        let contents = Contents::new(8);
        for path in ["/", "/a", "/a-b", "/a/x", "/a/x/y", "/a/z"] {
            contents.put(&path.into(), b"", &stat(1, 1));
        }
        let children = |path| contents.paths_of_children(path);
        assert_eq!(children("/"), ["/a".into(), "/a-b".into()] as [Arc<str>; 2]);
        assert_eq!(children("/a"), ["/a/x".into(), "/a/z".into()] as [Arc<str>; 2]);
        contents.remove("/a");
        assert_eq!(contents.paths_from("/"), ["/".into(), "/a-b".into()] as [Arc<str>; 2]);
    }
}
