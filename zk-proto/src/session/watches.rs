//! Who waits for what, as far as this session knows: armed by replies, fired by events, and listed
//! when a new connection has to be told.

use alloc::{
    collections::{BTreeMap, btree_map::Range},
    string::String,
    sync::Arc,
};
use core::{borrow::Borrow, cmp::Ordering, ops::Bound};

use super::{
    standing::Modes,
    waiting::Waiting,
    watch::{NodeEvent, WatchBy, WatchNotice},
};
use crate::{code::ErrorCode, data::EventType, path};

/// Whatever waits for a watch. The session only carries it.
pub trait Watcher: Clone {
    /// Whether nobody listens any more, so that the session may forget it.
    fn is_gone(&self) -> bool {
        false
    }
}

/// What a server keeps a watch as, and so what it must be told to arm it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// On the data of a node that existed.
    Data,
    /// On a node that was missing.
    Exist,
    /// On the set of children.
    Child,
    /// Persistent.
    Persistent,
    /// Persistent and recursive.
    Recursive,
}

impl Kind {
    const ALL: [Self; 5] =
        [Self::Data, Self::Exist, Self::Child, Self::Persistent, Self::Recursive];

    pub(crate) const fn is_persistent(self) -> bool {
        matches!(self, Self::Persistent | Self::Recursive)
    }

    /// What requests of a kind can arm. Equal for those that share one watch of the server.
    pub(crate) const fn armed_by(by: WatchBy) -> &'static [Self] {
        match by {
            WatchBy::Data | WatchBy::Exists => &[Self::Data, Self::Exist],
            WatchBy::Children => &[Self::Child],
            WatchBy::Persistent => &[Self::Persistent],
            WatchBy::Recursive => &[Self::Recursive],
        }
    }

    /// What a request arms if it is answered with `code`; `None` if nothing.
    pub(crate) const fn armed(by: WatchBy, code: ErrorCode) -> Option<Self> {
        match (by, code) {
            (WatchBy::Data | WatchBy::Exists, ErrorCode::OK) => Some(Self::Data),
            (WatchBy::Exists, ErrorCode::NO_NODE) => Some(Self::Exist),
            (WatchBy::Children, ErrorCode::OK) => Some(Self::Child),
            (WatchBy::Persistent, ErrorCode::OK) => Some(Self::Persistent),
            (WatchBy::Recursive, ErrorCode::OK) => Some(Self::Recursive),
            _ => None,
        }
    }
}

/// Paths are those of the server, without regard to any chroot. Ordered, so that what is sent after a
/// reconnect does not depend on chance.
#[derive(Clone, Debug)]
pub(crate) struct Watches<W>(BTreeMap<(Kind, Arc<str>), Waiting<W>>);

impl<W: Watcher> Watches<W> {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Registers a watch that the server has armed.
    pub(crate) fn arm(&mut self, kind: Kind, path: Arc<str>, watcher: W) {
        let watchers = self.0.entry((kind, path)).or_default();
        // Watchers come and go on nodes that never change; nothing else would ever forget them.
        watchers.retain(|watcher| !watcher.is_gone());
        watchers.push(watcher);
    }

    /// Passes an event to everybody whom it concerns. One-shot watches are gone afterwards.
    pub(crate) fn fire(&mut self, event: &NodeEvent, mut notify: impl FnMut(W, WatchNotice)) {
        let one_shot: &[Kind] = match event.kind {
            EventType::NODE_CREATED | EventType::NODE_DATA_CHANGED => &[Kind::Data, Kind::Exist],
            EventType::NODE_DELETED if planted!(ChildWatchOutlivesNode) => {
                &[Kind::Data, Kind::Exist]
            }
            EventType::NODE_DELETED => &[Kind::Data, Kind::Exist, Kind::Child],
            EventType::NODE_CHILDREN_CHANGED => &[Kind::Child],
            _ => return,
        };
        let notice = WatchNotice::Event(event.clone());
        for &kind in one_shot {
            for watcher in self.0.remove(&(kind, event.path.clone())).unwrap_or_default() {
                notify(watcher, notice.clone());
            }
        }
        for watcher in self.at(Kind::Persistent, &event.path) {
            notify(watcher.clone(), notice.clone());
        }
        // Sets of children do not concern recursive watches: such an event belongs to another watch
        // of this connection (ZOOKEEPER-4475).
        if event.kind != EventType::NODE_CHILDREN_CHANGED {
            for watcher in
                path::ancestors(&event.path).flat_map(|path| self.at(Kind::Recursive, path))
            {
                notify(watcher.clone(), notice.clone());
            }
        }
    }

    fn at(&self, kind: Kind, path: &str) -> &[W] {
        let place: &dyn Place = &(kind, path);
        self.0.get(place).map(Waiting::as_slice).unwrap_or_default()
    }

    /// Shows every path that a new connection must be told of, with the kind of its watch, in order. Forgets those that
    /// nobody waits for any more.
    pub(crate) fn each(&mut self, mut show: impl FnMut(Kind, &str)) {
        self.0.retain(|(kind, path), watchers| {
            let is_watched = watchers.retain(|watcher| !watcher.is_gone());
            if is_watched {
                show(*kind, path);
            }
            is_watched
        });
    }

    /// The places of persistent watches.
    pub(crate) fn persistent(&self) -> impl Iterator<Item = &(Kind, Arc<str>)> {
        self.all_persistent().map(|(place, _)| place)
    }

    /// Tells every persistent watch something.
    pub(crate) fn tell_persistent(
        &self,
        notice: &WatchNotice,
        mut notify: impl FnMut(W, WatchNotice),
    ) {
        for watcher in self.all_persistent().flat_map(|(_, watchers)| watchers.as_slice()) {
            notify(watcher.clone(), notice.clone());
        }
    }

    /// They are behind all others, which there may be many more of.
    fn all_persistent(&self) -> Range<'_, (Kind, Arc<str>), Waiting<W>> {
        let first: &dyn Place = &(Kind::Persistent, "");
        self.0.range::<dyn Place, _>((Bound::Included(first), Bound::Unbounded))
    }

    /// Forgets every persistent watch.
    pub(crate) fn drop_persistent(&mut self) {
        self.0.retain(|(kind, _), _| !kind.is_persistent());
    }

    /// Forgets the watches armed by `by` on `path` that `gone` picks.
    pub(crate) fn remove(&mut self, by: WatchBy, path: &str, mut gone: impl FnMut(&W) -> bool) {
        for &kind in Kind::armed_by(by) {
            let key = (kind, Arc::from(path));
            if let Some(watchers) = self.0.get_mut(&key) {
                if !watchers.retain(|watcher| !gone(watcher)) {
                    self.0.remove(&key);
                }
            }
        }
    }

    /// Whether anybody waits for anything on a path.
    pub(crate) fn is_any_at(&mut self, path: &str) -> bool {
        let path: Arc<str> = Arc::from(path);
        let mut any = false;
        for kind in Kind::ALL {
            let key = (kind, path.clone());
            let Some(watchers) = self.0.get_mut(&key) else { continue };
            if watchers.retain(|watcher| !watcher.is_gone()) {
                any = true;
            } else {
                self.0.remove(&key);
            }
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

    /// Tells all watches of a kind on a path something.
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

    /// Takes everybody, in order, to be told the last news.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = W> + use<W> {
        core::mem::take(&mut self.0).into_values().flatten()
    }
}

/// Where watches are kept, to be looked for without a copy of the path: an event has as many places to look at as its
/// path has ancestors, and servers make the paths.
trait Place {
    fn place(&self) -> (Kind, &str);
}

impl Place for (Kind, Arc<str>) {
    fn place(&self) -> (Kind, &str) {
        (self.0, &self.1)
    }
}

impl Place for (Kind, &str) {
    fn place(&self) -> (Kind, &str) {
        *self
    }
}

impl<'a> Borrow<dyn Place + 'a> for (Kind, Arc<str>) {
    fn borrow(&self) -> &(dyn Place + 'a) {
        self
    }
}

impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for dyn Place + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Place + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for dyn Place + '_ {}

/// Plain values, as used by simulators and tests, are always listening.
impl Watcher for u64 {}
impl Watcher for String {}
impl Watcher for () {}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn event(kind: EventType, path: &str) -> NodeEvent {
        NodeEvent { kind, path: path.into(), zxid: None }
    }

    /// Fires one event at a registry that has one watcher of each kind on `watched`.
    #[track_caller]
    fn check(kind: EventType, at: &str, watched: &str, fired: &[&str], kept: &[&str]) {
        let mut watches = Watches::new();
        for (kind, name) in [
            (Kind::Data, "data"),
            (Kind::Exist, "exist"),
            (Kind::Child, "child"),
            (Kind::Persistent, "persistent"),
            (Kind::Recursive, "recursive"),
        ] {
            watches.arm(kind, watched.into(), String::from(name));
        }
        let mut told = Vec::new();
        watches.fire(&event(kind, at), |watcher, _| told.push(watcher));
        assert_eq!(told, fired);
        assert_eq!(watches.take_all().collect::<Vec<_>>(), kept);
    }

    #[test]
    fn events_reach_the_kinds_of_the_dispatch_table_and_consume_the_one_shot_ones() {
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
    fn recursive_watches_see_descendants_and_nothing_beside_them() {
        let all = ["data", "exist", "child", "persistent", "recursive"];
        check(EventType::NODE_CREATED, "/a/b/c", "/a", &["recursive"], &all);
        check(EventType::NODE_CREATED, "/a/b/c", "/", &["recursive"], &all);
        check(EventType::NODE_CREATED, "/ab", "/a", &[], &all);
        check(EventType::NODE_CHILDREN_CHANGED, "/a/b", "/a", &[], &all);
    }

    #[test]
    fn watchers_that_are_gone_are_forgotten_when_the_next_one_comes() {
        #[derive(Clone)]
        struct Gone;
        impl Watcher for Gone {
            fn is_gone(&self) -> bool {
                true
            }
        }
        let mut watches = Watches::new();
        for _ in 0..1000 {
            watches.arm(Kind::Data, "/a".into(), Gone);
        }
        watches.each(|_, path| panic!("{path} is still watched"));
        assert_eq!(watches.take_all().count(), 0);
    }
}
