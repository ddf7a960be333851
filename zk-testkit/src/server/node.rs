//! One node, and what clients see of it.

use std::{collections::BTreeSet, sync::LazyLock};

use bytes::Bytes;
use zk_proto::{Acl, AclList, Perms, SessionId, Stat, Zxid};

use super::txn::{NodeKind, Stamp};

/// One node.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) data: Option<Bytes>,
    pub(super) acl: AclList,
    /// Whether the list allows everything to all identities, so that it need not be read.
    pub(super) open: bool,
    pub(super) kind: NodeKind,
    pub(super) czxid: Zxid,
    pub(super) mzxid: Zxid,
    pub(super) pzxid: Zxid,
    pub(super) ctime: i64,
    pub(super) mtime: i64,
    pub(super) version: i32,
    /// Children ever created, which is also the next sequence number.
    pub(super) created: i32,
    pub(super) aversion: i32,
    pub(super) children: BTreeSet<Box<str>>,
}

impl Node {
    pub(super) fn new(data: Option<Bytes>, acl: AclList, kind: NodeKind, stamp: Stamp) -> Self {
        let Stamp { zxid, millis, .. } = stamp;
        Self {
            data,
            open: is_open(&acl),
            acl,
            kind,
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: millis,
            mtime: millis,
            version: 0,
            created: 0,
            aversion: 0,
            children: BTreeSet::new(),
        }
    }

    /// What clients see of it.
    #[must_use]
    pub fn stat(&self) -> Stat {
        let children = i32::try_from(self.children.len()).unwrap_or(i32::MAX);
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            cversion: self.created.wrapping_mul(2).wrapping_sub(children),
            aversion: self.aversion,
            ephemeral_owner: match self.kind {
                NodeKind::Ephemeral(owner) => owner,
                _ => SessionId(0),
            },
            data_length: i32::try_from(self.len()).unwrap_or(i32::MAX),
            num_children: children,
            pzxid: self.pzxid,
        }
    }

    /// Its data; `None` if there is none, which is not the same as empty.
    #[must_use]
    pub const fn data(&self) -> Option<&Bytes> {
        self.data.as_ref()
    }

    /// The names of its children, in order.
    pub fn children(&self) -> impl Iterator<Item = &str> {
        self.children.iter().map(|name| &**name)
    }

    /// What it lives on.
    #[must_use]
    pub const fn kind(&self) -> NodeKind {
        self.kind
    }

    pub(super) fn len(&self) -> usize {
        self.data.as_ref().map_or(0, Bytes::len)
    }

    pub(super) fn set_acl(&mut self, acl: AclList) {
        self.open = is_open(&acl);
        self.acl = acl;
    }

    /// Its access control list as it is now.
    pub(super) fn access(&self) -> Access {
        (!self.open).then(|| self.acl.clone())
    }
}

/// What most nodes have: it is made once, and compared with at every create.
static OPEN_ACL: LazyLock<AclList> = LazyLock::new(|| [Acl::open_unsafe()].into_iter().collect());

pub(super) fn open_acl() -> AclList {
    OPEN_ACL.clone()
}

fn is_open(acl: &AclList) -> bool {
    *acl == *OPEN_ACL
}

/// An access control list as it was at the time of a change; `None` if it is open.
pub(super) type Access = Option<AclList>;

/// Whether a list allows any of these permissions to some identity.
pub(super) fn grants(acl: &Acl, wanted: Perms) -> bool {
    acl.perms.0 & wanted.0 != 0
}
