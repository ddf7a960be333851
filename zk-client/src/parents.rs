//! Creating a node together with what is missing above it.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll},
};

use zk_proto::{AclList, path};

use crate::{
    call::{Admission, CallError as _, Handle, Pending, Target},
    chroot::Chroot,
    create::{Create, CreateMode, Created},
    error::{Cause, Rejection, WriteError},
};

/// How often nodes are created again that somebody deletes under our hands, such as empty containers.
const ROUNDS_MAX: usize = 8;

/// Creates a node, and before it all nodes above it that are missing.
///
/// If none is missing this is one create. If some are, all of them are asked for at once, behind each other and in front
/// of the node: one more round trip. They have no data, and the node's own access control list; they stay if the node
/// cannot be created. Of a client with a chroot the nodes of the chroot itself are created as well.
///
/// ```no_run
/// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::WriteError> {
/// zk.create("/services/mail/instances/1", b"").parents().containers().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct CreateWithParents<'a> {
    create: Create<'a>,
    above: CreateMode,
}

/// A node being created with its parents; resolves to it.
///
/// Dropping it leaves what has been created so far.
#[must_use = "only the first try happens unless it is awaited"]
pub struct PendingWithParents(Pin<Box<dyn Future<Output = Result<Created, WriteError>> + Send>>);

impl<'a> CreateWithParents<'a> {
    pub(crate) const fn new(create: Create<'a>) -> Self {
        Self { create, above: CreateMode::Persistent }
    }

    /// Makes what is missing containers, which servers delete some time after their last child.
    pub const fn containers(mut self) -> Self {
        self.above = CreateMode::Container;
        self
    }

    /// Submits the create now. That something is missing above it is noticed when this is awaited.
    pub fn submit(self) -> PendingWithParents {
        self.start(Admission::Now)
    }

    fn start(self, admission: Admission) -> PendingWithParents {
        let Self { create, above } = self;
        let first = create.clone().start(admission);
        let work = Work::new(create, above);
        PendingWithParents(Box::pin(work.run(first)))
    }
}

impl IntoFuture for CreateWithParents<'_> {
    type Output = Result<Created, WriteError>;
    type IntoFuture = PendingWithParents;
    fn into_future(self) -> PendingWithParents {
        self.start(Admission::Waiting)
    }
}

impl Future for PendingWithParents {
    type Output = Result<Created, WriteError>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for PendingWithParents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingWithParents")
    }
}

/// The create, on its own feet.
struct Work {
    handle: Handle,
    options: crate::call_options::CallOptions,
    path: String,
    data: Vec<u8>,
    mode: CreateMode,
    acl: AclList,
    above: CreateMode,
}

impl Work {
    fn new(create: Create<'_>, above: CreateMode) -> Self {
        let Create { target, path, data, mode, acl } = create;
        let mut handle = target.handle.clone();
        // What goes on later is not to wait for a cork.
        handle.held = None;
        let (path, data) = (path.to_owned(), data.to_vec());
        Self { handle, options: target.options, path, data, mode, acl, above }
    }

    async fn run(self, first: Pending<Created, WriteError>) -> Result<Created, WriteError> {
        let missing = WriteError::Rejected(Rejection::NoNode);
        let mut result = first.await;
        for _ in 0..ROUNDS_MAX {
            if result.as_ref().err() != Some(&missing) {
                break;
            }
            result = self.with_parents().await;
        }
        result
    }

    async fn with_parents(&self) -> Result<Created, WriteError> {
        let absolute = self.handle.chroot.resolve(&self.path, self.mode.naming());
        let absolute = absolute.map_err(|error| WriteError::not_sent(Cause::from(error)))?;
        let from_the_root = Handle { chroot: Chroot::default(), ..self.handle.clone() };
        let from_the_root = Target { handle: &from_the_root, options: self.options };
        let mut above: Vec<&str> = path::parent(&absolute)
            .map(|parent| path::ancestors(parent).collect())
            .unwrap_or_default();
        above.retain(|path| *path != "/");
        let create = |path: &&str| {
            let create = Create::new(from_the_root, path, b"").mode(self.above).acl(&self.acl);
            create.or_exists().into_future()
        };
        let parents: Vec<_> = above.iter().rev().map(create).collect();
        let target = Target { handle: &self.handle, options: self.options };
        let create = Create::new(target, &self.path, &self.data).mode(self.mode).acl(&self.acl);
        let node = create.start(Admission::Waiting);
        let mut refused = None;
        for parent in parents {
            refused = refused.or(parent.await.err());
        }
        match (node.await, refused) {
            // That is why there is no parent.
            (Err(WriteError::Rejected(Rejection::NoNode)), Some(why)) => Err(why),
            (result, _) => result,
        }
    }
}
