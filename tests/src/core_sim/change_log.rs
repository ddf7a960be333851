//! What has really happened: the ensemble's history, its changes in order, and which of them are writes of clients.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut};
use zk_proto::{EventType, SessionId, Time, Zxid};
use zk_testkit::{
    real::Release,
    server::{Committed, Txn},
};

use crate::history::{History, What};

/// An event that a watch may receive.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) zxid: Zxid,
    pub(crate) kind: EventType,
    pub(crate) path: Box<str>,
}

/// A session's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) session: SessionId,
    pub(crate) at: Time,
}

#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    pub(crate) history: History,
    /// Whether events do not name their transactions, as up to 3.8.
    pub(crate) is_without_zxids: bool,
    /// All changes in order.
    pub(crate) changes: Vec<Change>,
    /// Which transaction carried out the write with this mark.
    written: BTreeMap<u64, Zxid>,
    /// Ends of sessions that have not been read.
    pub(crate) ends: Vec<End>,
    pub(crate) violations: Vec<String>,
}

impl ChangeLog {
    /// Of servers of a release, before anything has happened.
    pub(crate) fn of(release: Release) -> Self {
        Self { is_without_zxids: release < Release::V3_9, ..Self::default() }
    }

    /// Reads what is new in the history.
    pub(crate) fn learn(&mut self, history: &[Committed]) {
        let Self { history: known, changes, written, ends, violations, .. } = self;
        let mut see = |zxid: Zxid, path: &str, what, data: Option<&[u8]>| {
            let kind = match what {
                What::Created(_) => EventType::NODE_CREATED,
                What::Written(_) => EventType::NODE_DATA_CHANGED,
                What::Deleted(_) => EventType::NODE_DELETED,
                What::Children(_) => EventType::NODE_CHILDREN_CHANGED,
            };
            changes.push(Change { zxid, kind, path: path.into() });
            if let Some(mark) = data.and_then(mark_of) {
                if let Some(before) = written.insert(mark, zxid) {
                    violations.push(format!("S9: write {mark:#x} is done at {before} and {zxid}"));
                }
            }
        };
        while let Some(committed) = known.step(history, &mut see) {
            if let Txn::CloseSession = committed.txn {
                ends.push(End { session: committed.stamp.session, at: committed.at });
            }
        }
    }

    /// When the write with this mark was carried out, if it was.
    pub(crate) fn written(&self, mark: u64) -> Option<Zxid> {
        self.written.get(&mark).copied()
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
