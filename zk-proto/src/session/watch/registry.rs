//! The watchers of this session: registered by replies, notified of events, and listed to restore watches on a new
//! connection.

use alloc::{boxed::Box, collections::BTreeMap, sync::Arc};

use super::{
    intent::WatchBy,
    kind::{ByKind, Kind},
    notice::{NodeEvent, WatchNotice},
    server_side::Modes,
    subscribers::{Subscribers, Watcher},
};
use crate::{
    data::{EventType, Zxid},
    path,
};

/// Paths are those of the server, without regard to any chroot. Ordered, so that the requests after a reconnect are
/// deterministic. A session without watches keeps no room for them.
#[derive(Clone, Debug)]
pub(crate) struct Registry<W>(Option<Box<ByKind<Paths<W>>>>);

/// The subscribers of one kind.
type Paths<W> = BTreeMap<Arc<str>, Subscribers<W>>;

impl<W> Default for Registry<W> {
    fn default() -> Self {
        Self(None)
    }
}

impl<W: Watcher> Registry<W> {
    /// Registers a subscriber of a watch that the server has.
    pub(crate) fn register(&mut self, kind: Kind, path: Arc<str>, watcher: W) {
        let paths = self.0.get_or_insert_default().of_mut(kind);
        let subscribers = paths.entry(path).or_default();
        // Watchers are added and dropped on nodes that never change; nothing else would ever forget them.
        subscribers.retain(|watcher| !watcher.is_gone());
        subscribers.push(watcher);
    }

    /// Delivers an event to all watchers concerned. One-shot watches are gone afterwards.
    pub(crate) fn fire(
        &mut self,
        kind: EventType,
        path: &str,
        zxid: Option<Zxid>,
        mut notify: impl FnMut(W, WatchNotice),
    ) {
        let one_shot: &[Kind] = match kind {
            EventType::NODE_CREATED | EventType::NODE_DATA_CHANGED => &[Kind::Data, Kind::Exist],
            EventType::NODE_DELETED => &[Kind::Data, Kind::Exist, Kind::Child],
            EventType::NODE_CHILDREN_CHANGED => &[Kind::Child],
            _ => return,
        };
        let Some(paths) = &mut self.0 else { return };
        // The path that a watch was registered with, where there is one: it needs no memory.
        let mut shared = None;
        let event =
            |path: &Arc<str>| WatchNotice::Event(NodeEvent { kind, path: path.clone(), zxid });
        for &kind in one_shot {
            let Some((path, subscribers)) = paths.of_mut(kind).remove_entry(path) else { continue };
            let path = shared.get_or_insert(path);
            subscribers.into_iter().for_each(|watcher| notify(watcher, event(path)));
        }
        if let Some((path, subscribers)) = paths.persistent.get_key_value(path) {
            let path = shared.get_or_insert_with(|| path.clone());
            subscribers.as_slice().iter().for_each(|watcher| notify(watcher.clone(), event(path)));
        }
        // Sets of children do not concern recursive watches: such an event belongs to another watch
        // of this connection (ZOOKEEPER-4475).
        if paths.recursive.is_empty() || kind == EventType::NODE_CHILDREN_CHANGED {
            return;
        }
        let subscribers = path::ancestors(path).filter_map(|path| paths.recursive.get(path));
        for watcher in subscribers.flat_map(Subscribers::as_slice) {
            notify(watcher.clone(), event(shared.get_or_insert_with(|| path.into())));
        }
    }

    fn at(&self, kind: Kind, path: &str) -> &[W] {
        let subscribers = self.0.as_ref().and_then(|paths| paths.of(kind).get(path));
        subscribers.map(Subscribers::as_slice).unwrap_or_default()
    }

    /// Visits every path that a new connection must restore, with the kind of its watch, in order. Forgets paths
    /// without watchers.
    pub(crate) fn each(&mut self, mut show: impl FnMut(Kind, &str)) {
        for (kind, paths) in self.0.iter_mut().flat_map(|paths| paths.each_mut()) {
            let mut any_gone = false;
            for (path, subscribers) in paths.iter_mut() {
                if subscribers.retain(|watcher| !watcher.is_gone()) {
                    show(kind, path);
                } else {
                    any_gone = true;
                }
            }
            // Only now: a removing walk takes longer, and mostly there is nothing to remove.
            if any_gone {
                paths.retain(|_, subscribers| !subscribers.as_slice().is_empty());
            }
        }
    }

    /// The persistent watches: the requests that armed them, and their paths.
    pub(crate) fn persistent(&self) -> impl Iterator<Item = (WatchBy, &Arc<str>)> {
        let persistent = self.0.iter().flat_map(|paths| paths.persistent.keys());
        let recursive = self.0.iter().flat_map(|paths| paths.recursive.keys());
        let persistent = persistent.map(|path| (WatchBy::Persistent, path));
        persistent.chain(recursive.map(|path| (WatchBy::Recursive, path)))
    }

    /// Notifies every persistent watch.
    pub(crate) fn tell_persistent(
        &self,
        notice: &WatchNotice,
        mut notify: impl FnMut(W, WatchNotice),
    ) {
        let Some(paths) = &self.0 else { return };
        let subscribers = paths.persistent.values().chain(paths.recursive.values());
        for watcher in subscribers.flat_map(Subscribers::as_slice) {
            notify(watcher.clone(), notice.clone());
        }
    }

    /// Forgets every persistent watch.
    pub(crate) fn drop_persistent(&mut self) {
        if let Some(paths) = &mut self.0 {
            paths.persistent.clear();
            paths.recursive.clear();
        }
    }

    /// Forgets the subscribers that requests of kind `by` have registered on `path` and that `gone` picks.
    pub(crate) fn unregister(&mut self, by: WatchBy, path: &str, mut gone: impl FnMut(&W) -> bool) {
        let Some(paths) = &mut self.0 else { return };
        for &kind in Kind::registered_by(by) {
            retain_at(paths.of_mut(kind), path, |watcher| !gone(watcher));
        }
    }

    /// Whether a path has watchers.
    pub(crate) fn is_any_at(&mut self, path: &str) -> bool {
        let mut any = false;
        for (_, paths) in self.0.iter_mut().flat_map(|paths| paths.each_mut()) {
            any |= retain_at(paths, path, |watcher| !watcher.is_gone());
        }
        any
    }

    /// The persistent watches on a path.
    pub(crate) fn modes_at(&self, path: &str) -> Modes {
        Modes {
            persistent: !self.at(Kind::Persistent, path).is_empty(),
            recursive: !self.at(Kind::Recursive, path).is_empty(),
        }
    }

    /// Notifies all watches of a kind on a path.
    pub(crate) fn tell(
        &self,
        kind: Kind,
        path: &str,
        notice: &WatchNotice,
        mut notify: impl FnMut(W, WatchNotice),
    ) {
        for watcher in self.at(kind, path) {
            notify(watcher.clone(), notice.clone());
        }
    }

    /// Takes all watchers, in order, for a last notice.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = W> + use<W> {
        let kinds = self.0.take().into_iter().flat_map(|paths| *paths);
        kinds.flat_map(BTreeMap::into_values).flatten()
    }
}

/// Forgets all subscribers on a path but those that `stays` picks. Returns whether there are any.
fn retain_at<W>(paths: &mut Paths<W>, path: &str, stays: impl FnMut(&W) -> bool) -> bool {
    let Some(subscribers) = paths.get_mut(path) else { return false };
    let any = subscribers.retain(stays);
    if !any {
        paths.remove(path);
    }
    any
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec::Vec};

    use super::*;

    /// Fires one event at a registry that has one watcher of each kind on `watched`.
    #[track_caller]
    fn check(kind: EventType, at: &str, watched: &str, fired: &[&str], kept: &[&str]) {
        let mut registry = Registry::default();
        for (kind, name) in [
            (Kind::Data, "data"),
            (Kind::Exist, "exist"),
            (Kind::Child, "child"),
            (Kind::Persistent, "persistent"),
            (Kind::Recursive, "recursive"),
        ] {
            registry.register(kind, watched.into(), String::from(name));
        }
        let mut told = Vec::new();
        registry.fire(kind, at, None, |watcher, notice| {
            assert_eq!(notice, WatchNotice::Event(NodeEvent { kind, path: at.into(), zxid: None }));
            told.push(watcher);
        });
        assert_eq!(told, fired);
        assert_eq!(registry.take_all().collect::<Vec<_>>(), kept);
    }

    #[test]
    fn events_fire_matching_kinds_once() {
        let all = ["data", "exist", "child", "persistent", "recursive"];
        let created = ["data", "exist", "persistent", "recursive"];
        let created_kept = ["child", "persistent", "recursive"];
        check(EventType::NODE_CREATED, "/a", "/a", &created, &created_kept);
        check(EventType::NODE_DATA_CHANGED, "/a", "/a", &created, &created_kept);
        check(EventType::NODE_DELETED, "/a", "/a", &all, &["persistent", "recursive"]);
        let children_kept = ["data", "exist", "persistent", "recursive"];
        check(
            EventType::NODE_CHILDREN_CHANGED,
            "/a",
            "/a",
            &["child", "persistent"],
            &children_kept,
        );
    }

    #[test]
    fn recursive_watches_cover_descendants_only() {
        let all = ["data", "exist", "child", "persistent", "recursive"];
        check(EventType::NODE_CREATED, "/a/b/c", "/a", &["recursive"], &all);
        check(EventType::NODE_CREATED, "/a/b/c", "/", &["recursive"], &all);
        check(EventType::NODE_CREATED, "/ab", "/a", &[], &all);
        check(EventType::NODE_CHILDREN_CHANGED, "/a/b", "/a", &[], &all);
    }

    #[test]
    fn dropped_watchers_are_removed_lazily() {
        #[derive(Clone)]
        struct Gone;
        impl Watcher for Gone {
            fn is_gone(&self) -> bool {
                true
            }
        }
        let mut registry = Registry::default();
        for _ in 0..1000 {
            registry.register(Kind::Data, "/a".into(), Gone);
        }
        registry.each(|_, path| panic!("{path} is still watched"));
        assert_eq!(registry.take_all().count(), 0);
    }
}
