//! Several operations in one request.

use zk_proto::{
    AclList, Str,
    frame::RequestFrame,
    path::Naming,
    request::{
        CheckVersionRequest, DeleteRequest, GetChildrenRequest, GetDataRequest, MultiOp,
        MultiReadRequest, MultiRequest, SetDataRequest,
    },
};

use super::{
    asked::{Node, Part},
    create::{CreateMode, CreateOperation},
    handle::Handle,
};
use crate::{carry::version::expected, chroot::Chroot, error::Cause};

/// Operations that are carried out together.
#[derive(Clone, Debug)]
pub(crate) enum Ops<'a> {
    Reads(Vec<Op<'a>>),
    /// Applied all, or none of them.
    Writes(Vec<Op<'a>>),
}

#[derive(Clone, Debug)]
pub(crate) enum Op<'a> {
    Create { path: &'a str, data: &'a [u8], mode: CreateMode, acl: Option<Box<AclList>> },
    Set { path: &'a str, data: &'a [u8], version: Option<i32> },
    Delete { path: &'a str, version: Option<i32> },
    Check { path: &'a str, version: Option<i32> },
    Data { path: &'a str },
    Children { path: &'a str },
}

impl<'a> Ops<'a> {
    pub(super) fn push(&mut self, op: Op<'a>) {
        let (Self::Reads(ops) | Self::Writes(ops)) = self;
        ops.push(op);
    }

    const fn ops(&self) -> &Vec<Op<'a>> {
        let (Self::Reads(ops) | Self::Writes(ops)) = self;
        ops
    }

    /// Whether something may be written.
    pub(super) fn write(&self) -> bool {
        let is_read =
            |op: &Op<'_>| matches!(op, Op::Check { .. } | Op::Data { .. } | Op::Children { .. });
        !self.ops().iter().all(is_read)
    }

    /// What the results are checked against.
    pub(super) fn asked(&self, chroot: &Chroot) -> Box<[Part]> {
        self.ops().iter().map(|op| op.asked(chroot)).collect()
    }

    /// Returns the request, and the alternative if the server may not know it.
    pub(super) fn frames(
        &self,
        handle: &Handle,
    ) -> Result<(RequestFrame, Option<RequestFrame>), Cause> {
        let (capabilities, frames) = (&handle.shared.known().capabilities, &handle.shared.frames);
        if let Self::Reads(_) = self {
            let reads = MultiReadRequest(self.encode(handle, false)?);
            return Ok((frames.of(&reads), None));
        }
        let frame = |with_stat| self.encode(handle, with_stat).map(|multi| frames.of(&multi));
        let creates = self.ops().iter().any(|op| matches!(op, Op::Create { .. }));
        let is_open = creates && !capabilities.lacks_create2() && !capabilities.has_create2();
        let first = frame(!capabilities.lacks_create2())?;
        Ok((first, is_open.then(|| frame(false)).transpose()?))
    }

    fn encode(&self, handle: &Handle, with_stat: bool) -> Result<MultiRequest, Cause> {
        let resolve = |op: &Op<'a>| {
            let (path, naming) = op.path();
            handle.chroot.resolve(path, naming)
        };
        let mut paths = Vec::with_capacity(self.ops().len());
        for op in self.ops() {
            paths.push(resolve(op)?);
        }
        let ops = self.ops().iter().zip(&paths);
        ops.map(|(op, path)| op.encode(Str::from(&**path), &handle.acl, with_stat)).collect()
    }
}

impl<'a> Op<'a> {
    fn asked(&self, chroot: &Chroot) -> Part {
        match self {
            Self::Create { path, mode, .. } => {
                let naming = mode.naming();
                // What has been encoded is a path.
                let absolute =
                    chroot.resolve(path, naming).unwrap_or_else(|_| chroot.absolute(path));
                Part::Create(Node::new(&absolute, chroot.len(), naming))
            }
            Self::Set { .. } => Part::Set,
            Self::Delete { .. } => Part::Delete,
            Self::Check { .. } => Part::Check,
            Self::Data { .. } => Part::Data,
            Self::Children { .. } => Part::Children,
        }
    }

    const fn path(&self) -> (&'a str, Naming) {
        match self {
            Self::Create { path, mode, .. } => (path, mode.naming()),
            Self::Set { path, .. }
            | Self::Delete { path, .. }
            | Self::Check { path, .. }
            | Self::Data { path }
            | Self::Children { path } => (path, Naming::Exact),
        }
    }

    /// `with_stat` is whether servers can return a new node's metadata.
    fn encode<'p>(
        &'p self,
        path: Str<'p>,
        default_acl: &AclList,
        with_stat: bool,
    ) -> Result<MultiOp<'p>, Cause> {
        Ok(match self {
            Self::Create { data, mode, acl, .. } => {
                let acl = acl.as_deref().unwrap_or(default_acl).clone();
                match mode.operation(path, data, acl) {
                    CreateOperation::Plain(create) if with_stat => MultiOp::Create2(create),
                    CreateOperation::Plain(create) => MultiOp::Create(create),
                    CreateOperation::Container(create) => MultiOp::CreateContainer(create),
                    CreateOperation::Ttl(create) => MultiOp::CreateTtl(create),
                }
            }
            Self::Set { data, version, .. } => {
                let version = expected(*version)?;
                MultiOp::SetData(SetDataRequest { path, data: Some(data), version })
            }
            Self::Delete { version, .. } => {
                MultiOp::Delete(DeleteRequest { path, version: expected(*version)? })
            }
            Self::Check { version, .. } => {
                MultiOp::Check(CheckVersionRequest { path, version: expected(*version)? })
            }
            Self::Data { .. } => MultiOp::GetData(GetDataRequest { path, watch: false }),
            Self::Children { .. } => {
                MultiOp::GetChildren(GetChildrenRequest { path, watch: false })
            }
        })
    }
}
