//! What was really committed: the history of an ensemble, replayed node by node.

use std::collections::{BTreeMap, BTreeSet};

use zk_proto::{
    Perms, SessionId, Stat, Zxid,
    path::{ancestors, parent},
};
use zk_testkit::server::{Committed, NodeKind, Txn};

/// A change of one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) zxid: Zxid,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Created(Node),
    Written(Node),
    /// A node of this session, or of none.
    Deleted(SessionId),
    /// A child came or went, and these are they now.
    Children(Family),
}

/// The children of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Family {
    count: i32,
    /// How often one has come or gone.
    version: i32,
}

/// What a node is after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Its data, as a number.
    pub(crate) data: u64,
    pub(crate) version: i32,
    pub(crate) owner: SessionId,
}

/// A node that lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) czxid: Zxid,
    pub(crate) owner: SessionId,
    family: Family,
}

/// A node that was hidden from readers at some time, as its permissions were changed last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    since: Zxid,
    is_readable: bool,
}

/// History, as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct History {
    read: usize,
    pub(crate) live: BTreeMap<Box<str>, Live>,
    owned: BTreeMap<SessionId, BTreeSet<Box<str>>>,
    /// Nodes that were hidden in the life that they have, or had last.
    hidden: BTreeMap<Box<str>, Access>,
    /// Changes of the nodes that are not waiters' own.
    changes: BTreeMap<Box<str>, Vec<Change>>,
}

/// Data as a number.
pub(crate) fn digest(data: Option<&[u8]>) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    data.unwrap_or_default().iter().fold(0xCBF2_9CE4_8422_2325, mix)
}

/// The id in a protected node's name.
pub(crate) fn guid(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?.strip_prefix("_c_")?;
    name.get(..36)
}

/// What the paths of a node's children begin with.
fn below(path: &str) -> String {
    if path == "/" { path.to_owned() } else { format!("{path}/") }
}

impl Access {
    /// Whether the node may be read again, and has changed since: every server has told of that change.
    pub(crate) fn is_over(self, last: Change) -> bool {
        self.is_readable && last.zxid > self.since
    }

    /// Whether a copy may show the node as of that transaction, or may lack it. It may lack what was hidden, until it hears of
    /// a change that it may see; it may show what the node was when it was hidden last; and where servers tell nobody of what
    /// they may not see (`tells_all` is false), it may go on showing what the node was before.
    pub(crate) fn allows(self, copy: Option<Zxid>, last: Change, tells_all: bool) -> bool {
        let is_there = !matches!(last.what, What::Deleted(_));
        let is_over = self.is_over(last);
        match copy {
            None => !is_there || !is_over,
            Some(copy) if copy == last.zxid && is_there => is_over || last.zxid < self.since,
            Some(copy) => !tells_all && !is_over && copy <= self.since,
        }
    }
}

impl What {
    const fn node(self) -> Option<Node> {
        match self {
            Self::Created(node) | Self::Written(node) => Some(node),
            Self::Deleted(_) | Self::Children(_) => None,
        }
    }

    const fn family(self) -> Option<Family> {
        match self {
            Self::Children(family) => Some(family),
            Self::Created(_) | Self::Written(_) | Self::Deleted(_) => None,
        }
    }
}

impl History {
    /// Reads one transaction that it has not, if there is one. `see` sees each change of it, with the data that is written.
    pub(crate) fn step<'a>(
        &mut self,
        history: &'a [Committed],
        mut see: impl FnMut(Zxid, &str, What, Option<&[u8]>),
    ) -> Option<&'a Committed> {
        let committed = history.get(self.read)?;
        self.read += 1;
        self.apply(committed, &committed.txn, &mut see);
        Some(committed)
    }

    fn apply(
        &mut self,
        committed: &Committed,
        txn: &Txn,
        see: &mut impl FnMut(Zxid, &str, What, Option<&[u8]>),
    ) {
        let zxid = committed.stamp.zxid;
        match txn {
            Txn::Create { path, kind, data, .. } => {
                let owner = match kind {
                    NodeKind::Ephemeral(owner) => *owner,
                    _ => SessionId(0),
                };
                if owner.0 != 0 {
                    self.owned.entry(owner).or_default().insert(path.clone());
                }
                self.hidden.remove(path);
                self.live
                    .insert(path.clone(), Live { czxid: zxid, owner, family: Family::default() });
                let node = Node { data: digest(data.as_deref()), version: 0, owner };
                self.changed(zxid, path, What::Created(node), data.as_deref(), see);
            }
            Txn::Delete { path } => self.delete(zxid, path, see),
            Txn::SetData { path, data, version } => {
                let owner = self.live.get(path).map_or(SessionId(0), |live| live.owner);
                let node = Node { data: digest(data.as_deref()), version: *version, owner };
                self.changed(zxid, path, What::Written(node), data.as_deref(), see);
            }
            Txn::SetAcl { path, acl, .. } => {
                let is_readable = acl.iter().any(|acl| acl.perms | Perms::READ == acl.perms);
                if !is_readable || self.hidden.contains_key(path) {
                    self.hidden.insert(path.clone(), Access { since: zxid, is_readable });
                }
            }
            Txn::Multi(txns) => txns.iter().for_each(|txn| self.apply(committed, txn, see)),
            Txn::CloseSession => {
                for path in self.owned.remove(&committed.stamp.session).unwrap_or_default() {
                    self.delete(zxid, &path, see);
                }
            }
            _ => {}
        }
    }

    fn delete(
        &mut self,
        zxid: Zxid,
        path: &str,
        see: &mut impl FnMut(Zxid, &str, What, Option<&[u8]>),
    ) {
        let owner = self.live.remove(path).map_or(SessionId(0), |live| live.owner);
        if self.hidden.get(path).is_some_and(|access| access.is_readable) {
            self.hidden.remove(path);
        }
        if let Some(owned) = self.owned.get_mut(&owner) {
            owned.remove(path);
        }
        self.changed(zxid, path, What::Deleted(owner), None, see);
    }

    fn changed(
        &mut self,
        zxid: Zxid,
        path: &str,
        what: What,
        data: Option<&[u8]>,
        see: &mut impl FnMut(Zxid, &str, What, Option<&[u8]>),
    ) {
        see(zxid, path, what, data);
        if guid(path).is_none() {
            self.changes.entry(path.into()).or_default().push(Change { zxid, what });
        }
        if matches!(what, What::Written(_)) {
            return;
        }
        let parent = parent(path).unwrap_or("/");
        let what = What::Children(self.family_with(parent, what));
        see(zxid, parent, what, None);
        let change = Change { zxid, what };
        match self.changes.get_mut(parent) {
            Some(changes) => changes.push(change),
            None => drop(self.changes.insert(parent.into(), vec![change])),
        }
    }

    /// A node's children, once one of them has come or gone.
    fn family_with(&mut self, parent: &str, child: What) -> Family {
        // There is no record of what a new ensemble has.
        let Some(live) = self.live.get_mut(parent) else { return Family::default() };
        live.family.count += if matches!(child, What::Deleted(_)) { -1 } else { 1 };
        live.family.version += 1;
        live.family
    }

    /// The changes of a node after a transaction.
    pub(crate) fn changes_after(&self, path: &str, zxid: Zxid) -> &[Change] {
        let Some(changes) = self.changes.get(path) else { return &[] };
        &changes[changes.partition_point(|change| change.zxid <= zxid)..]
    }

    /// Whether a transaction has made of a node what has this data and version.
    pub(crate) fn is_made_at(&self, path: &str, zxid: Zxid, data: u64, version: i32) -> bool {
        let changes = self.changes_after(path, Zxid(zxid.0 - 1));
        let nodes = changes.iter().take_while(|change| change.zxid == zxid);
        nodes
            .filter_map(|change| change.what.node())
            .any(|it| (it.data, it.version) == (data, version))
    }

    /// Whether a node had this metadata at any moment, but for its times and what its data are.
    pub(crate) fn had(&self, path: &str, stat: &Stat) -> bool {
        let Some(changes) = self.changes.get(path) else { return false };
        let until = |zxid: Zxid| &changes[..changes.partition_point(|change| change.zxid <= zxid)];
        let is_own = |change: &&Change| change.what.family().is_none();
        let written = until(stat.mzxid);
        let Some(node) = written.iter().rfind(is_own).and_then(|change| change.what.node()) else {
            return false;
        };
        let is_birth = |change: &&Change| matches!(change.what, What::Created(_));
        let birth = written.iter().rfind(is_birth).map(|change| change.zxid);
        let grown = until(stat.pzxid);
        let mut last = grown.iter().rev().take_while(|change| change.zxid == stat.pzxid);
        let family = match last.find_map(|change| change.what.family()) {
            None if stat.pzxid == stat.czxid => Family::default(),
            None => return false,
            Some(family) => family,
        };
        // It was so from the later of the two until the next change of the other kind.
        let rewritten = changes[written.len()..].iter().find(is_own);
        let grown_on = changes[grown.len()..].iter().find(|change| !is_own(change));
        birth == Some(stat.czxid)
            && stat.pzxid >= stat.czxid
            && (family.count, family.version) == (stat.num_children, stat.cversion)
            && node.version == stat.version
            && (node.owner == SessionId(0) || node.owner == stat.ephemeral_owner)
            && rewritten.is_none_or(|change| change.zxid > stat.pzxid)
            && grown_on.is_none_or(|change| change.zxid > stat.mzxid)
    }

    /// Whether a node was hidden in the life that it has, or had last.
    pub(crate) fn hidden(&self, path: &str) -> Option<Access> {
        self.hidden.get(path).copied()
    }

    /// Whether a node above was.
    pub(crate) fn is_below_hidden(&self, path: &str) -> bool {
        !self.hidden.is_empty()
            && ancestors(path).skip(1).any(|above| self.hidden.contains_key(above))
    }

    /// What has become last of a node itself, if anything has.
    pub(crate) fn last_of(&self, path: &str) -> Option<Change> {
        let changes = self.changes_after(path, Zxid(0));
        changes.iter().rfind(|change| change.what.family().is_none()).copied()
    }

    /// The nodes at a path and below that have changed, and what has become last of each.
    pub(crate) fn last_below(&self, path: &str) -> impl Iterator<Item = (&str, Change)> {
        let range = self.changes.range::<Box<str>, _>(Box::from(path)..);
        let near = range.take_while(move |(other, _)| other.starts_with(path));
        near.filter_map(|(path, _)| Some((&**path, self.last_of(path)?)))
    }

    /// A node as of a transaction, and the one that changed it last.
    pub(crate) fn at(&self, path: &str, zxid: Zxid) -> Option<(Zxid, Node)> {
        let changes = self.changes.get(path)?;
        let before = &changes[..changes.partition_point(|change| change.zxid <= zxid)];
        let last = before.iter().rfind(|change| change.what.family().is_none())?;
        Some((last.zxid, last.what.node()?))
    }

    /// The living children of a node.
    pub(crate) fn children(&self, path: &str) -> impl Iterator<Item = (&str, &Live)> {
        let prefix = below(path);
        let range = self.live.range::<Box<str>, _>(Box::from(&*prefix)..);
        let len = prefix.len();
        range
            .take_while(move |(path, _)| path.starts_with(&prefix))
            .map(move |(path, live)| (&path[len..], live))
            .filter(|(name, _)| !name.contains('/'))
    }

    /// The nodes whose paths begin so.
    pub(crate) fn begin_with(&self, prefix: &str) -> impl Iterator<Item = (&str, &Live)> {
        let range = self.live.range::<Box<str>, _>(Box::from(prefix)..);
        let nodes = range.map(|(path, live)| (&**path, live));
        nodes.take_while(move |(path, _)| path.starts_with(prefix))
    }

    /// The names of the children of a node as of a transaction, in order.
    pub(crate) fn children_at(&self, path: &str, zxid: Zxid) -> Vec<&str> {
        let later = self.changes_after(path, zxid);
        if later.iter().all(|change| change.what.family().is_none()) {
            return self.children(path).map(|(name, _)| name).collect();
        }
        // A client sees the past.
        let prefix = below(path);
        let range = self.changes.range::<Box<str>, _>(Box::from(&*prefix)..);
        range
            .take_while(|(path, _)| path.starts_with(&prefix))
            .filter(|(path, _)| self.at(path, zxid).is_some())
            .map(|(path, _)| &path[prefix.len()..])
            .filter(|name| !name.is_empty() && !name.contains('/'))
            .collect()
    }
}
