//! The watches of one member, and what each change sends to them.

use std::collections::{BTreeMap, BTreeSet};

use zk_proto::{EventType, WatcherType, path};

use super::{
    Conn,
    node::Access,
    tree::{Change, parent},
};

/// How a connection watches a path in one table. Up to 3.8 at most one of them holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Modes {
    once: bool,
    persistent: bool,
    recursive: bool,
}

/// One way to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Once,
    Persistent,
    Recursive,
}

impl Modes {
    const fn of(mode: Mode) -> Self {
        let mut modes = Self { once: false, persistent: false, recursive: false };
        modes.set(mode, true);
        modes
    }

    const fn set(&mut self, mode: Mode, on: bool) {
        match mode {
            Mode::Once => self.once = on,
            Mode::Persistent => self.persistent = on,
            Mode::Recursive => self.recursive = on,
        }
    }

    const fn any(self) -> bool {
        self.once || self.persistent || self.recursive
    }
}

/// An event on its way to a connection, unless that may not read the node.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) conn: Conn,
    pub(super) kind: EventType,
    pub(super) path: Box<str>,
    pub(super) access: Access,
}

/// Watches on one aspect of nodes: data and existence, or children.
#[derive(Debug, Default)]
struct Table {
    watchers: BTreeMap<Box<str>, BTreeMap<Conn, Modes>>,
    paths: BTreeMap<Conn, BTreeSet<Box<str>>>,
    /// Entries with a recursive watch; while there are none, no ancestor needs to be looked at.
    recursive: usize,
}

impl Table {
    fn add(&mut self, conn: Conn, path: &str, mode: Mode, mixed: bool) {
        let modes = self.watchers.entry(path.into()).or_default().entry(conn).or_default();
        let before = modes.recursive;
        if mixed {
            modes.set(mode, true);
        } else {
            *modes = Modes::of(mode);
        }
        let after = modes.recursive;
        self.paths.entry(conn).or_default().insert(path.into());
        self.recursive += usize::from(after && !before);
        self.recursive -= usize::from(before && !after);
    }

    fn modes(&self, conn: Conn, path: &str) -> Modes {
        let modes = self.watchers.get(path).and_then(|watchers| watchers.get(&conn));
        modes.copied().unwrap_or_default()
    }

    /// Whether a path is watched.
    fn watches(&self, path: &str) -> bool {
        self.watchers.contains_key(path)
    }

    /// Replaces what is watched, and forgets the entry if that is nothing.
    fn replace(&mut self, conn: Conn, path: &str, modes: Modes) {
        let Some(watchers) = self.watchers.get_mut(path) else { return };
        let Some(entry) = watchers.get_mut(&conn) else { return };
        self.recursive += usize::from(modes.recursive && !entry.recursive);
        self.recursive -= usize::from(entry.recursive && !modes.recursive);
        *entry = modes;
        if modes.any() {
            return;
        }
        watchers.remove(&conn);
        if watchers.is_empty() {
            self.watchers.remove(path);
        }
        if let Some(paths) = self.paths.get_mut(&conn) {
            paths.remove(path);
            if paths.is_empty() {
                self.paths.remove(&conn);
            }
        }
    }

    fn remove_conn(&mut self, conn: Conn) {
        for path in self.paths.get(&conn).cloned().unwrap_or_default() {
            self.replace(conn, &path, Modes::default());
        }
    }

    /// Which clients are to hear of something at a path; one-shot watches there are used up.
    fn fire(&mut self, path: &str, ancestors_too: bool) -> BTreeSet<Conn> {
        let mut heard = BTreeSet::new();
        let here = self.watchers.get(path).cloned().unwrap_or_default();
        for (conn, mut modes) in here {
            // Children changing is nothing to a recursive watch, which hears of the child itself.
            if modes.once || modes.persistent || (modes.recursive && ancestors_too) {
                heard.insert(conn);
            }
            modes.once = false;
            self.replace(conn, path, modes);
        }
        if ancestors_too && self.recursive > 0 {
            for above in path::ancestors(path).skip(1) {
                let Some(watchers) = self.watchers.get(above) else { continue };
                heard.extend(watchers.iter().filter(|(_, it)| it.recursive).map(|(conn, _)| *conn));
            }
        }
        heard
    }
}

/// All watches of one member's connections.
#[derive(Debug)]
pub(super) struct Watches {
    data: Table,
    children: Table,
    /// Whether one connection may watch one path in several ways (3.9), or the last one replaces the
    /// others (3.6 to 3.8).
    mixed: bool,
}

impl Watches {
    pub(super) fn new(mixed: bool) -> Self {
        Self { data: Table::default(), children: Table::default(), mixed }
    }

    pub(super) fn add_data(&mut self, conn: Conn, path: &str) {
        self.data.add(conn, path, Mode::Once, self.mixed);
    }

    pub(super) fn add_children(&mut self, conn: Conn, path: &str) {
        self.children.add(conn, path, Mode::Once, self.mixed);
    }

    pub(super) fn add_persistent(&mut self, conn: Conn, path: &str, recursive: bool) {
        let mode = if recursive { Mode::Recursive } else { Mode::Persistent };
        self.data.add(conn, path, mode, self.mixed);
        if !recursive || !self.mixed {
            self.children.add(conn, path, mode, self.mixed);
        }
    }

    pub(super) fn remove_conn(&mut self, conn: Conn) {
        self.data.remove_conn(conn);
        self.children.remove_conn(conn);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.mixed);
    }

    /// Whether there is a recursive watch.
    pub(super) const fn any_recursive(&self) -> bool {
        self.data.recursive > 0
    }

    /// Whether a path is watched: 3.6 to 3.8 do not look by which client.
    pub(super) fn anybody_has(&self, path: &str, kind: WatcherType) -> bool {
        let (data, children) = (self.data.watches(path), self.children.watches(path));
        match kind {
            WatcherType::CHILDREN => children,
            WatcherType::DATA => data,
            _ => data || children,
        }
    }

    /// Whether a connection watches a path in this way.
    pub(super) fn has(&self, conn: Conn, path: &str, kind: WatcherType) -> bool {
        let (data, children) = (self.data.modes(conn, path), self.children.modes(conn, path));
        match kind {
            WatcherType::CHILDREN if self.mixed => children.once,
            WatcherType::CHILDREN => children.any(),
            WatcherType::DATA if self.mixed => data.once,
            WatcherType::DATA => data.any(),
            WatcherType::PERSISTENT => data.persistent || children.persistent,
            WatcherType::PERSISTENT_RECURSIVE => data.recursive,
            _ => data.any() || children.any(),
        }
    }

    /// Ends watches. Returns whether there were any.
    pub(super) fn remove(&mut self, conn: Conn, path: &str, kind: WatcherType) -> bool {
        let there = self.has(conn, path, kind);
        let without = |table: &mut Table, mode: Option<Mode>| {
            let mut modes = table.modes(conn, path);
            match mode {
                Some(mode) => modes.set(mode, false),
                None => modes = Modes::default(),
            }
            table.replace(conn, path, modes);
        };
        let once = self.mixed.then_some(Mode::Once);
        match kind {
            WatcherType::CHILDREN => without(&mut self.children, once),
            WatcherType::DATA => without(&mut self.data, once),
            WatcherType::PERSISTENT => {
                without(&mut self.data, Some(Mode::Persistent));
                without(&mut self.children, Some(Mode::Persistent));
            }
            WatcherType::PERSISTENT_RECURSIVE => without(&mut self.data, Some(Mode::Recursive)),
            _ => {
                without(&mut self.data, None);
                without(&mut self.children, None);
            }
        }
        there
    }

    /// Which clients a change concerns, in the order in which it must be sent.
    pub(super) fn fire(&mut self, change: Change, events: &mut Vec<Event>) {
        let mut send = |heard: BTreeSet<Conn>, kind, path: &str, access: &Access| {
            events.extend(heard.into_iter().map(|conn| Event {
                conn,
                kind,
                path: path.into(),
                access: access.clone(),
            }));
        };
        match change {
            Change::Created { path, access, parent: above } => {
                send(self.data.fire(&path, true), EventType::NODE_CREATED, &path, &access);
                let parent = parent(&path);
                let heard = self.children.fire(parent, false);
                send(heard, EventType::NODE_CHILDREN_CHANGED, parent, &above);
            }
            Change::Deleted { path, access, parent: above } => {
                // One event for each connection, even if it watches both aspects.
                let mut heard = self.data.fire(&path, true);
                heard.append(&mut self.children.fire(&path, true));
                send(heard, EventType::NODE_DELETED, &path, &access);
                let parent = parent(&path);
                let heard = self.children.fire(parent, false);
                send(heard, EventType::NODE_CHILDREN_CHANGED, parent, &above);
            }
            Change::Data { path, access } => {
                send(self.data.fire(&path, true), EventType::NODE_DATA_CHANGED, &path, &access);
            }
        }
    }

    /// How many entries there are, over all connections.
    pub(super) fn len(&self) -> usize {
        let count = |table: &Table| table.paths.values().map(BTreeSet::len).sum::<usize>();
        count(&self.data) + count(&self.children)
    }

    /// What a connection watches: paths for data and existence, and paths for children.
    pub(super) fn of(&self, conn: Conn) -> (Vec<&str>, Vec<&str>) {
        fn list(table: &Table, conn: Conn) -> Vec<&str> {
            table.paths.get(&conn).into_iter().flatten().map(|path| &**path).collect()
        }
        (list(&self.data, conn), list(&self.children, conn))
    }
}
