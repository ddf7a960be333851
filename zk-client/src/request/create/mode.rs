//! Kinds of nodes, and the operations that create them.

use std::time::Duration;

use zk_proto::{
    AclList, CreateFlags, Str,
    frame::RequestFrame,
    path::Naming,
    request::{Create2Request, CreateContainerRequest, CreateRequest, CreateTtlRequest},
    session::OnLoss,
};

use crate::request::handle::Handle;

/// The kind of node to create.
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
/// // Servers refuse it unless configured to allow it.
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
    /// As `PersistentTtl`, with a sequence number appended to its name.
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

    /// The parent of a node of this kind. A number may be all of its name.
    pub(super) fn parent(self, path: &str) -> Option<&str> {
        match (self.naming(), path.strip_suffix('/')) {
            (Naming::Sequential, Some("")) => Some("/"),
            (Naming::Sequential, Some(parent)) => Some(parent),
            _ => zk_proto::path::parent(path),
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

    /// Returns the operation for the mode, and its arguments. Nothing else selects it.
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

/// Whether the caller reads the metadata of the node that is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metadata {
    Wanted,
    /// Every server knows the create that returns none.
    Unneeded,
}

impl CreateOperation<'_> {
    /// Returns the request, and the alternative if the server does not know it. This leaves no doubt: servers refuse
    /// operations that they do not know. What is sent again may come to an older server than the present one.
    pub(crate) fn frames(
        self,
        handle: &Handle,
        metadata: Metadata,
        on_loss: OnLoss,
    ) -> (RequestFrame, Option<RequestFrame>) {
        let (capabilities, frames) = (&handle.shared.known().capabilities, &handle.shared.frames);
        let without_stat = metadata == Metadata::Unneeded || capabilities.lacks_create2();
        match self {
            CreateOperation::Plain(create) if without_stat => (frames.of(&create), None),
            CreateOperation::Plain(create)
                if on_loss == OnLoss::Resend || !capabilities.has_create2() =>
            {
                let older = frames.of(&create);
                (frames.of(&Create2Request(create)), Some(older))
            }
            CreateOperation::Plain(create) => (frames.of(&Create2Request(create)), None),
            CreateOperation::Container(create) => {
                (frames.of(&CreateContainerRequest(create)), None)
            }
            CreateOperation::Ttl(create) => (frames.of(&create), None),
        }
    }
}
