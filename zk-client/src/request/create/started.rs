//! Starting protected creates.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;
use zk_proto::path::{self, Naming};

use super::wish::{Created, Wish};
use crate::{
    carry::{
        attempt::{CLOSED, Concluded, CreatedNodes, KnownBy, NodeSpec, ProtectedCreate, Started},
        node::OwnedNode,
        version::expected,
    },
    error::{CallError as _, Cause, MultiError, WriteError},
    request::handle::Handle,
};

/// Starts creates that the session carries through a lost reply: all of them, or none.
pub(crate) fn start<'a>(
    handle: &Handle,
    wishes: impl Iterator<Item = Wish<'a>>,
    replaced: Option<OwnedNode>,
    checked: &[Check],
) -> Started {
    let resolve = |(path, version): &Check| -> Result<(Arc<str>, i32), Cause> {
        let path = handle.chroot.resolve(path, Naming::Exact)?;
        Ok((Arc::from(&*path), expected(*version)?))
    };
    let (done, created) = oneshot::channel();
    let wanted = wishes.map(|wish| wish.wanted(handle));
    let create = wanted.collect::<Result<Vec<_>, _>>().and_then(|nodes| {
        let checked: Vec<_> = checked.iter().map(resolve).collect::<Result<_, _>>()?;
        let is_plain = nodes.len() == 1 && replaced.is_none() && checked.is_empty();
        if !is_plain && nodes.iter().any(NodeSpec::shares_its_name) {
            return Err(Cause::InvalidArgument("a node known by its data is created alone"));
        }
        // A transaction can check a name, and not whose node it is.
        if replaced.as_ref().is_some_and(|node| node.is_shared) {
            return Err(Cause::InvalidArgument("a node known by its data is not replaced"));
        }
        Ok((nodes, checked))
    });
    let nothing = match create {
        Ok((nodes, checked)) if !nodes.is_empty() => {
            let (chroot, replaced) = (handle.chroot.clone(), replaced.map(OwnedNode::detach_node));
            handle.create(Box::new(ProtectedCreate { nodes, replaced, checked, chroot, done }));
            return Started::new(created);
        }
        Ok((_, checked)) if !checked.is_empty() => {
            Err(WriteError::not_sent(Cause::InvalidArgument("checks for no node")))
        }
        Ok(_) => Ok(Ok(Vec::new())),
        Err(cause) => Err(WriteError::not_sent(cause)),
    };
    // There is nothing to request; a node to be replaced by nothing is deleted when it is dropped.
    Started::concluded(Concluded::new(nothing, replaced))
}

/// The only node.
pub(super) fn only(nodes: CreatedNodes) -> Result<Created, WriteError> {
    match nodes? {
        Ok(mut nodes) => nodes.pop().map(Created::of).ok_or(CLOSED),
        Err(MultiError { rejection, .. }) => Err(WriteError::Rejected(rejection)),
    }
}

impl Wish<'_> {
    fn wanted(&self, handle: &Handle) -> Result<NodeSpec, Cause> {
        let Self { path, data, mode, known_by, .. } = self;
        let known_by = known_by.unwrap_or(KnownBy::Prefix);
        if !mode.is_ephemeral() {
            return Err(Cause::InvalidArgument("only ephemeral nodes can be protected"));
        }
        let absolute = handle.chroot.resolve(path, mode.naming())?;
        let parent =
            mode.parent(&absolute).ok_or(Cause::InvalidArgument("the root has no name"))?;
        let name = match path::name(&absolute) {
            name if known_by == KnownBy::Prefix => {
                format!("_c_{}-{name}", handle.shared.ids.next()?)
            }
            "" if known_by == KnownBy::Name => {
                return Err(Cause::InvalidArgument("a number tells no node from another client's"));
            }
            name => name.to_owned(),
        };
        let acl = self.acl().clone();
        let (parent, data) = (Arc::from(parent), Bytes::copy_from_slice(data));
        Ok(NodeSpec { parent, name, data, acl, flags: mode.flags(), known_by })
    }
}

/// A node that must exist, and the required version of its data, if any.
pub(crate) type Check = (String, Option<i32>);
