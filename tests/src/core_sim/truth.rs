//! What has really happened, replayed from the ensemble's history.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use bytes::{Buf, BufMut, Bytes};
use zk_proto::{
    EventType, SessionId, Time, Zxid,
    path::{name, parent},
};
use zk_testkit::server::{Committed, NodeKind, Txn};

/// An event that a watch may receive.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) zxid: Zxid,
    pub(crate) kind: EventType,
    pub(crate) path: Arc<str>,
}

/// What a node was at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) mzxid: Zxid,
    pub(crate) version: i32,
    pub(crate) owner: SessionId,
    pub(crate) data: Option<Bytes>,
}

/// A session's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) session: SessionId,
    pub(crate) at: Time,
}

/// All changes in order, and each node's past.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// Transactions that have been read.
    read: usize,
    pub(crate) changes: Vec<Change>,
    past: BTreeMap<Arc<str>, Vec<(Zxid, Option<Node>)>>,
    /// The present children of each node that ever had any, and the transaction that last changed them.
    children: BTreeMap<Arc<str>, (Zxid, BTreeSet<Box<str>>)>,
    ephemerals: BTreeMap<SessionId, BTreeSet<Arc<str>>>,
    /// Which transaction carried out the write with this mark.
    written: BTreeMap<u64, Zxid>,
    /// Ends of sessions that have not been read.
    pub(crate) ends: Vec<End>,
    pub(crate) violations: Vec<String>,
}

impl Truth {
    /// Reads what is new in the history.
    pub(crate) fn learn(&mut self, history: &[Committed]) {
        for committed in &history[self.read..] {
            self.apply(committed, &committed.txn);
        }
        self.read = history.len();
    }

    fn apply(&mut self, committed: &Committed, txn: &Txn) {
        let zxid = committed.stamp.zxid;
        match txn {
            Txn::Create { path, data, kind, .. } => {
                let path: Arc<str> = Arc::from(&**path);
                let owner = match kind {
                    NodeKind::Ephemeral(owner) => *owner,
                    _ => SessionId(0),
                };
                if owner.0 != 0 {
                    self.ephemerals.entry(owner).or_default().insert(path.clone());
                }
                self.mark(zxid, data.as_ref());
                let node = Node { mzxid: zxid, version: 0, owner, data: data.clone() };
                self.set(zxid, &path, Some(node));
                self.change(zxid, EventType::NODE_CREATED, &path);
            }
            Txn::Delete { path } => self.delete(zxid, &Arc::from(&**path)),
            Txn::SetData { path, data, version } => {
                let path: Arc<str> = Arc::from(&**path);
                self.mark(zxid, data.as_ref());
                let owner = self.at(&path, zxid).map_or(SessionId(0), |node| node.owner);
                let node = Node { mzxid: zxid, version: *version, owner, data: data.clone() };
                self.set(zxid, &path, Some(node));
                self.change(zxid, EventType::NODE_DATA_CHANGED, &path);
            }
            Txn::Multi(txns) => txns.iter().for_each(|txn| self.apply(committed, txn)),
            Txn::CloseSession => {
                let session = committed.stamp.session;
                self.ends.push(End { session, at: committed.at });
                for path in self.ephemerals.remove(&session).unwrap_or_default() {
                    self.delete(zxid, &path);
                }
            }
            _ => {}
        }
    }

    fn delete(&mut self, zxid: Zxid, path: &Arc<str>) {
        if let Some(node) = self.at(path, zxid) {
            let owner = node.owner;
            self.ephemerals.entry(owner).or_default().remove(path);
        }
        self.set(zxid, path, None);
        self.change(zxid, EventType::NODE_DELETED, path);
    }

    fn change(&mut self, zxid: Zxid, kind: EventType, path: &Arc<str>) {
        self.changes.push(Change { zxid, kind, path: path.clone() });
        if kind == EventType::NODE_DATA_CHANGED {
            return;
        }
        let parent: Arc<str> = Arc::from(parent(path).expect("the root neither comes nor goes"));
        let (changed, names) = self.children.entry(parent.clone()).or_default();
        *changed = zxid;
        if kind == EventType::NODE_CREATED {
            names.insert(name(path).into());
        } else {
            names.remove(name(path));
        }
        let kind = EventType::NODE_CHILDREN_CHANGED;
        self.changes.push(Change { zxid, kind, path: parent });
    }

    fn set(&mut self, zxid: Zxid, path: &Arc<str>, node: Option<Node>) {
        self.past.entry(path.clone()).or_default().push((zxid, node));
    }

    /// A write that carries a mark is carried out, for the first time.
    fn mark(&mut self, zxid: Zxid, data: Option<&Bytes>) {
        if let Some(mark) = data.and_then(|data| mark_of(data)) {
            if let Some(before) = self.written.insert(mark, zxid) {
                self.violations.push(format!("S9: write {mark:#x} is done at {before} and {zxid}"));
            }
        }
    }

    /// When the write with this mark was carried out, if it was.
    pub(crate) fn written(&self, mark: u64) -> Option<Zxid> {
        self.written.get(&mark).copied()
    }

    /// A node as of a transaction.
    pub(crate) fn at(&self, path: &str, zxid: Zxid) -> Option<&Node> {
        let past = self.past.get(path)?;
        let behind = past.partition_point(|(at, _)| *at <= zxid);
        past[..behind].last()?.1.as_ref()
    }

    /// The children of a node as of a transaction, by their names.
    pub(crate) fn children_at(&self, path: &str, zxid: Zxid) -> BTreeSet<&str> {
        match self.children.get(path) {
            None => return BTreeSet::new(),
            Some((changed, names)) if *changed <= zxid => {
                return names.iter().map(|name| &**name).collect();
            }
            // A client sees the past.
            Some(_) => {}
        }
        let prefix = if path == "/" { path.to_owned() } else { format!("{path}/") };
        let below = self.past.range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded));
        below
            .take_while(|(path, _)| path.starts_with(&prefix))
            .filter_map(|(path, _)| Some((path.strip_prefix(&prefix)?, path)))
            .filter(|(name, path)| !name.contains('/') && self.at(path, zxid).is_some())
            .map(|(name, _)| name)
            .collect()
    }

    /// The place of the first change after a transaction.
    pub(crate) fn after(&self, zxid: Zxid) -> usize {
        self.changes.partition_point(|change| change.zxid <= zxid)
    }
}

/// The mark of a write, from what it writes.
pub(crate) fn mark_of(mut data: &[u8]) -> Option<u64> {
    (data.len() == 8).then(|| data.get_u64())
}

/// What to write so that it is known again.
pub(crate) fn mark(token: u64) -> [u8; 8] {
    let mut mark = [0; 8];
    mark.as_mut_slice().put_u64(token);
    mark
}
