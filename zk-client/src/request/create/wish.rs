//! A requested node and the created node.

use zk_proto::{
    AclList, ErrorCode, OpCode, SessionId, Stat, Str,
    path::parse_sequence,
    request::{Create2View, CreateResponse},
    session::{Answer, OnLoss, Outgoing},
};

use super::mode::{CreateMode, Metadata};
use crate::{
    carry::{attempt::KnownBy, capabilities::stat_at_birth, node::OwnedNode},
    error::{CallError as _, Cause, WriteError},
    request::{
        answer::{ReadCreated, Reading, Requested, Unresolved, body},
        ask::Target,
        asked::Node,
        call_options::{Admission, CallOptions},
        client::Client,
        pending::Pending,
        span::RequestSpan,
    },
};

/// A node that has been created.
///
/// Dropping it deletes the node if the create was [protected](crate::Create::protected), and does nothing otherwise.
#[derive(Debug)]
#[non_exhaustive]
pub struct Created {
    /// Its path, with its sequence number, relative to the client's chroot.
    pub path: String,
    /// Its metadata at creation. From servers before 3.5 only the transactions are known, and the rest is 0, also of
    /// later nodes: a session that has met such a server asks for no more until a newer one has carried out what only
    /// newer ones can, such as the create of a container. All of it is 0 if the node [existed](Self::existed).
    pub stat: Stat,
    /// Whether the node existed already; only if that is [no error](crate::Create::or_exists).
    pub existed: bool,
    /// The owner of the node, of a [protected](crate::Create::protected) create and of no other.
    pub owned: Option<OwnedNode>,
}

impl Created {
    const fn new(path: String, stat: Stat) -> Self {
        Self { path, stat, existed: false, owned: None }
    }

    /// A node of a protected create.
    pub(super) fn of(node: OwnedNode) -> Self {
        let created = Self::new(node.path().to_owned(), *node.stat());
        Self { owned: Some(node), ..created }
    }

    /// Returns the number that the server has appended to the `requested` path.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::CreateMode;
    ///
    /// let create = zk.create("/job-", b"").mode(CreateMode::PersistentSequential);
    /// assert_eq!(create.await?.sequence("/job-"), Some(0));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn sequence(&self, requested: &str) -> Option<i32> {
        self.path.strip_prefix(requested).and_then(parse_sequence)
    }
}

/// A requested node.
#[derive(Clone, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) client: &'a Client,
    pub(crate) options: CallOptions,
    pub(crate) path: &'a str,
    pub(crate) data: &'a [u8],
    pub(crate) mode: CreateMode,
    /// Its own access control list, if it has one.
    pub(crate) acl: Option<Box<AclList>>,
    /// The kind of missing parents to create, if any.
    pub(crate) above: Option<CreateMode>,
    /// The node that must exist with its parents, if any.
    pub(crate) floor: Option<&'a str>,
    /// Whether it may exist already.
    pub(crate) or_exists: bool,
    /// How its node is found again, if it is protected.
    pub(crate) known_by: Option<KnownBy>,
}

impl<'a> Wish<'a> {
    /// A persistent node with the client's options.
    pub(crate) fn new(client: &'a Client, path: &'a str, data: &'a [u8]) -> Self {
        let (options, mode) = (client.handle.options, CreateMode::Persistent);
        let (acl, above, floor) = (None, None, None);
        let (or_exists, known_by) = (false, None);
        Self { client, options, path, data, mode, acl, above, floor, or_exists, known_by }
    }

    pub(crate) fn acl(&self) -> &AclList {
        self.acl.as_deref().unwrap_or(&self.client.handle.acl)
    }

    pub(crate) const fn target(&self) -> Target<'a> {
        Target { handle: &self.client.handle, options: self.options }
    }

    pub(crate) fn request(
        &self,
        on_loss: OnLoss,
        admission: Admission,
        read: ReadCreated<Created>,
    ) -> Pending<Created, WriteError> {
        self.request_for(Metadata::Wanted, on_loss, admission, read)
    }

    /// The request for a node that another one needs, and of which nothing is read but whether it was refused. It is not
    /// sent again if its reply is lost.
    pub(super) fn request_parent(&self) -> Pending<Created, WriteError> {
        self.request_for(Metadata::Unneeded, OnLoss::Report, Admission::Waiting, read_created)
    }

    fn request_for(
        &self,
        metadata: Metadata,
        on_loss: OnLoss,
        admission: Admission,
        read: ReadCreated<Created>,
    ) -> Pending<Created, WriteError> {
        let target = self.target();
        let Self { path, data, mode, .. } = *self;
        match target.handle.chroot.resolve(path, mode.naming()) {
            Ok(absolute) => {
                let operation = mode.operation(Str::from(&*absolute), data, self.acl().clone());
                let (frame, instead) = operation.frames(target.handle, metadata, on_loss);
                let instead = target.instead(instead, on_loss);
                let node = Node::new(&absolute, target.handle.chroot.len(), mode.naming());
                let reading = Reading::Created(read, Requested { node, instead });
                let span = RequestSpan::begin(target.handle, frame.op(), Some(path));
                let patience = target.options.patience;
                let request = Outgoing { frame, token: (), watch: None, on_loss, patience };
                Pending::submit(target, request, reading, admission).in_span(span)
            }
            Err(error) => Pending::failed(WriteError::not_sent(Cause::InvalidPath(error))),
        }
    }
}

/// Reads the reply to any of the create operations.
pub(crate) fn read_created(
    op: OpCode,
    answer: Answer,
    requested: Requested,
) -> Result<Created, Unresolved<Requested>> {
    if (op, answer.code) == (OpCode::CREATE2, ErrorCode::UNIMPLEMENTED) {
        return Err(requested.unknown_operation());
    }
    if op == OpCode::CREATE {
        let CreateResponse { path } = body(&answer)?;
        let stat = stat_at_birth(answer.zxid, SessionId(0), 0);
        return Ok(Created::new(requested.node.created(&path.lossy())?, stat));
    }
    let Create2View { path, stat } = body(&answer)?;
    Ok(Created::new(requested.node.created(&path.lossy())?, stat))
}

/// As [`read_created`], for a node that may exist already.
pub(crate) fn read_existing(
    op: OpCode,
    answer: Answer,
    requested: Requested,
) -> Result<Created, Unresolved<Requested>> {
    if answer.code == ErrorCode::NODE_EXISTS {
        let path = requested.node.into_path();
        return Ok(Created { existed: true, ..Created::new(path, Stat::default()) });
    }
    read_created(op, answer, requested)
}

/// A requested node that borrows nothing.
pub(crate) struct OwnedWish {
    pub(crate) client: Client,
    options: CallOptions,
    path: String,
    data: Vec<u8>,
    mode: CreateMode,
    acl: AclList,
    or_exists: bool,
    known_by: Option<KnownBy>,
}

impl OwnedWish {
    pub(crate) fn of(wish: &Wish<'_>) -> Self {
        let Wish { client, options, path, data, mode, or_exists, known_by, .. } = *wish;
        let (path, data, acl) = (path.to_owned(), data.to_vec(), wish.acl().clone());
        let client = Self::uncorked(client);
        Self { client, options, path, data, mode, acl, or_exists, known_by }
    }

    /// Later attempts must not be held back by a cork.
    pub(crate) fn uncorked(client: &Client) -> Client {
        let mut client = client.clone();
        client.handle.change(|view| view.held = None);
        client
    }

    /// The request for another attempt.
    pub(crate) fn wish<'a>(&'a self, client: &'a Client) -> Wish<'a> {
        let Self { options, mode, or_exists, known_by, .. } = *self;
        let (path, data, acl) = (&*self.path, &*self.data, Some(Box::new(self.acl.clone())));
        let (above, floor) = (None, None);
        Wish { client, options, path, data, mode, acl, above, floor, or_exists, known_by }
    }
}
