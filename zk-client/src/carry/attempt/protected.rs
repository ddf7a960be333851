//! Creates that are to be carried through, and what comes of them.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::wanted::Wanted;
use crate::{
    carry::node::{Disowned, OwnedNode},
    chroot::Chroot,
    error::{MultiError, Rejection, WriteError},
};

/// Creates with ids in their names, all or nothing, and who waits for the nodes.
#[derive(Debug)]
pub(crate) struct ProtectedCreate {
    /// At least one.
    pub(crate) nodes: Vec<Wanted>,
    /// A node of the same session that goes in the same transaction.
    pub(crate) replaced: Option<Disowned>,
    /// The absolute paths of nodes that must have these versions.
    pub(crate) checked: Vec<(Arc<str>, i32)>,
    pub(crate) chroot: Chroot,
    pub(crate) done: oneshot::Sender<Concluded>,
}

impl ProtectedCreate {
    /// Bytes that it takes up: about as many as its request.
    pub(crate) fn len(&self) -> usize {
        let nodes = self.nodes.iter().map(Wanted::len);
        let checked = self.checked.iter().map(|(path, _)| path.len());
        nodes.chain(checked).fold(0, usize::saturating_add)
    }
}

/// What has come of creates.
#[derive(Debug)]
pub(crate) struct Concluded {
    pub(crate) nodes: CreatedNodes,
    /// The node that was to be replaced, if it was not.
    pub(crate) kept: Option<OwnedNode>,
    /// How many of the operations, from the first one on, may have lacked nothing but a node above.
    pub(crate) creates: usize,
}

impl Concluded {
    pub(crate) const fn new(nodes: CreatedNodes, kept: Option<OwnedNode>) -> Self {
        Self { nodes, kept, creates: 0 }
    }

    /// As if it had been tried.
    pub(crate) const fn lacking(kept: Option<OwnedNode>) -> Self {
        let lacking = MultiError { index: 0, rejection: Rejection::NoNode };
        Self { nodes: Ok(Err(lacking)), kept, creates: 1 }
    }
}

/// What comes of creates: all the nodes, in order, or none of them.
pub(crate) type CreatedNodes = Result<Result<Vec<OwnedNode>, MultiError>, WriteError>;
