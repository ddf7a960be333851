//! Creates that the session carries through a lost reply: one, or several together.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::sync::oneshot;
use zk_proto::path::{self, Naming};

use crate::{
    attempt::{Concluded, CreatedNodes, ProtectedCreate, Wanted},
    call::{CallError as _, Handle, Submission},
    create::Create,
    error::{Cause, SessionEnd, WriteError},
    node::OwnedNode,
    operations::expected,
    transaction::MultiError,
};

/// A create that survives a lost reply: see [`Create::protected`].
///
/// It goes on until it is known what became of it, or until the session ends; [`CallOptions`](crate::CallOptions) have
/// no say in that. Who wants to wait no longer drops it, as `tokio::time::timeout` does: the session then sees to it
/// that no node is left.
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct CreateProtected<'a> {
    create: Create<'a>,
    /// Whether the name needs no id any more.
    is_unique: bool,
}

impl<'a> CreateProtected<'a> {
    pub(crate) const fn new(create: Create<'a>, is_unique: bool) -> Self {
        Self { create, is_unique }
    }

    /// Submits the create now.
    pub fn submit(self) -> PendingNode {
        let handle = self.create.target.handle;
        PendingNode(start(handle, vec![self], None, &[]))
    }

    fn wanted(self, handle: &Handle) -> Result<Wanted, Cause> {
        let Self { create: Create { path, data, mode, acl, .. }, is_unique } = self;
        if !mode.is_ephemeral() {
            return Err(Cause::InvalidArgument("only ephemeral nodes can be protected"));
        }
        let absolute = handle.chroot.resolve(path, mode.naming())?;
        let parent =
            path::parent(&absolute).ok_or(Cause::InvalidArgument("the root has no name"))?;
        let name = match path::name(&absolute) {
            name if is_unique => name.to_owned(),
            name => format!("_c_{}-{name}", handle.ids.next()?),
        };
        let (parent, data) = (Arc::from(parent), Bytes::copy_from_slice(data));
        Ok(Wanted { parent, name, data, acl, flags: mode.flags() })
    }
}

impl IntoFuture for CreateProtected<'_> {
    type Output = Result<OwnedNode, WriteError>;
    type IntoFuture = PendingNode;
    fn into_future(self) -> PendingNode {
        self.submit()
    }
}

/// Several protected creates that happen together or not at all: see
/// [`Client::create_all_protected`](crate::Client::create_all_protected).
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct CreateAllProtected<'a> {
    handle: &'a Handle,
    creates: Vec<CreateProtected<'a>>,
    replaced: Option<OwnedNode>,
    checked: Vec<(&'a str, Option<i32>)>,
}

impl<'a> CreateAllProtected<'a> {
    pub(crate) fn new(
        handle: &'a Handle,
        creates: impl IntoIterator<Item = CreateProtected<'a>>,
    ) -> Self {
        Self { handle, creates: creates.into_iter().collect(), replaced: None, checked: Vec::new() }
    }

    /// Insists that a node exists. Checks count behind the creates.
    pub fn check(mut self, path: &'a str) -> Self {
        self.checked.push((path, None));
        self
    }

    /// Insists that a node exists and that its data has this version. Nothing is sent if it is -1, by which servers
    /// understand any.
    pub fn check_version(mut self, path: &'a str, version: i32) -> Self {
        self.checked.push((path, Some(version)));
        self
    }

    /// Deletes this node in the same transaction, as its last operation. If nothing comes of the
    /// transaction, the node goes as it would have without, or is [taken back](PendingNodes::take_back).
    pub fn replacing(mut self, node: OwnedNode) -> Self {
        self.replaced = Some(node);
        self
    }

    /// Submits the creates now.
    pub fn submit(self) -> PendingNodes {
        let Self { handle, creates, replaced, checked } = self;
        PendingNodes { started: start(handle, creates, replaced, &checked), kept: None }
    }
}

impl IntoFuture for CreateAllProtected<'_> {
    type Output = CreatedNodes;
    type IntoFuture = PendingNodes;
    fn into_future(self) -> PendingNodes {
        self.submit()
    }
}

/// Nodes to be, or why there will be none; `None` when that has been told.
type Started = Result<oneshot::Receiver<Concluded>, Option<WriteError>>;

fn start(
    handle: &Handle,
    creates: Vec<CreateProtected<'_>>,
    replaced: Option<OwnedNode>,
    checked: &[(&str, Option<i32>)],
) -> Started {
    let wanted = creates.into_iter().map(|create| create.wanted(handle));
    let resolve = |&(path, version): &(&str, Option<i32>)| -> Result<(Arc<str>, i32), Cause> {
        let path = handle.chroot.resolve(path, Naming::Exact)?;
        Ok((Arc::from(&*path), expected(version)?))
    };
    let (done, nodes) = oneshot::channel();
    let create = wanted.collect::<Result<Vec<_>, _>>().and_then(|nodes| {
        let checked = checked.iter().map(resolve).collect::<Result<_, _>>()?;
        Ok(ProtectedCreate { nodes, replaced: None, checked, chroot: handle.chroot.clone(), done })
    });
    match create {
        // Nothing to ask anybody for; a node that is to be replaced by nothing goes in being dropped.
        Ok(create) if create.nodes.is_empty() => {
            drop(create.done.send(Concluded { nodes: Ok(Ok(Vec::new())), kept: replaced }));
        }
        Ok(mut create) => {
            create.replaced = replaced.map(OwnedNode::disown);
            handle.send(Submission::Create(Box::new(create)));
        }
        Err(cause) => return Err(Some(WriteError::not_sent(cause))),
    }
    Ok(nodes)
}

fn poll(started: &mut Started, cx: &mut Context<'_>) -> Poll<Concluded> {
    let failed = |error| Concluded { nodes: Err(error), kept: None };
    match started {
        Ok(nodes) => Pin::new(nodes).poll(cx).map(|nodes| nodes.unwrap_or_else(|_| failed(CLOSED))),
        Err(error) => Poll::Ready(failed(error.take().unwrap_or(CLOSED))),
    }
}

/// Without a driver nobody answers.
const CLOSED: WriteError = WriteError::NotApplied(Cause::SessionEnded(SessionEnd::Closed));

/// A protected create under way; resolves to the node.
///
/// Dropping it leaves no node: the session finds out what became of the create and deletes what it made.
#[derive(Debug)]
#[must_use = "dropping it deletes the node"]
pub struct PendingNode(Started);

impl Future for PendingNode {
    type Output = Result<OwnedNode, WriteError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll(&mut self.0, cx).map(|created| match created.nodes? {
            Ok(mut nodes) => nodes.pop().ok_or(CLOSED),
            Err(MultiError { rejection, .. }) => Err(WriteError::Rejected(rejection)),
        })
    }
}

/// Protected creates under way; resolves to the nodes, in the order of the creates.
///
/// Dropping it leaves no node: the session finds out what became of the creates and deletes what they made.
#[derive(Debug)]
#[must_use = "dropping it deletes the nodes"]
pub struct PendingNodes {
    started: Started,
    kept: Option<OwnedNode>,
}

impl PendingNodes {
    /// The node that was to be [replaced](CreateAllProtected::replacing) and was not, for whoever wants to try
    /// again: once this has resolved to an error, unless the session has ended. It may be that the node is
    /// gone, and that this is the error.
    ///
    /// Left here, it is deleted when this goes.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::CreateMode;
    ///
    /// let seat = |path| zk.create(path, b"").mode(CreateMode::Ephemeral).protected();
    /// let old = seat("/old").await?;
    /// // Moves, unless somebody has closed the gate.
    /// let mut moving = zk.create_all_protected([seat("/new")]).check("/gate").replacing(old).submit();
    /// let refused = (&mut moving).await?.is_err();
    /// let kept = moving.take_back().ok_or("it has moved")?;
    /// assert!(refused && zk.exists(kept.path()).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_back(&mut self) -> Option<OwnedNode> {
        self.kept.take()
    }
}

impl Future for PendingNodes {
    type Output = CreatedNodes;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll(&mut self.started, cx).map(|Concluded { nodes, kept }| {
            self.kept = kept;
            nodes
        })
    }
}
