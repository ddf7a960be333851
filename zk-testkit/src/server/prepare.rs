//! From a request to a transaction: everything that can be wrong with a write is found here, in the
//! order in which servers find it.

use std::borrow::Cow;

use bytes::Bytes;
use zk_proto::{
    AclList, CreateFlags, ErrorCode, OpCode, Perms, SessionId, Str,
    path::{self, Naming},
    request::{
        CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, MultiOp,
        SetAclRequest, SetDataRequest,
    },
};

use crate::release::Release;

use super::{
    Config,
    acl::{Identities, Schemes},
    java,
    node::Node,
    quirks,
    quota::{self, Track},
    tree::{RESERVED, Tree},
    txn::{NodeKind, Txn},
};

/// Longest time to live: 2^40 - 1 ms, about 34 years.
const TTL_MAX: i64 = (1 << 40) - 1;

/// The client that wants it, and what it is up against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case<'a> {
    pub(super) session: SessionId,
    pub(super) identities: &'a Identities,
    pub(super) tree: &'a Tree,
    /// The tree without what a multi has done so far: quotas know nothing of that.
    pub(super) committed: &'a Tree,
    pub(super) config: &'a Config,
    /// The frame, of which data is a part.
    pub(super) frame: &'a Bytes,
}

impl Case<'_> {
    pub(super) fn multi_op(&self, op: &MultiOp<'_>) -> Result<Txn, ErrorCode> {
        match op {
            // Servers that read it take it for what it is not, and stumble.
            MultiOp::Create(it) | MultiOp::Create2(it) | MultiOp::CreateContainer(it)
                if has_ttl(it.flags) =>
            {
                Err(ErrorCode::MARSHALLING_ERROR)
            }
            MultiOp::Create(it) | MultiOp::Create2(it) | MultiOp::CreateContainer(it) => {
                self.create(op_in_multi(op, self.config.release), it)
            }
            MultiOp::CreateTtl(it) if has_ttl(it.flags) => self.create_ttl(it),
            // Within a multi it is only the flags that make a node mortal.
            MultiOp::CreateTtl(it) => self.create_as(
                op_in_multi(op, self.config.release),
                it.path,
                it.data,
                &it.acl,
                it.flags,
                -1,
            ),
            MultiOp::Delete(it) => self.delete(it),
            MultiOp::SetData(it) => self.set_data(it),
            MultiOp::Check(it) => self.check(it),
            _ => Err(ErrorCode::MARSHALLING_ERROR),
        }
    }

    pub(super) fn create(&self, op: OpCode, it: &CreateRequest<'_>) -> Result<Txn, ErrorCode> {
        self.create_as(op, it.path, it.data, &it.acl, it.flags, -1)
    }

    pub(super) fn create_ttl(&self, it: &CreateTtlRequest<'_>) -> Result<Txn, ErrorCode> {
        self.create_as(OpCode::CREATE_TTL, it.path, it.data, &it.acl, it.flags, it.ttl)
    }

    fn create_as(
        &self,
        op: OpCode,
        path: Str<'_>,
        data: Option<&[u8]>,
        acl: &AclList,
        flags: CreateFlags,
        ttl: i64,
    ) -> Result<Txn, ErrorCode> {
        let mode = self.mode(flags, ttl)?;
        let path = there(path)?;
        let (parent_path, _) = split(&path)?;
        let acl = self.settle(acl)?;
        let parent = self.node(parent_path)?;
        self.identities.check(Perms::CREATE, parent)?;
        let path: Box<str> = if mode.sequential {
            format!("{path}{:010}", parent.created).into()
        } else {
            path.into()
        };
        path::check(&path, Naming::Exact).map_err(|_| ErrorCode::BAD_ARGUMENTS)?;
        if self.tree.get(&path).is_some() {
            return Err(ErrorCode::NODE_EXISTS);
        }
        if matches!(parent.kind(), NodeKind::Ephemeral(_)) {
            return Err(ErrorCode::NO_CHILDREN_FOR_EPHEMERALS);
        }
        self.check_quota(&path, 1, len(data))?;
        let kind = match op {
            OpCode::CREATE_CONTAINER => NodeKind::Container,
            OpCode::CREATE_TTL if ttl > 0 => NodeKind::Ttl(ttl),
            _ if mode.ephemeral => NodeKind::Ephemeral(self.session),
            _ => NodeKind::Persistent,
        };
        let parent_cversion = parent.created.wrapping_add(1);
        Ok(Txn::Create { path, data: self.share(data), acl, kind, parent_cversion })
    }

    fn mode(&self, flags: CreateFlags, ttl: i64) -> Result<Mode, ErrorCode> {
        let (ephemeral, sequential, mortal) = match flags {
            CreateFlags::PERSISTENT | CreateFlags::CONTAINER => (false, false, false),
            CreateFlags::EPHEMERAL => (true, false, false),
            CreateFlags::PERSISTENT_SEQUENTIAL => (false, true, false),
            CreateFlags::EPHEMERAL_SEQUENTIAL => (true, true, false),
            CreateFlags::PERSISTENT_TTL => (false, false, true),
            CreateFlags::PERSISTENT_SEQUENTIAL_TTL => (false, true, true),
            _ => return Err(ErrorCode::BAD_ARGUMENTS),
        };
        let is_new = mortal || flags == CreateFlags::CONTAINER;
        if is_new && !quirks::knows_mortal_nodes(self.config.release) {
            return Err(ErrorCode::BAD_ARGUMENTS);
        }
        if mortal && !self.config.extended_types {
            return Err(ErrorCode::UNIMPLEMENTED);
        }
        let ttl_fits = if mortal { (1..=TTL_MAX).contains(&ttl) } else { ttl < 0 };
        ttl_fits.then_some(Mode { ephemeral, sequential }).ok_or(ErrorCode::BAD_ARGUMENTS)
    }

    pub(super) fn delete(&self, it: &DeleteRequest<'_>) -> Result<Txn, ErrorCode> {
        let path = there(it.path)?;
        let (parent, _) = split(&path)?;
        if RESERVED.contains(&&*path) {
            return Err(ErrorCode::BAD_ARGUMENTS);
        }
        let above = self.node(parent)?;
        if quirks::looks_before_it_asks(self.config.release) {
            self.node(&path)?;
        }
        self.identities.check(Perms::DELETE, above)?;
        let node = self.node(&path)?;
        expect_version(node.version, it.version)?;
        if !node.children.is_empty() {
            return Err(ErrorCode::NOT_EMPTY);
        }
        Ok(Txn::Delete { path: path.into() })
    }

    pub(super) fn set_data(&self, it: &SetDataRequest<'_>) -> Result<Txn, ErrorCode> {
        let path = valid(it.path)?;
        let node = self.node(&path)?;
        self.identities.check(Perms::WRITE, node)?;
        self.check_quota(&path, 0, len(it.data) - len(node.data().map(|data| &**data)))?;
        expect_version(node.version, it.version)?;
        let version = node.version.wrapping_add(1);
        Ok(Txn::SetData { path, data: self.share(it.data), version })
    }

    pub(super) fn set_acl(&self, it: &SetAclRequest<'_>) -> Result<Txn, ErrorCode> {
        let path = valid(it.path)?;
        let acl = self.settle(&it.acl)?;
        let node = self.node(&path)?;
        self.identities.check(Perms::ADMIN, node)?;
        expect_version(node.aversion, it.version)?;
        Ok(Txn::SetAcl { path, acl, version: node.aversion.wrapping_add(1) })
    }

    fn check(&self, it: &CheckVersionRequest<'_>) -> Result<Txn, ErrorCode> {
        let path = valid(it.path)?;
        let node = self.node(&path)?;
        self.identities.check(Perms::READ, node)?;
        expect_version(node.version, it.version)?;
        Ok(Txn::Check { path })
    }

    fn settle(&self, acl: &AclList) -> Result<AclList, ErrorCode> {
        if acl.is_null() && quirks::looks_before_it_asks(self.config.release) {
            return Err(ErrorCode::MARSHALLING_ERROR);
        }
        let schemes = Schemes {
            ipv6: quirks::knows_ipv6(self.config.release),
            sasl: !self.config.sasl_users.is_empty(),
            x509: self.config.x509,
        };
        self.identities.settle(acl, schemes)
    }

    fn node(&self, path: &str) -> Result<&Node, ErrorCode> {
        self.tree.get(path).ok_or(ErrorCode::NO_NODE)
    }

    fn share(&self, data: Option<&[u8]>) -> Option<Bytes> {
        data.map(|data| self.frame.slice_ref(data))
    }

    fn check_quota(&self, path: &str, nodes: i64, grown: i64) -> Result<(), ErrorCode> {
        if !self.config.enforce_quota {
            return Ok(());
        }
        let tree = self.committed;
        let Some(subtree) = tree.quotas().subtree_of(path) else { return Ok(()) };
        let Some(limits) = tree.get(&quota::limits_path(subtree)) else { return Ok(()) };
        let track = |node: &Node| Track::parse(node.data().map(|data| &**data));
        // Servers stumble over what is none.
        let limits = track(limits).ok_or(ErrorCode::MARSHALLING_ERROR)?;
        if !limits.concerns(nodes, grown) {
            return Ok(());
        }
        let Some(stats) = tree.get(&quota::stats_path(subtree)) else { return Ok(()) };
        let stats = track(stats).ok_or(ErrorCode::MARSHALLING_ERROR)?;
        let refused = limits.refuses(&stats, nodes, grown);
        if refused { Err(ErrorCode::QUOTA_EXCEEDED) } else { Ok(()) }
    }
}

/// Which operation a part of a multi really is: some flags decide on more than the operation does.
pub(super) fn op_in_multi(op: &MultiOp<'_>, release: Release) -> OpCode {
    match op {
        MultiOp::Create2(it) | MultiOp::CreateContainer(it)
            if it.flags != CreateFlags::CONTAINER && !quirks::multi_has_create2(release) =>
        {
            OpCode::CREATE
        }
        MultiOp::Create(it) if it.flags != CreateFlags::CONTAINER => OpCode::CREATE,
        MultiOp::Create2(it) if it.flags != CreateFlags::CONTAINER => OpCode::CREATE2,
        MultiOp::CreateTtl(it) if has_ttl(it.flags) => OpCode::CREATE_TTL,
        MultiOp::CreateTtl(it) if it.flags != CreateFlags::CONTAINER => OpCode::CREATE,
        MultiOp::Delete(_) => OpCode::DELETE,
        MultiOp::SetData(_) => OpCode::SET_DATA,
        MultiOp::Check(_) => OpCode::CHECK,
        _ => OpCode::CREATE_CONTAINER,
    }
}

const fn has_ttl(flags: CreateFlags) -> bool {
    matches!(flags, CreateFlags::PERSISTENT_TTL | CreateFlags::PERSISTENT_SEQUENTIAL_TTL)
}

struct Mode {
    ephemeral: bool,
    sequential: bool,
}

/// Parent and name as servers find them: up to the last slash, and with no other demand.
fn split(path: &str) -> Result<(&str, &str), ErrorCode> {
    path.rsplit_once('/').filter(|_| !path.contains('\0')).ok_or(ErrorCode::BAD_ARGUMENTS)
}

/// A path that is not null; servers stumble over null, and say so.
pub(super) fn there(path: Str<'_>) -> Result<Cow<'_, str>, ErrorCode> {
    path.as_bytes().map(|path| java::string(Some(path))).ok_or(ErrorCode::MARSHALLING_ERROR)
}

fn valid(path: Str<'_>) -> Result<Box<str>, ErrorCode> {
    let path = java::string(path.as_bytes());
    path::check(&path, Naming::Exact).map_err(|_| ErrorCode::BAD_ARGUMENTS)?;
    Ok(path.into())
}

fn len(data: Option<&[u8]>) -> i64 {
    i64::try_from(data.map_or(0, <[u8]>::len)).unwrap_or(i64::MAX)
}

fn expect_version(current: i32, expected: i32) -> Result<(), ErrorCode> {
    let fits = expected == -1 || expected == current;
    fits.then_some(()).ok_or(ErrorCode::BAD_VERSION)
}
