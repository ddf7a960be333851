//! What a leader has decided, in a form that every member can apply without checking anything again.

use bytes::Bytes;
use zk_proto::{AclList, ErrorCode, SessionId, Time, Zxid};

/// What a node lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Until it is deleted.
    Persistent,
    /// As long as this session.
    Ephemeral(SessionId),
    /// Until some time after its last child.
    Container,
    /// Until it has been childless and unwritten for so many milliseconds.
    Ttl(i64),
}

/// One change of the tree or of the set of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Txn {
    /// A node is created.
    Create {
        /// With its sequence number, if it has one.
        path: Box<str>,
        /// Its data.
        data: Option<Bytes>,
        /// Its access control list, with `auth` replaced by identities.
        acl: AclList,
        /// What it lives on.
        kind: NodeKind,
        /// The parent's counter of created children afterwards.
        parent_cversion: i32,
    },
    /// A node is deleted.
    Delete {
        /// The node.
        path: Box<str>,
    },
    /// Data is written.
    SetData {
        /// The node.
        path: Box<str>,
        /// The new data.
        data: Option<Bytes>,
        /// Its version afterwards.
        version: i32,
    },
    /// An access control list is replaced.
    SetAcl {
        /// The node.
        path: Box<str>,
        /// The new list.
        acl: AclList,
        /// Its version afterwards.
        version: i32,
    },
    /// A version was checked within a multi; nothing changes.
    Check {
        /// The node.
        path: Box<str>,
    },
    /// Several of the above at once.
    Multi(Vec<Self>),
    /// A session begins.
    OpenSession {
        /// Its timeout in milliseconds.
        timeout: i32,
    },
    /// A session ends, and its ephemeral nodes with it.
    CloseSession,
    /// A request was refused; only its place in history remains.
    Error(ErrorCode),
}

/// When, and by which session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The transaction's number.
    pub zxid: Zxid,
    /// Wall-clock time on the leader, in milliseconds since 1970.
    pub millis: i64,
    /// The session whose request it was.
    pub session: SessionId,
}

/// A transaction with its place in history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// When, and by which session.
    pub stamp: Stamp,
    /// When the leader committed it.
    pub at: Time,
    /// What was decided.
    pub txn: Txn,
}
