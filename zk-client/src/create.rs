//! Creating nodes.

use std::time::Duration;

use zk_proto::{
    AclList, CreateFlags, ErrorCode, OpCode, SessionId, Stat, Str,
    frame::RequestFrame,
    path::{Naming, parse_sequence},
    request::{
        Create2Request, Create2View, CreateContainerRequest, CreateRequest, CreateResponse,
        CreateTtlRequest,
    },
    session::{Answer, OnLoss},
};

use crate::{
    call::{Admission, CallError as _, Pending, ReplyContext, Target, Unread, body},
    error::{Cause, WriteError},
    level::{Level, stat_at_birth},
    operations::{awaitable, write},
    parents::CreateWithParents,
    protected::CreateProtected,
};

/// What kind of node to create.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use std::time::Duration;
/// use zk_client::CreateMode;
///
/// zk.create("/jobs", b"").mode(CreateMode::Container).await?;
/// let first = zk.create("/jobs/job-", b"").mode(CreateMode::PersistentSequential).await?;
/// assert_eq!(first.path, "/jobs/job-0000000000");
/// let worker = zk.create("/worker", b"").mode(CreateMode::Ephemeral).await?;
/// assert_eq!(worker.stat.ephemeral_owner, zk.session().id());
/// // Servers refuse it unless they have been told to allow it.
/// let hint = CreateMode::PersistentTtl(Duration::from_secs(60));
/// if let Err(error) = zk.create("/hint", b"").mode(hint).await {
///     println!("{error}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateMode {
    /// Lives until deleted.
    #[default]
    Persistent,
    /// Persistent, with a sequence number appended to its name.
    PersistentSequential,
    /// Lives as long as the session; cannot have children.
    Ephemeral,
    /// Ephemeral, with a sequence number appended to its name.
    EphemeralSequential,
    /// Deleted by the servers some time after its last child, by default within a minute or two. Since
    /// 3.5.1.
    Container,
    /// Deleted by the servers once it has had no children and no write for this long, 1 ms to about 34
    /// years. Since 3.5.4, and only if the servers allow it (`extendedTypesEnabled`).
    PersistentTtl(Duration),
    /// The same, with a sequence number appended to its name.
    PersistentSequentialTtl(Duration),
}

impl CreateMode {
    pub(crate) const fn flags(self) -> CreateFlags {
        match self {
            Self::Persistent => CreateFlags::PERSISTENT,
            Self::PersistentSequential => CreateFlags::PERSISTENT_SEQUENTIAL,
            Self::Ephemeral => CreateFlags::EPHEMERAL,
            Self::EphemeralSequential => CreateFlags::EPHEMERAL_SEQUENTIAL,
            Self::Container => CreateFlags::CONTAINER,
            Self::PersistentTtl(_) => CreateFlags::PERSISTENT_TTL,
            Self::PersistentSequentialTtl(_) => CreateFlags::PERSISTENT_SEQUENTIAL_TTL,
        }
    }

    pub(crate) const fn naming(self) -> Naming {
        match self {
            Self::PersistentSequential
            | Self::EphemeralSequential
            | Self::PersistentSequentialTtl(_) => Naming::Sequential,
            Self::Persistent | Self::Ephemeral | Self::Container | Self::PersistentTtl(_) => {
                Naming::Exact
            }
        }
    }

    pub(crate) const fn is_ephemeral(self) -> bool {
        matches!(self, Self::Ephemeral | Self::EphemeralSequential)
    }

    /// The operation that servers demand for the mode, and its arguments. Nothing else decides on it.
    pub(crate) fn operation<'a>(
        self,
        path: Str<'a>,
        data: &'a [u8],
        acl: AclList,
    ) -> CreateOperation<'a> {
        let (data, flags) = (Some(data), self.flags());
        match self {
            Self::PersistentTtl(ttl) | Self::PersistentSequentialTtl(ttl) => {
                let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
                CreateOperation::Ttl(CreateTtlRequest { path, data, acl, flags, ttl })
            }
            Self::Container => CreateOperation::Container(CreateRequest { path, data, acl, flags }),
            Self::Persistent
            | Self::PersistentSequential
            | Self::Ephemeral
            | Self::EphemeralSequential => {
                CreateOperation::Plain(CreateRequest { path, data, acl, flags })
            }
        }
    }
}

/// The three operations that create nodes.
pub(crate) enum CreateOperation<'a> {
    Plain(CreateRequest<'a>),
    Container(CreateRequest<'a>),
    Ttl(CreateTtlRequest<'a>),
}

impl CreateOperation<'_> {
    /// What to ask for, and what instead if the server does not know that. Nothing is in doubt over it: servers
    /// refuse what they do not know.
    fn frames(self, target: Target<'_>) -> (RequestFrame, Option<RequestFrame>) {
        let level = &target.handle.level;
        match self {
            CreateOperation::Plain(create) if level.lacks_create2() => {
                (target.frame(&create), None)
            }
            CreateOperation::Plain(create) if !level.has_create2() => {
                let older = target.frame(&create);
                (target.frame(&Create2Request(create)), Some(older))
            }
            operation => (operation.frame(target), None),
        }
    }

    fn frame(self, target: Target<'_>) -> RequestFrame {
        match self {
            CreateOperation::Plain(create) => target.frame(&Create2Request(create)),
            CreateOperation::Container(create) => target.frame(&CreateContainerRequest(create)),
            CreateOperation::Ttl(create) => target.frame(&create),
        }
    }
}

/// A node that has been created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Created {
    /// Its path, with its sequence number, relative to the client's chroot.
    pub path: String,
    /// Its metadata at birth. From servers before 3.5 only the transactions are known, and the rest is 0.
    pub stat: Stat,
}

/// Creates a node; resolves to its path and [`Stat`]. See [`CreateMode`] for what can be created.
///
/// Who may do what with the node is what the [connection](crate::ConnectOptions::default_acl) was made with, unless
/// [`acl`](Create::acl) says otherwise.
///
/// Servers before 3.5 do not know how to tell metadata with a create, refuse the first one of a session and drop the
/// connection: that create is then asked for anew in the way they know, behind whatever was submitted meanwhile.
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Create<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) path: &'a str,
    pub(crate) data: &'a [u8],
    pub(crate) mode: CreateMode,
    pub(crate) acl: AclList,
}

awaitable! {
    Create: Created, WriteError;
    CreateOrExists: Option<Created>, WriteError;
}

impl<'a> Create<'a> {
    pub(crate) fn new(target: Target<'a>, path: &'a str, data: &'a [u8]) -> Self {
        let acl = target.handle.acl.clone();
        Self { target, path, data, mode: CreateMode::Persistent, acl }
    }

    /// What kind of node. Default: persistent.
    pub const fn mode(mut self, mode: CreateMode) -> Self {
        self.mode = mode;
        self
    }

    /// Who may do what with the node.
    pub fn acl(mut self, acl: &AclList) -> Self {
        self.acl = acl.clone();
        self
    }

    /// Is content if there is such a node already: resolves to `None` then. In return it is never in doubt while the
    /// session lives: if the answer is lost, the create is sent again, and `None` may then mean that the first one has
    /// done it. Not for sequential modes.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::WriteError> {
    /// if zk.create("/jobs", b"").or_exists().await?.is_none() {
    ///     println!("somebody has been here before");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn or_exists(self) -> CreateOrExists<'a> {
        let Self { target, path, data, mode, acl } = self;
        CreateOrExists { target, path, data, mode, acl }
    }

    /// Also creates the nodes above it that are missing: see [`CreateWithParents`].
    pub const fn parents(self) -> CreateWithParents<'a> {
        CreateWithParents::new(self)
    }

    /// Lets the session see to it that there is exactly one node, whatever happens to replies, and no node
    /// once the returned [`OwnedNode`](crate::OwnedNode) is gone. Only for ephemeral modes.
    ///
    /// The last component of the path gets the prefix `_c_<uuid>-`, by which the node is found again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::CreateMode;
    ///
    /// let seat = zk.create("/seat-", b"").mode(CreateMode::EphemeralSequential).protected().await?;
    /// assert_eq!(seat.sequence(), Some(0));
    /// # Ok(())
    /// # }
    /// ```
    pub const fn protected(self) -> CreateProtected<'a> {
        CreateProtected::new(self, false)
    }

    /// The same, for a path whose last component nobody else has ever asked for and nobody will: it contains a
    /// [`unique_id`](crate::Client::unique_id). For names in the manner of other implementations.
    ///
    /// With a name that is not unique, somebody else's node may be taken for the one created, and deleted.
    pub const fn protected_by_its_name(self) -> CreateProtected<'a> {
        CreateProtected::new(self, true)
    }

    pub(crate) fn start(self, admission: Admission) -> Pending<Created, WriteError> {
        let Self { target, path, data, mode, acl } = self;
        let frames = |path: Str<'_>| mode.operation(path, data, acl).frames(target);
        let path = (path, mode.naming());
        write(target, path, OnLoss::Report, frames, admission, read_created)
    }
}

/// A [`Create`] that is content with a node that is there already: see [`Create::or_exists`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct CreateOrExists<'a> {
    target: Target<'a>,
    path: &'a str,
    data: &'a [u8],
    mode: CreateMode,
    acl: AclList,
}

impl CreateOrExists<'_> {
    fn start(self, admission: Admission) -> Pending<Option<Created>, WriteError> {
        let Self { target, path, data, mode, acl } = self;
        if mode.naming() == Naming::Sequential {
            let cause = Cause::InvalidArgument("no other node has a sequential node's name");
            return Pending::failed(WriteError::not_sent(cause));
        }
        let frames = |path: Str<'_>| mode.operation(path, data, acl).frames(target);
        let path = (path, Naming::Exact);
        write(
            target,
            path,
            OnLoss::Resend,
            frames,
            admission,
            |answer, context| match read_created(answer, context) {
                Ok(created) => Ok(Some(created)),
                Err(Unread::Code(ErrorCode::NODE_EXISTS)) => Ok(None),
                Err(unread) => Err(unread),
            },
        )
    }
}

/// Reads the answer to any of the creates.
fn read_created(answer: Answer, context: ReplyContext) -> Result<Created, Unread> {
    match (context.op, answer.code) {
        (OpCode::CREATE2, ErrorCode::UNIMPLEMENTED) => {
            context.learn(Level::learn_no_create2);
            if context.has_alternative {
                return Err(Unread::Again(context));
            }
        }
        (OpCode::CREATE2, ErrorCode::OK) => context.learn(Level::learn_create2),
        _ => {}
    }
    let relative = |path: Str<'_>| context.chroot.relative(&path.lossy()).to_owned();
    Ok(match context.op {
        OpCode::CREATE => {
            let CreateResponse { path } = body(&answer)?;
            let stat = stat_at_birth(answer.zxid, SessionId(0), 0);
            Created { path: relative(Str::from(&path)), stat }
        }
        _ => {
            let Create2View { path, stat } = body(&answer)?;
            Created { path: relative(path), stat }
        }
    })
}

impl Created {
    /// The number that the server has put behind the `requested` path.
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
