//! A protected create and its result.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::oneshot;
use zk_proto::OpCode;

use super::node_spec::NodeSpec;
use crate::{
    carry::node::{DetachedNode, OwnedNode},
    chroot::Chroot,
    error::{Cause, MultiError, SessionEnd, WriteError},
};

/// Creates with ids in their names, all or nothing, and the channel to their caller.
#[derive(Debug)]
pub(crate) struct ProtectedCreate {
    /// At least one.
    pub(crate) nodes: Vec<NodeSpec>,
    /// A node of the same session that goes in the same transaction.
    pub(crate) replaced: Option<DetachedNode>,
    /// The absolute paths of nodes that must have these versions.
    pub(crate) checked: Vec<(Arc<str>, i32)>,
    pub(crate) chroot: Chroot,
    pub(crate) done: oneshot::Sender<Concluded>,
}

impl ProtectedCreate {
    /// Its size in bytes: about that of its request.
    pub(crate) fn len(&self) -> usize {
        let nodes = self.nodes.iter().map(NodeSpec::len);
        let checked = self.checked.iter().map(|(path, _)| path.len());
        nodes.chain(checked).fold(0, usize::saturating_add)
    }

    /// Whether this is one plain create rather than a transaction.
    pub(super) fn is_plain(&self) -> bool {
        let Self { nodes, replaced, checked, .. } = self;
        nodes.len() == 1 && replaced.is_none() && checked.is_empty() && !self.is_shared()
    }

    /// Whether other clients use the name of the (only) node too.
    pub(super) fn is_shared(&self) -> bool {
        self.nodes.iter().any(NodeSpec::shares_its_name)
    }

    pub(crate) fn op(&self) -> OpCode {
        if self.is_plain() { OpCode::CREATE2 } else { OpCode::MULTI }
    }
}

/// The result of a protected create.
#[derive(Debug)]
pub(crate) struct Concluded {
    pub(crate) nodes: CreatedNodes,
    /// The node to be replaced, if it was not replaced.
    pub(crate) kept: Option<OwnedNode>,
    /// How many of the operations, counted from the first, can have failed for want of a parent.
    pub(crate) creates: usize,
}

impl Concluded {
    pub(crate) const fn new(nodes: CreatedNodes, kept: Option<OwnedNode>) -> Self {
        Self { nodes, kept, creates: 0 }
    }
}

/// The result of creates: all the nodes, in order, or none of them.
pub(crate) type CreatedNodes = Result<Result<Vec<OwnedNode>, MultiError>, WriteError>;

/// Protected creates in progress: the channel from the session, or the result if the session has not had them; `None`
/// once that has been returned.
#[derive(Debug)]
pub(crate) struct Started(Result<oneshot::Receiver<Concluded>, Option<Box<Concluded>>>);

/// Without a driver there is no reply.
pub(crate) const CLOSED: WriteError =
    WriteError::NotApplied(Cause::SessionEnded(SessionEnd::Closed));

impl Started {
    pub(crate) const fn new(nodes: oneshot::Receiver<Concluded>) -> Self {
        Self(Ok(nodes))
    }

    pub(crate) fn concluded(concluded: Concluded) -> Self {
        Self(Err(Some(Box::new(concluded))))
    }
}

impl Future for Started {
    type Output = Concluded;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Concluded> {
        let closed = || Concluded::new(Err(CLOSED), None);
        match &mut self.0 {
            Ok(nodes) => Pin::new(nodes).poll(cx).map(|nodes| nodes.unwrap_or_else(|_| closed())),
            Err(concluded) => Poll::Ready(concluded.take().map_or_else(closed, |it| *it)),
        }
    }
}
