//! The nodes, and what transactions do to them. Nothing is checked here.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    time::Duration,
};

use bytes::Bytes;
use zk_proto::{Acl, SessionId, Zxid, path};

use super::{
    node::{Access, Node, open_acl},
    quota,
    txn::{NodeKind, Stamp, Txn},
};

/// A change that watches may hear of, with the lists that decide about permissions.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Created { path: Box<str>, access: Access, parent: Access },
    Deleted { path: Box<str>, access: Access, parent: Access },
    Data { path: Box<str>, access: Access },
}

/// How to take one step back.
#[derive(Debug)]
enum Undo {
    Created { path: Box<str>, parent_created: i32, parent_pzxid: Zxid },
    Deleted { path: Box<str>, node: Node, parent_pzxid: Zxid },
    Data { path: Box<str>, data: Option<Bytes>, version: i32, mzxid: Zxid, mtime: i64 },
    Counted { path: Box<str>, data: Option<Bytes> },
}

/// What came of transactions: which clients to notify, and how to take them back.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) changes: Vec<Change>,
    undo: Vec<Undo>,
}

/// All nodes of one member.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: BTreeMap<Box<str>, Node>,
    ephemerals: BTreeMap<SessionId, BTreeSet<Box<str>>>,
    /// Which sessions there are, with their timeouts in milliseconds.
    sessions: BTreeMap<SessionId, i32>,
    /// Containers and nodes with a time to live.
    mortal: BTreeSet<Box<str>>,
    quotas: quota::Quotas,
}

/// Where the ensemble's configuration is read.
pub(super) const CONFIG: &str = "/zookeeper/config";

/// The nodes that every server has and that cannot be deleted.
pub(super) const RESERVED: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", CONFIG];

impl Tree {
    /// The tree of a new server; `config` is what stands in the node of that name, if there is one, since its ensemble
    /// `began` to have leaders.
    pub(super) fn new(config: Option<Bytes>, began: Stamp) -> Self {
        let stamp = Stamp { zxid: Zxid(0), millis: 0, session: SessionId(0) };
        let empty = || Some(Bytes::new());
        let node = || Node::new(empty(), open_acl(), NodeKind::Persistent, stamp);
        let mut root = node();
        root.children.insert("zookeeper".into());
        let mut reserved = node();
        reserved.children.insert("quota".into());
        let mut nodes = BTreeMap::new();
        if let Some(listed) = config {
            reserved.children.insert("config".into());
            let mut config = node();
            if !listed.is_empty() {
                config.data = Some(listed);
                config.version = -1;
                (config.mzxid, config.mtime) = (began.zxid, began.millis);
            }
            config.set_acl([Acl::world_readable()].into_iter().collect());
            config.aversion = -1;
            nodes.insert(CONFIG.into(), config);
        }
        nodes.insert("/".into(), root);
        nodes.insert("/zookeeper".into(), reserved);
        nodes.insert("/zookeeper/quota".into(), node());
        Self {
            nodes,
            ephemerals: BTreeMap::new(),
            sessions: BTreeMap::new(),
            mortal: BTreeSet::new(),
            quotas: quota::Quotas::default(),
        }
    }

    /// The node at a path; the empty path means the root.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(if path.is_empty() { "/" } else { path })
    }

    /// All nodes, in order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (&**path, node))
    }

    /// How many descendants a path has.
    pub(super) fn count_below(&self, path: &str) -> usize {
        if path == "/" {
            return self.nodes.len().saturating_sub(1);
        }
        if path.is_empty() {
            // Real servers find the root below the empty path, which is the root by another name.
            return self.nodes.len();
        }
        let below = format!("{path}/");
        let from = self.nodes.range::<str, _>((Bound::Excluded(&*below), Bound::Unbounded));
        from.take_while(|(path, _)| path.starts_with(&below)).count()
    }

    /// A session's ephemeral nodes, in order of their paths.
    pub fn ephemerals(&self, session: SessionId) -> impl Iterator<Item = &str> {
        self.ephemerals.get(&session).into_iter().flatten().map(|path| &**path)
    }

    /// The sessions that there are, with their timeouts.
    pub(super) fn sessions(&self) -> impl Iterator<Item = (SessionId, Duration)> {
        let timeout =
            |millis: i32| Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        self.sessions.iter().map(move |(id, millis)| (*id, timeout(*millis)))
    }

    pub(super) fn has_session(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    pub(super) fn quotas(&self) -> &quota::Quotas {
        &self.quotas
    }

    /// Containers and nodes with a time to live whose time has come.
    pub(super) fn expired(&self, millis: i64) -> Vec<Box<str>> {
        let dead = |path: &str| {
            let Some(node) = self.nodes.get(path) else { return false };
            node.children.is_empty()
                && match node.kind {
                    NodeKind::Container => node.created > 0,
                    NodeKind::Ttl(ttl) => millis.saturating_sub(node.mtime) > ttl,
                    _ => false,
                }
        };
        self.mortal.iter().filter(|path| dead(path)).cloned().collect()
    }

    /// Sets the sequence number that the next sequential child of a node gets.
    pub(super) fn set_sequence(&mut self, path: &str, next: i32) -> bool {
        self.nodes.get_mut(path).map(|node| node.created = next).is_some()
    }

    /// Carries out a transaction.
    pub(super) fn apply(&mut self, stamp: Stamp, txn: &Txn, effects: &mut Effects) {
        match txn {
            Txn::Create { path, data, acl, kind, parent_cversion } => {
                let node = Node::new(data.clone(), acl.clone(), *kind, stamp);
                self.insert(path, node, *parent_cversion, stamp, effects);
            }
            Txn::Delete { path } => self.remove(path, stamp, effects),
            Txn::SetData { path, data, version } => {
                self.write(path, data.clone(), *version, stamp, effects);
            }
            Txn::SetAcl { path, acl, version } => {
                if let Some(node) = self.nodes.get_mut(path) {
                    node.set_acl(acl.clone());
                    node.aversion = *version;
                }
            }
            Txn::Multi(txns) => txns.iter().for_each(|txn| self.apply(stamp, txn, effects)),
            Txn::OpenSession { timeout } => {
                self.sessions.insert(stamp.session, *timeout);
            }
            Txn::CloseSession => {
                self.sessions.remove(&stamp.session);
                let paths = self.ephemerals.remove(&stamp.session).unwrap_or_default();
                let mut paths: Vec<_> = paths.into_iter().collect();
                // Real servers go through a hash table; clients must not count on any order.
                paths.sort_by_key(|path| disorder(stamp.zxid, path));
                for path in paths {
                    self.remove(&path, stamp, effects);
                }
            }
            Txn::Check { .. } | Txn::Error(_) => {}
        }
    }

    fn insert(
        &mut self,
        path: &str,
        node: Node,
        created: i32,
        stamp: Stamp,
        effects: &mut Effects,
    ) {
        let above = parent(path);
        let access = node.access();
        let Some(parent) = self.nodes.get_mut(above) else { return };
        effects.undo.push(Undo::Created {
            path: path.into(),
            parent_created: parent.created,
            parent_pzxid: parent.pzxid,
        });
        // As servers do: at the end of the numbers the counter stays where it is, and so does pzxid.
        if created > parent.created {
            parent.created = created;
            parent.pzxid = stamp.zxid;
        }
        parent.children.insert(path::name(path).into());
        let parent = parent.access();
        self.index(path, node.kind);
        let len = node.len();
        self.nodes.insert(path.into(), node);
        self.quotas.node_created(path);
        if let Some(subtree) = quota::subtree_of_stats(path) {
            let counts = self.counts(subtree);
            if let Some(node) = self.nodes.get_mut(path) {
                node.data = Some(counts);
            }
        }
        self.count_quota(path, 1, len.try_into().unwrap_or(i64::MAX), effects);
        effects.changes.push(Change::Created { path: path.into(), access, parent });
    }

    fn remove(&mut self, path: &str, stamp: Stamp, effects: &mut Effects) {
        let Some(node) = self.nodes.remove(path) else { return };
        let access = node.access();
        self.unindex(path, node.kind);
        let mut parent_access = None;
        let mut parent_pzxid = Zxid(0);
        if let Some(parent) = self.nodes.get_mut(parent(path)) {
            parent_pzxid = parent.pzxid;
            parent.children.remove(path::name(path));
            parent.pzxid = parent.pzxid.max(stamp.zxid);
            parent_access = parent.access();
        }
        let len = i64::try_from(node.len()).unwrap_or(i64::MAX);
        effects.undo.push(Undo::Deleted { path: path.into(), node, parent_pzxid });
        self.quotas.node_deleted(path);
        self.count_quota(path, -1, len.saturating_neg(), effects);
        effects.changes.push(Change::Deleted { path: path.into(), access, parent: parent_access });
    }

    fn write(
        &mut self,
        path: &str,
        data: Option<Bytes>,
        version: i32,
        stamp: Stamp,
        effects: &mut Effects,
    ) {
        let Some(node) = self.nodes.get_mut(path) else { return };
        let len_before = node.len();
        let data = std::mem::replace(&mut node.data, data);
        effects.undo.push(Undo::Data {
            path: path.into(),
            data,
            version: node.version,
            mzxid: node.mzxid,
            mtime: node.mtime,
        });
        node.version = version;
        node.mzxid = stamp.zxid;
        node.mtime = stamp.millis;
        let access = node.access();
        let grown = i64::try_from(node.len()).unwrap_or(i64::MAX)
            - i64::try_from(len_before).unwrap_or(i64::MAX);
        self.count_quota(path, 0, grown, effects);
        effects.changes.push(Change::Data { path: path.into(), access });
    }

    /// Takes back what `effects` tells of, newest first, as if it had never been.
    pub(super) fn take_back(&mut self, effects: Effects) {
        for undo in effects.undo.into_iter().rev() {
            match undo {
                Undo::Created { path, parent_created, parent_pzxid } => {
                    let Some(node) = self.nodes.remove(&path) else { continue };
                    self.unindex(&path, node.kind);
                    self.quotas.node_deleted(&path);
                    if let Some(parent) = self.nodes.get_mut(parent(&path)) {
                        parent.children.remove(path::name(&path));
                        parent.created = parent_created;
                        parent.pzxid = parent_pzxid;
                    }
                }
                Undo::Deleted { path, node, parent_pzxid } => {
                    if let Some(parent) = self.nodes.get_mut(parent(&path)) {
                        parent.children.insert(path::name(&path).into());
                        parent.pzxid = parent_pzxid;
                    }
                    self.index(&path, node.kind);
                    self.nodes.insert(path.clone(), node);
                    self.quotas.node_created(&path);
                }
                Undo::Data { path, data, version, mzxid, mtime } => {
                    let Some(node) = self.nodes.get_mut(&path) else { continue };
                    (node.data, node.version, node.mzxid, node.mtime) =
                        (data, version, mzxid, mtime);
                }
                Undo::Counted { path, data } => {
                    let Some(node) = self.nodes.get_mut(&path) else { continue };
                    node.data = data;
                }
            }
        }
    }

    fn index(&mut self, path: &str, kind: NodeKind) {
        match kind {
            NodeKind::Persistent => {}
            NodeKind::Ephemeral(owner) => {
                self.ephemerals.entry(owner).or_default().insert(path.into());
            }
            NodeKind::Container | NodeKind::Ttl(_) => {
                self.mortal.insert(path.into());
            }
        }
    }

    fn unindex(&mut self, path: &str, kind: NodeKind) {
        match kind {
            NodeKind::Persistent => {}
            NodeKind::Ephemeral(owner) => {
                if let Some(paths) = self.ephemerals.get_mut(&owner) {
                    paths.remove(path);
                    if paths.is_empty() {
                        self.ephemerals.remove(&owner);
                    }
                }
            }
            NodeKind::Container | NodeKind::Ttl(_) => {
                self.mortal.remove(path);
            }
        }
    }

    /// Adds to the counts that are kept of a subtree with a quota.
    fn count_quota(&mut self, path: &str, nodes: i64, bytes: i64, effects: &mut Effects) {
        let Some(stats) = self.quotas.stats_of(path) else { return };
        let Some(node) = self.nodes.get_mut(&*stats) else { return };
        if let Some(counted) = quota::counted(node.data.as_deref(), nodes, bytes) {
            let data = node.data.replace(counted);
            effects.undo.push(Undo::Counted { path: stats.into(), data });
        }
    }

    /// The counts of a subtree, from scratch.
    fn counts(&self, subtree: &str) -> Bytes {
        let below = format!("{subtree}/");
        let within = |path: &str| path == subtree || path.starts_with(&below);
        let nodes = self.nodes.range::<str, _>((Bound::Included(subtree), Bound::Unbounded));
        let nodes = nodes.take_while(|(path, _)| path.starts_with(subtree));
        let (mut count, mut bytes) = (0_i64, 0_i64);
        for (_, node) in nodes.filter(|(path, _)| within(path)) {
            count = count.saturating_add(1);
            bytes = bytes.saturating_add(i64::try_from(node.len()).unwrap_or(i64::MAX));
        }
        quota::counts(count, bytes)
    }
}

/// A place in an order that means nothing (FNV-1a).
fn disorder(zxid: Zxid, path: &str) -> u64 {
    let seed = 0xCBF2_9CE4_8422_2325 ^ zxid.0 as u64;
    path.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

/// The path above; that of a child of the root is the root.
pub(super) fn parent(path: &str) -> &str {
    path::parent(path).unwrap_or("/")
}
