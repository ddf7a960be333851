//! What was really committed: the history of the ensemble, played again.

use std::collections::{BTreeMap, BTreeSet};

use zk_proto::{SessionId, Zxid, path::parent};
use zk_testkit::server::{Committed, NodeKind, Txn};

use super::crowd::Crowds;

/// A change of one node.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) zxid: Zxid,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// With which data, as a number.
    Created(u64),
    /// Its data, as a number, and its version.
    Written(u64, i32),
    Deleted,
    /// A child came or went.
    Children,
}

/// A node that lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) czxid: Zxid,
    pub(crate) owner: SessionId,
}

/// History, as far as it has gone.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    seen: usize,
    pub(crate) last: Zxid,
    pub(crate) live: BTreeMap<Box<str>, Live>,
    owned: BTreeMap<SessionId, BTreeSet<Box<str>>>,
    /// Changes of the nodes that are not waiters' own.
    changes: BTreeMap<Box<str>, Vec<Change>>,
    /// How often a node of each protected id has been created.
    pub(crate) guids: BTreeMap<Box<str>, u32>,
    pub(crate) closed: BTreeMap<SessionId, Zxid>,
    pub(super) crowds: Crowds,
    /// Since when each transaction has been known here, as far as that is of interest.
    times: BTreeMap<Zxid, u64>,
    /// Nodes without ids that were deleted by others than their owners, and by which clients.
    pub(super) taken_away: Vec<TakenAway>,
}

/// Data as a number.
pub(crate) fn digest(data: Option<&[u8]>) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    data.unwrap_or_default().iter().fold(0xCBF2_9CE4_8422_2325, mix)
}

/// An ephemeral node without an id in its name that another session has deleted.
#[derive(Debug)]
pub(super) struct TakenAway {
    pub(super) path: Box<str>,
    pub(super) owner: SessionId,
    pub(super) by: SessionId,
}

/// The id in a protected node's name.
pub(crate) fn guid(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?.strip_prefix("_c_")?;
    name.get(..36)
}

impl Truth {
    /// Takes in what has been committed since. Returns the sessions that have ended.
    pub(crate) fn advance(&mut self, now: u64, history: &[Committed]) -> Vec<SessionId> {
        let mut ended = Vec::new();
        for committed in &history[self.seen..] {
            self.last = committed.stamp.zxid;
            let zxid = committed.stamp.zxid;
            self.apply(zxid, committed.stamp.session, &committed.txn, &mut ended);
            self.count_crowds(zxid, now);
            let of_interest =
                |path: &str| path.starts_with("/barriers/") || path.starts_with("/kept/");
            match &committed.txn {
                Txn::Create { path, .. } | Txn::Delete { path } | Txn::SetData { path, .. }
                    if of_interest(path) =>
                {
                    self.times.insert(zxid, now);
                }
                _ => {}
            }
        }
        self.seen = history.len();
        ended
    }

    pub(crate) const fn is_behind(&self, history: &[Committed]) -> bool {
        self.seen < history.len()
    }

    fn apply(&mut self, zxid: Zxid, session: SessionId, txn: &Txn, ended: &mut Vec<SessionId>) {
        match txn {
            Txn::Create { path, kind, data, .. } => {
                let owner = match kind {
                    NodeKind::Ephemeral(owner) => *owner,
                    _ => SessionId(0),
                };
                if owner.0 != 0 {
                    self.owned.entry(owner).or_default().insert(path.clone());
                }
                if let Some(guid) = guid(path) {
                    *self.guids.entry(guid.into()).or_default() += 1;
                }
                self.live.insert(path.clone(), Live { czxid: zxid, owner });
                self.crowds.created(path);
                self.crowds.written(path, data.as_deref());
                self.changed(zxid, path, What::Created(digest(data.as_deref())));
            }
            Txn::Delete { path } => {
                let owner = self.live.get(path).map(|live| live.owner);
                let of_another = |owner: &SessionId| owner.0 != 0 && *owner != session;
                if let Some(owner) = owner.filter(of_another).filter(|_| guid(path).is_none()) {
                    self.taken_away.push(TakenAway { path: path.clone(), owner, by: session });
                }
                self.delete(zxid, path);
            }
            Txn::SetData { path, data, version } => {
                self.crowds.written(path, data.as_deref());
                self.changed(zxid, path, What::Written(digest(data.as_deref()), *version));
            }
            Txn::Multi(txns) => {
                txns.iter().for_each(|txn| self.apply(zxid, session, txn, ended));
            }
            Txn::CloseSession => {
                for path in self.owned.remove(&session).unwrap_or_default() {
                    self.delete(zxid, &path);
                }
                self.closed.insert(session, zxid);
                ended.push(session);
            }
            _ => {}
        }
    }

    fn delete(&mut self, zxid: Zxid, path: &str) {
        if let Some(live) = self.live.remove(path) {
            if let Some(owned) = self.owned.get_mut(&live.owner) {
                owned.remove(path);
            }
        }
        self.changed(zxid, path, What::Deleted);
    }

    fn changed(&mut self, zxid: Zxid, path: &str, what: What) {
        if guid(path).is_none() {
            self.changes.entry(path.into()).or_default().push(Change { zxid, what: what.clone() });
        }
        if matches!(what, What::Written(..)) {
            return;
        }
        let parent = parent(path).unwrap_or("/");
        let change = Change { zxid, what: What::Children };
        match self.changes.get_mut(parent) {
            Some(changes) => changes.push(change),
            None => drop(self.changes.insert(parent.into(), vec![change])),
        }
    }

    /// When a change of a barrier, or of a node that comes back, was made; 0 for all others.
    pub(super) fn when(&self, zxid: Zxid) -> u64 {
        self.times.get(&zxid).copied().unwrap_or_default()
    }

    /// The changes of a node after a transaction.
    pub(crate) fn changes_after(&self, path: &str, zxid: Zxid) -> &[Change] {
        let Some(changes) = self.changes.get(path) else { return &[] };
        let from = changes.partition_point(|change| change.zxid <= zxid);
        &changes[from..]
    }

    /// What a transaction did to a node.
    pub(crate) fn change_at(&self, path: &str, zxid: Zxid) -> impl Iterator<Item = &What> {
        let changes = self.changes_after(path, Zxid(zxid.0 - 1));
        changes.iter().take_while(move |change| change.zxid == zxid).map(|change| &change.what)
    }

    /// The living children of a node.
    pub(crate) fn children(&self, path: &str) -> impl Iterator<Item = (&str, &Live)> {
        let prefix = format!("{path}/");
        let range = self.live.range::<Box<str>, _>(Box::from(&*prefix)..);
        let len = prefix.len();
        range
            .take_while(move |(path, _)| path.starts_with(&prefix))
            .map(move |(path, live)| (&path[len..], live))
            .filter(|(name, _)| !name.contains('/'))
    }
}
