//! Protected creates in progress.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::sync::oneshot;
use zk_proto::path::{self, Naming};

use crate::{
    carry::{
        attempt::{Concluded, KnownBy, ProtectedCreate, Wanted},
        node::OwnedNode,
        version::expected,
    },
    error::{CallError as _, Cause, MultiError, SessionEnd, WriteError},
    request::{create::wish::Wish, handle::Handle},
};

/// The pending nodes, or the error; `None` once the error has been returned.
#[derive(Debug)]
pub(crate) struct Started(Result<oneshot::Receiver<Concluded>, Option<WriteError>>);

impl Started {
    /// Starts a single create.
    pub(crate) fn one(wish: Wish<'_>) -> Self {
        let handle = &wish.client.handle;
        Self::all(handle, [wish].into_iter(), None, &[])
    }

    pub(crate) fn all<'a>(
        handle: &Handle,
        wishes: impl Iterator<Item = Wish<'a>>,
        replaced: Option<OwnedNode>,
        checked: &[Check],
    ) -> Self {
        let resolve = |(path, version): &Check| -> Result<(Arc<str>, i32), Cause> {
            let path = handle.chroot.resolve(path, Naming::Exact)?;
            Ok((Arc::from(&*path), expected(*version)?))
        };
        let (done, nodes) = oneshot::channel();
        let wanted = wishes.map(|wish| wish.wanted(handle));
        let create = wanted.collect::<Result<Vec<_>, _>>().and_then(|nodes| {
            let checked: Vec<_> = checked.iter().map(resolve).collect::<Result<_, _>>()?;
            let is_plain = nodes.len() == 1 && replaced.is_none() && checked.is_empty();
            if !is_plain && nodes.iter().any(Wanted::shares_its_name) {
                return Err(Cause::InvalidArgument("a node known by its data is created alone"));
            }
            let chroot = handle.chroot.clone();
            Ok(ProtectedCreate { nodes, replaced: None, checked, chroot, done })
        });
        match create {
            // There is nothing to request; a node to be replaced by nothing is deleted when it is dropped.
            Ok(create) if create.nodes.is_empty() => {
                let _ = create.done.send(Concluded::new(Ok(Ok(Vec::new())), replaced));
            }
            Ok(mut create) => {
                create.replaced = replaced.map(OwnedNode::disown);
                handle.create(Box::new(create));
            }
            Err(cause) => return Self(Err(Some(WriteError::not_sent(cause)))),
        }
        Self(Ok(nodes))
    }

    /// Polls for the only node.
    pub(crate) fn poll_one(&mut self, cx: &mut Context<'_>) -> Poll<Result<OwnedNode, WriteError>> {
        Pin::new(self).poll(cx).map(|created| match created.nodes? {
            Ok(mut nodes) => nodes.pop().ok_or(CLOSED),
            Err(MultiError { rejection, .. }) => Err(WriteError::Rejected(rejection)),
        })
    }
}

impl Future for Started {
    type Output = Concluded;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Concluded> {
        let failed = |error| Concluded::new(Err(error), None);
        match &mut self.0 {
            Ok(nodes) => {
                Pin::new(nodes).poll(cx).map(|nodes| nodes.unwrap_or_else(|_| failed(CLOSED)))
            }
            Err(error) => Poll::Ready(failed(error.take().unwrap_or(CLOSED))),
        }
    }
}

/// Without a driver there is no reply.
const CLOSED: WriteError = WriteError::NotApplied(Cause::SessionEnded(SessionEnd::Closed));

impl Wish<'_> {
    fn wanted(self, handle: &Handle) -> Result<Wanted, Cause> {
        let Self { path, data, mode, acl, known_by, .. } = self;
        if !mode.is_ephemeral() {
            return Err(Cause::InvalidArgument("only ephemeral nodes can be protected"));
        }
        let absolute = handle.chroot.resolve(path, mode.naming())?;
        let parent =
            path::parent(&absolute).ok_or(Cause::InvalidArgument("the root has no name"))?;
        let name = match path::name(&absolute) {
            name if known_by == KnownBy::Prefix => {
                format!("_c_{}-{name}", handle.shared.ids.next()?)
            }
            name => name.to_owned(),
        };
        let (parent, data) = (Arc::from(parent), Bytes::copy_from_slice(data));
        Ok(Wanted { parent, name, data, acl, flags: mode.flags(), known_by })
    }
}

/// A node that must exist, and the required version of its data, if any.
pub(crate) type Check = (String, Option<i32>);
