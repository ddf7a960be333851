//! A requested node and the created node.

use zk_proto::{
    AclList, ErrorCode, OpCode, SessionId, Stat, Str,
    path::parse_sequence,
    request::{Create2View, CreateResponse},
    session::{Answer, OnLoss},
};

use super::mode::CreateMode;
use crate::{
    carry::{
        attempt::KnownBy,
        capabilities::{Capabilities, stat_at_birth},
        node::OwnedNode,
    },
    error::{CallError as _, Cause, WriteError},
    request::{
        answer::{ReadAnswer, ReadInContext, ReplyContext, Unresolved, body},
        ask::{Call, Target},
        asked::Asked,
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
    /// Its metadata at creation. From servers before 3.5 only the transactions are known, and the rest is 0; all of it
    /// is 0 if the node [existed](Self::existed).
    pub stat: Stat,
    /// Whether the node existed already; only if that is [no error](crate::Create::or_exists).
    pub existed: bool,
    /// The owner of the node, of a [protected](crate::Create::protected) create and of no other.
    pub owned: Option<OwnedNode>,
}

impl Created {
    fn new(path: &str, stat: Stat) -> Self {
        Self { path: path.to_owned(), stat, existed: false, owned: None }
    }

    /// A node of a protected create.
    pub(super) fn of(node: OwnedNode) -> Self {
        let created = Self::new(node.path(), *node.stat());
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
    pub(crate) acl: AclList,
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
        let (options, acl) = (client.handle.options, client.handle.acl.clone());
        let (mode, above, floor) = (CreateMode::Persistent, None, None);
        let (or_exists, known_by) = (false, None);
        Self { client, options, path, data, mode, acl, above, floor, or_exists, known_by }
    }

    pub(crate) const fn target(&self) -> Target<'a> {
        Target { handle: &self.client.handle, options: self.options }
    }

    pub(crate) fn request(
        self,
        on_loss: OnLoss,
        admission: Admission,
        read: ReadInContext<Created>,
    ) -> Pending<Created, WriteError> {
        let target = self.target();
        let Self { path, data, mode, acl, .. } = self;
        match target.handle.chroot.resolve(path, mode.naming()) {
            Ok(absolute) => {
                let (named, path) = (path, absolute);
                let operation = mode.operation(Str::from(&*path), data, acl);
                let (frame, instead) = operation.frames(target.handle);
                let instead = target.instead(instead, on_loss);
                let asked = Asked::node(&path, mode.naming());
                let call = Call { frame, on_loss, watch: None, instead, asked };
                let span = RequestSpan::begin(target.handle, call.frame.op(), Some(named));
                let read = ReadAnswer::InContext(read, ());
                Pending::start(target, call, read, admission).in_span(span)
            }
            Err(error) => Pending::failed(WriteError::not_sent(Cause::InvalidPath(error))),
        }
    }
}

/// Reads the reply to any of the create operations.
pub(crate) fn read_created(
    answer: Answer,
    context: Box<ReplyContext>,
) -> Result<Created, Unresolved> {
    match (context.op, answer.code) {
        (OpCode::CREATE_CONTAINER, ErrorCode::UNIMPLEMENTED) => {
            context.learn(Capabilities::learn_no_containers);
        }
        (OpCode::CREATE2, ErrorCode::UNIMPLEMENTED) => {
            context.learn(Capabilities::learn_no_create2);
            return Err(context.unknown_operation());
        }
        (OpCode::CREATE2, ErrorCode::OK) => context.learn(Capabilities::learn_create2),
        _ => {}
    }
    let created = |path: Str<'_>, stat| {
        let path = path.lossy();
        context.asked.check_created(&path)?;
        Ok(Created::new(context.chroot.relative(&path), stat))
    };
    match context.op {
        OpCode::CREATE => {
            let CreateResponse { path } = body(&answer)?;
            created(Str::from(&path), stat_at_birth(answer.zxid, SessionId(0), 0))
        }
        _ => {
            let Create2View { path, stat } = body(&answer)?;
            created(path, stat)
        }
    }
}

/// As [`read_created`], for a node that may exist already.
pub(crate) fn read_existing(
    answer: Answer,
    context: Box<ReplyContext>,
) -> Result<Created, Unresolved> {
    if answer.code == ErrorCode::NODE_EXISTS {
        let path = context.chroot.relative(context.asked.path());
        return Ok(Created { existed: true, ..Created::new(path, Stat::default()) });
    }
    read_created(answer, context)
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
        let Wish { client, options, path, data, mode, ref acl, or_exists, known_by, .. } = *wish;
        let (path, data, acl) = (path.to_owned(), data.to_vec(), acl.clone());
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
        let (path, data, acl) = (&*self.path, &*self.data, self.acl.clone());
        let (above, floor) = (None, None);
        Wish { client, options, path, data, mode, acl, above, floor, or_exists, known_by }
    }
}
