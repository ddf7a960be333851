//! Several writes and checks that happen together or not at all.

use zk_proto::{
    AclList, ErrorCode, Stat, Str,
    path::Naming,
    request::{
        CheckVersionRequest, Create2Response, CreateResponse, DeleteRequest, MultiOp, MultiRequest,
        MultiResponse, MultiResult, SetDataRequest, SetDataResponse,
    },
    session::{Answer, OnLoss},
};

use crate::{
    carry::{level::Level, version::expected},
    chroot::Chroot,
    error::{CallError as _, Cause, MultiError, WriteError, failed},
    request::{
        answer::{ReplyContext, Unread, body},
        asked::{Asked, Node, Part},
        call::Call,
        call_options::Admission,
        create::{CreateMode, CreateOperation},
        operations::builder::awaitable,
        pending::Pending,
        target::Target,
    },
};

/// Collects operations that are applied together or not at all; resolves to their results, in order.
///
/// A failed transaction resolves to [`Err`] inside of `Ok`: a server has answered, and nothing was written. An empty
/// one succeeds. One with an operation that the server does not support, such as the creation of a container before
/// 3.5, is refused as a whole with [`Unimplemented`](crate::Rejection::Unimplemented). One that requires version -1,
/// which servers take as any, is not sent.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use zk_client::{CreateMode, MultiError, Rejection};
///
/// zk.create("/inbox", b"a job").await?;
/// let moved = zk
///     .multi()
///     .check_version("/inbox", 0)
///     .create("/done", b"a job", CreateMode::Persistent)
///     .delete("/inbox");
/// assert_eq!(moved.clone().await?.map(|results| results.len()), Ok(3));
/// // All or nothing: it no longer exists.
/// assert_eq!(moved.await?, Err(MultiError { index: 0, rejection: Rejection::NoNode }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Multi<'a> {
    target: Target<'a>,
    ops: Vec<Op<'a>>,
}

#[derive(Clone, Debug)]
enum Op<'a> {
    Create { path: &'a str, data: &'a [u8], mode: CreateMode, acl: AclList },
    Set { path: &'a str, data: &'a [u8], version: Option<i32> },
    Delete { path: &'a str, version: Option<i32> },
    Check { path: &'a str, version: Option<i32> },
}

/// The result of one operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpResult {
    /// A node was created. Servers before 3.7.2, 3.8.2 and 3.9.0 do not return its [`Stat`].
    Created {
        /// Its path, with its sequence number, relative to the client's chroot.
        path: String,
        /// Its metadata at creation.
        stat: Option<Stat>,
    },
    /// Data was written.
    Set(Stat),
    /// A node was deleted.
    Deleted,
    /// A version was as expected.
    Checked,
}

/// The outcome of a transaction that a server has answered.
pub type MultiOutcome = Result<Vec<OpResult>, MultiError>;

impl<'a> Multi<'a> {
    pub(crate) const fn new(target: Target<'a>) -> Self {
        Self { target, ops: Vec::new() }
    }

    fn with(mut self, op: Op<'a>) -> Self {
        self.ops.push(op);
        self
    }

    /// Uses the options that the client was [given](crate::Client::with) before it was made
    /// [patient](crate::Client::patient): for transactions that a patient client lends to its caller.
    pub fn as_told(mut self) -> Self {
        self.target.options = self.target.handle.told;
        self
    }

    /// Creates a node with the [connection's](crate::ConnectOptions::default_acl) access control list.
    pub fn create(self, path: &'a str, data: &'a [u8], mode: CreateMode) -> Self {
        let acl = self.target.handle.acl.clone();
        self.with(Op::Create { path, data, mode, acl })
    }

    /// Creates a node with this access control list.
    pub fn create_with_acl(
        self,
        path: &'a str,
        data: &'a [u8],
        mode: CreateMode,
        acl: &AclList,
    ) -> Self {
        self.with(Op::Create { path, data, mode, acl: acl.clone() })
    }

    /// Replaces a node's data.
    pub fn set(self, path: &'a str, data: &'a [u8]) -> Self {
        self.with(Op::Set { path, data, version: None })
    }

    /// Replaces a node's data if it has this version.
    pub fn set_version(self, path: &'a str, data: &'a [u8], version: i32) -> Self {
        self.with(Op::Set { path, data, version: Some(version) })
    }

    /// Deletes a node.
    pub fn delete(self, path: &'a str) -> Self {
        self.with(Op::Delete { path, version: None })
    }

    /// Deletes a node if its data has this version.
    pub fn delete_version(self, path: &'a str, version: i32) -> Self {
        self.with(Op::Delete { path, version: Some(version) })
    }

    /// Requires that a node exists.
    pub fn check(self, path: &'a str) -> Self {
        self.with(Op::Check { path, version: None })
    }

    /// Requires that a node exists and that its data has this version.
    pub fn check_version(self, path: &'a str, version: i32) -> Self {
        self.with(Op::Check { path, version: Some(version) })
    }

    fn start(self, admission: Admission) -> Pending<MultiOutcome, WriteError> {
        let writes = self.ops.iter().any(|op| !matches!(op, Op::Check { .. }));
        let level = &self.target.handle.shared.level;
        let creates = self.ops.iter().any(|op| matches!(op, Op::Create { .. }));
        let frame = |with_stat| self.encode(with_stat).map(|multi| self.target.frame(&multi));
        let is_open = creates && !level.lacks_create2() && !level.has_create2();
        let frames = frame(!level.lacks_create2())
            .and_then(|first| Ok((first, is_open.then(|| frame(false)).transpose()?)));
        match frames {
            Ok((frame, instead)) => {
                let on_loss = if writes { OnLoss::Report } else { OnLoss::Resend };
                let call = Call { frame, on_loss, watch: None, instead, read };
                let asked = self.ops.iter().map(|op| op.asked(&self.target.handle.chroot));
                let asked = Asked::several(asked);
                self.target.call_asking(call, asked, admission)
            }
            Err(cause) => Pending::failed(WriteError::not_sent(cause)),
        }
    }

    fn encode(&self, with_stat: bool) -> Result<MultiRequest, Cause> {
        let chroot = &self.target.handle.chroot;
        let paths = self
            .ops
            .iter()
            .map(|op| chroot.resolve(op.path(), op.naming()))
            .collect::<Result<Vec<_>, _>>()?;
        let ops = self.ops.iter().zip(&paths);
        ops.map(|(op, path)| op.encode(Str::from(&**path), with_stat)).collect()
    }
}

impl Op<'_> {
    /// What its result is checked against.
    fn asked(&self, chroot: &Chroot) -> Part {
        match self {
            Self::Create { path, mode, .. } => {
                let path = chroot.resolve(path, mode.naming()).unwrap_or_default();
                Part::Create(Node::new(&path, mode.naming()))
            }
            Self::Set { .. } => Part::Set,
            Self::Delete { .. } => Part::Delete,
            Self::Check { .. } => Part::Check,
        }
    }

    const fn path(&self) -> &str {
        match self {
            Self::Create { path, .. }
            | Self::Set { path, .. }
            | Self::Delete { path, .. }
            | Self::Check { path, .. } => path,
        }
    }

    const fn naming(&self) -> Naming {
        match self {
            Self::Create { mode, .. } => mode.naming(),
            Self::Set { .. } | Self::Delete { .. } | Self::Check { .. } => Naming::Exact,
        }
    }

    /// `with_stat` is whether servers can return a new node's metadata.
    fn encode<'a>(&'a self, path: Str<'a>, with_stat: bool) -> Result<MultiOp<'a>, Cause> {
        Ok(match self {
            Self::Create { data, mode, acl, .. } => match mode.operation(path, data, acl.clone()) {
                CreateOperation::Plain(create) if with_stat => MultiOp::Create2(create),
                CreateOperation::Plain(create) => MultiOp::Create(create),
                CreateOperation::Container(create) => MultiOp::CreateContainer(create),
                CreateOperation::Ttl(create) => MultiOp::CreateTtl(create),
            },
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
        })
    }
}

awaitable! {
    Multi: MultiOutcome, WriteError;
}

/// Reads the results. The header of a failed transaction carries no error; the results do: 0 before the operation that
/// failed, and "runtime inconsistency" after it.
fn read(answer: Answer, context: ReplyContext) -> Result<MultiOutcome, Unread> {
    // Servers before 3.5 cannot parse unknown operations inside of a transaction.
    if answer.code == ErrorCode::MARSHALLING_ERROR {
        return Err(match context.has_alternative {
            true => Unread::Again(context),
            false => Unread::Code(ErrorCode::UNIMPLEMENTED),
        });
    }
    if context.has_alternative && answer.code.is_ok() {
        context.learn(Level::learn_create2);
    }
    let response: MultiResponse = body(&answer)?;
    let relative = |path: &zk_proto::Text| context.chroot.relative(&path.lossy()).to_owned();
    let mut stopped = None;
    let mut results = Vec::with_capacity(context.asked.len());
    for (index, result) in context.asked.results(&response).enumerate() {
        results.push(match result? {
            MultiResult::Create(CreateResponse { path }) => {
                OpResult::Created { path: relative(&path), stat: None }
            }
            MultiResult::Create2(Create2Response { path, stat }) => {
                OpResult::Created { path: relative(&path), stat: Some(stat) }
            }
            MultiResult::SetData(SetDataResponse { stat }) => OpResult::Set(stat),
            MultiResult::Delete => OpResult::Deleted,
            MultiResult::Check => OpResult::Checked,
            MultiResult::Error(code) => {
                stopped = stopped.or_else(|| failed(index, code));
                continue;
            }
            _ => return Err(Unread::Mismatch("a result of no operation")),
        });
    }
    match stopped {
        Some(failure) => Ok(Err(failure)),
        None if results.len() < context.asked.len() => {
            Err(Unread::Mismatch("operations that were not carried out, and no reason"))
        }
        None => Ok(Ok(results)),
    }
}
