//! A requested node and the created node.

use zk_proto::{
    AclList, ErrorCode, OpCode, SessionId, Stat, Str,
    path::parse_sequence,
    request::{Create2View, CreateResponse},
    session::{Answer, OnLoss},
};

use crate::{
    carry::{
        attempt::KnownBy,
        level::{Level, stat_at_birth},
    },
    error::WriteError,
    request::{
        answer::{ReadAnswer, ReplyContext, Unread, body},
        call_options::{Admission, CallOptions},
        client::Client,
        create::mode::CreateMode,
        operations::builder::write,
        pending::Pending,
        target::Target,
    },
};

/// A node that has been created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Created {
    /// Its path, with its sequence number, relative to the client's chroot.
    pub path: String,
    /// Its metadata at creation. From servers before 3.5 only the transactions are known, and the rest is 0.
    pub stat: Stat,
}

impl Created {
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
    /// How the node of a protected create is found again.
    pub(crate) known_by: KnownBy,
}

impl<'a> Wish<'a> {
    /// A persistent node with the client's options.
    pub(crate) fn new(client: &'a Client, path: &'a str, data: &'a [u8]) -> Self {
        let (options, acl) = (client.handle.options, client.handle.acl.clone());
        let (mode, above, floor) = (CreateMode::Persistent, None, None);
        let known_by = KnownBy::Prefix;
        Self { client, options, path, data, mode, acl, above, floor, known_by }
    }

    pub(crate) fn request<T>(
        self,
        on_loss: OnLoss,
        admission: Admission,
        read: ReadAnswer<T>,
    ) -> Pending<T, WriteError> {
        let Self { client, options, path, data, mode, acl, .. } = self;
        let target = Target { handle: &client.handle, options };
        let frames = |path: Str<'_>| mode.operation(path, data, acl).frames(target);
        write(target, (path, mode.naming()), on_loss, frames, admission, read)
    }
}

/// Reads the reply to any of the create operations.
pub(crate) fn read_created(answer: Answer, context: ReplyContext) -> Result<Created, Unread> {
    match (context.op, answer.code) {
        (OpCode::CREATE_CONTAINER, ErrorCode::UNIMPLEMENTED) => {
            context.learn(Level::learn_no_containers);
        }
        (OpCode::CREATE2, ErrorCode::UNIMPLEMENTED) => {
            context.learn(Level::learn_no_create2);
            if context.has_alternative {
                return Err(Unread::Again(context));
            }
        }
        (OpCode::CREATE2, ErrorCode::OK) => context.learn(Level::learn_create2),
        _ => {}
    }
    let relative = |path: Str<'_>| {
        let path = path.lossy();
        context.asked.check_created(&path)?;
        Ok::<_, Unread>(context.chroot.relative(&path).to_owned())
    };
    Ok(match context.op {
        OpCode::CREATE => {
            let CreateResponse { path } = body(&answer)?;
            let stat = stat_at_birth(answer.zxid, SessionId(0), 0);
            Created { path: relative(Str::from(&path))?, stat }
        }
        _ => {
            let Create2View { path, stat } = body(&answer)?;
            Created { path: relative(path)?, stat }
        }
    })
}

/// A requested node that borrows nothing.
pub(crate) struct OwnedWish {
    pub(crate) client: Client,
    options: CallOptions,
    path: String,
    data: Vec<u8>,
    mode: CreateMode,
    acl: AclList,
    known_by: KnownBy,
}

impl OwnedWish {
    pub(crate) fn of(wish: &Wish<'_>) -> Self {
        let Wish { client, options, path, data, mode, ref acl, known_by, .. } = *wish;
        let (path, data, acl) = (path.to_owned(), data.to_vec(), acl.clone());
        let client = Self::uncorked(client);
        Self { client, options, path, data, mode, acl, known_by }
    }

    /// Later attempts must not be held back by a cork.
    pub(crate) fn uncorked(client: &Client) -> Client {
        let mut client = client.clone();
        client.handle.change(|view| view.held = None);
        client
    }

    /// The request for another attempt.
    pub(crate) fn wish<'a>(&'a self, client: &'a Client) -> Wish<'a> {
        let Self { options, path, data, mode, acl, known_by, .. } = self;
        let (options, mode, known_by) = (*options, *mode, *known_by);
        let (above, floor) = (None, None);
        Wish { client, options, path, data, mode, acl: acl.clone(), above, floor, known_by }
    }
}
