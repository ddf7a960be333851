//! Creating nodes.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use zk_proto::{AclList, ErrorCode, path::Naming, session::OnLoss};

use crate::{
    carry::{attempt::KnownBy, node::OwnedNode},
    error::{CallError as _, Cause, WriteError},
    request::{
        answer::Unread,
        call_options::Admission,
        client::Client,
        create::{
            Created,
            mode::CreateMode,
            parents::{Above, Outcome as _},
            started::Started,
            wish::{OwnedWish, Wish, read_created},
        },
        pending::Pending,
    },
};

/// Creates a node; resolves to the [`Created`] node, by default. See [`CreateMode`] for the kinds of nodes.
///
/// The options can be set in any order, and combined.
///
/// The node gets the [connection's](crate::ConnectOptions::default_acl) access control list, unless
/// [`acl`](Create::acl) is set.
///
/// Servers before 3.5 cannot return metadata with a create, refuse the first one of a session and drop the connection:
/// the client then sends that create again in the older form, after whatever was submitted in the meantime.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Create<'a, T = Created> {
    pub(crate) wish: Wish<'a>,
    begin: Begin<T>,
}

/// A [`Create`] that succeeds if the node exists already: see [`Create::or_exists`].
pub type CreateOrExists<'a> = Create<'a, Option<Created>>;

/// A create that survives a lost reply: see [`Create::protected`].
pub type CreateProtected<'a> = Create<'a, OwnedNode>;

/// Starts a create that resolves to `T`.
type Begin<T> = fn(Wish<'_>, Admission) -> PendingCreate<T>;

impl<T> Clone for Create<'_, T> {
    fn clone(&self) -> Self {
        Self { wish: self.wish.clone(), begin: self.begin }
    }
}

impl<'a> Create<'a> {
    pub(crate) fn new(client: &'a Client, path: &'a str, data: &'a [u8]) -> Self {
        let wish = Wish::new(client, path, data);
        Self { wish, begin: |wish, admission| wish.create(admission) }
    }

    /// Succeeds if the node exists already: resolves to `None` then. In return it is never in doubt while the session
    /// lives: if the reply is lost, the create is sent again, and `None` may then mean that the first one succeeded.
    /// Not for sequential modes.
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
        Create { wish: self.wish, begin: |wish, admission| wish.create_or_exists(admission) }
    }

    /// Makes the session ensure that there is exactly one node, even if replies are lost, and no node once the returned
    /// [`OwnedNode`] has been dropped. Only for ephemeral modes.
    ///
    /// The last component of the path gets the prefix `_c_<uuid>-`, by which the node is found again.
    ///
    /// The create continues until its outcome is known or the session ends, over lost connections and busy servers;
    /// [`CallOptions`](crate::CallOptions) do not apply. A retry comes after whatever was submitted in the meantime. To
    /// stop waiting, drop the future, as `tokio::time::timeout` does: the session then ensures that no node is left.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::CreateMode;
    ///
    /// let seat = zk.create("/hall/seat-", b"").mode(CreateMode::EphemeralSequential);
    /// let seat = seat.protected().containers().await?;
    /// assert_eq!(seat.sequence(), Some(0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn protected(self) -> CreateProtected<'a> {
        self.known_by(KnownBy::Prefix)
    }

    /// As [`protected`](Self::protected), for a path whose last component no other client has used or ever will: it
    /// contains a [`unique_id`](Client::unique_id). For the naming schemes of other implementations.
    ///
    /// With a name that is not unique, another client's node may be taken for the one created, and deleted.
    pub fn protected_by_its_name(self) -> CreateProtected<'a> {
        self.known_by(KnownBy::Name)
    }

    /// As [`protected`](Self::protected), for a name that other clients use too, one at a time or each with a number
    /// appended: the node is found again by its session and its data, which no other client has written or ever will,
    /// as it contains a [`unique_id`](Client::unique_id). [`NodeExists`](crate::Rejection::NodeExists) means another
    /// client's node.
    ///
    /// No other client's node is deleted in place of this one: before each delete the session checks that the node is
    /// still its own, and deletes only the version that it has read. A node without a number is written once in the
    /// transaction that creates it, so that its version is never that of a node that was merely created. The remaining
    /// risk is a node of the same kind that takes the name between the read and the delete, after a third party has
    /// deleted this one; and with a number, the path as well.
    ///
    /// Finding a node with a number after a lost reply costs a read of each sibling of the name. A client that writes
    /// the node before it is found makes it count as another client's.
    pub fn protected_by_its_data(self) -> CreateProtected<'a> {
        self.known_by(KnownBy::Data)
    }

    fn known_by(mut self, known_by: KnownBy) -> CreateProtected<'a> {
        self.wish.known_by = known_by;
        Create { wish: self.wish, begin: |wish, _| wish.create_protected() }
    }
}

impl<'a, T> Create<'a, T> {
    /// Sets the kind of node. Default: persistent.
    pub const fn mode(mut self, mode: CreateMode) -> Self {
        self.wish.mode = mode;
        self
    }

    /// Sets the node's access control list.
    pub fn acl(mut self, acl: &AclList) -> Self {
        self.wish.acl = acl.clone();
        self
    }

    /// Also creates missing parents, those of the client's chroot included.
    ///
    /// If none is missing, this is one create. Otherwise all of them are requested at once, in order and before the
    /// node: one more round trip, for which the create has to be awaited. They have no data, and the node's own access
    /// control list; they stay if the node cannot be created. If another client keeps deleting them, the error is
    /// [`NoNode`](crate::Rejection::NoNode) in the end; if they are refused, it is that refusal.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::WriteError> {
    /// zk.create("/services/mail/instances/1", b"").parents().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn parents(mut self) -> Self {
        if self.wish.above.is_none() {
            self.wish.above = Some(CreateMode::Persistent);
        }
        self
    }

    /// As [`parents`](Self::parents), but creates containers, which servers delete some time after their last child;
    /// persistent nodes where servers do not support containers, before 3.5.1.
    pub const fn containers(mut self) -> Self {
        self.wish.above = Some(CreateMode::Container);
        self
    }

    /// As [`parents`](Self::parents), but creates only parents below the node `path`, which must exist.
    pub const fn parents_below(self, path: &'a str) -> Self {
        let mut create = self.parents();
        create.wish.floor = Some(path);
        create
    }
}

impl<T: Send + 'static> Create<'_, T> {
    /// Submits the request now, behind all earlier submissions: it is sent even if the returned future is dropped.
    /// Where awaiting the builder would wait for room, this fails with [`QueueFull`](crate::Cause::QueueFull). Missing
    /// parents are noticed when it is awaited.
    pub fn submit(self) -> PendingCreate<T> {
        self.start(Admission::Now)
    }

    fn start(self, admission: Admission) -> PendingCreate<T> {
        let Self { wish, begin } = self;
        let Some(above) = Above::of([&wish]) else { return begin(wish, admission) };
        let owned = OwnedWish::of(&wish);
        let first = begin(wish, admission);
        PendingCreate(State::WithParents(Box::pin(async move {
            let again = |client: &Client, _| begin(owned.wish(client), Admission::Waiting);
            above.climb(&owned.client, first.await, again).await
        })))
    }
}

impl<'a> CreateProtected<'a> {
    /// Submits something behind the create, in the same write: again with every attempt, if [parents](Create::parents)
    /// have to be created first. Resolves to the node and to what was submitted behind it.
    ///
    /// For requests whose replies are more useful once the node exists.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::CreateMode;
    ///
    /// let seat = zk.create("/hall/seat-", b"").mode(CreateMode::EphemeralSequential).protected();
    /// let others = |zk: &zk_client::Client| zk.children("/hall").submit();
    /// let (seat, others) = seat.parents().followed_by(others).await?;
    /// assert_eq!(others.await?.0, [seat.name()]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As without it.
    pub fn followed_by<B>(
        self,
        behind: impl Fn(&Client) -> B,
    ) -> impl Future<Output = Result<(OwnedNode, B), WriteError>> {
        let Self { wish, begin } = self;
        let submit = move |client: &Client, wish: Wish<'_>| {
            (begin(Wish { client, ..wish }, Admission::Waiting), behind(client))
        };
        let cork = wish.client.cork();
        let (node, submitted) = submit(&cork, wish.clone());
        drop(cork);
        async move {
            let first = node.await.map(|node| (node, submitted));
            if !first.is_missing() || wish.above.is_none() {
                return first;
            }
            // Rare, and large.
            Box::pin(async move {
                let again = |client: &Client, _| {
                    let (node, submitted) = submit(client, wish.clone());
                    async move { Ok((node.await?, submitted)) }
                };
                Above::of([&wish]).unwrap_or_default().climb(wish.client, first, again).await
            })
            .await
        }
    }
}

impl<T: Send + 'static> IntoFuture for Create<'_, T> {
    type Output = Result<T, WriteError>;
    type IntoFuture = PendingCreate<T>;
    fn into_future(self) -> PendingCreate<T> {
        self.start(Admission::Waiting)
    }
}

/// Options of creates that are plain requests.
macro_rules! by_request {
    ($($made:ty),*) => {$(
        impl Create<'_, $made> {
            /// Bounds the wait for each reply: see [`Get::timeout`](crate::Get::timeout).
            pub const fn timeout(mut self, timeout: Duration) -> Self {
                self.wish.options.timeout = Some(timeout);
                self
            }

            /// Fails wherever it would have to wait for a connection or for room: see
            /// [`Get::fail_fast`](crate::Get::fail_fast).
            pub const fn fail_fast(mut self) -> Self {
                self.wish.options = self.wish.options.fail_fast();
                self
            }
        }
    )*};
}
by_request!(Created, Option<Created>);

/// A create in progress; resolves to the created node.
///
/// Dropping it does not undo the create. A [protected](Create::protected) one leaves no node nevertheless: the session
/// determines its outcome and deletes the node. Of one with [parents](Create::parents), the parents created so far
/// stay.
#[must_use = "what becomes of a create is only known here"]
pub struct PendingCreate<T>(State<T>);

enum State<T> {
    Request(Pending<T, WriteError>),
    /// Carried out by the session.
    Protected(Started, fn(OwnedNode) -> T),
    WithParents(Pin<Box<dyn Future<Output = Result<T, WriteError>> + Send>>),
}

// Everything pinned in it is boxed.
impl<T> Unpin for PendingCreate<T> {}

impl<T> Future for PendingCreate<T> {
    type Output = Result<T, WriteError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Request(pending) => Pin::new(pending).poll(cx),
            State::Protected(started, made) => started.poll_one(cx).map_ok(*made),
            State::WithParents(work) => work.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for PendingCreate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingCreate")
    }
}

impl<'a> Wish<'a> {
    fn create(self, admission: Admission) -> PendingCreate<Created> {
        PendingCreate(State::Request(self.request(OnLoss::Report, admission, read_created)))
    }

    fn create_or_exists(self, admission: Admission) -> PendingCreate<Option<Created>> {
        PendingCreate(State::Request(if self.mode.naming() == Naming::Sequential {
            let cause = Cause::InvalidArgument("no other node has a sequential node's name");
            Pending::failed(WriteError::not_sent(cause))
        } else {
            self.request(OnLoss::Resend, admission, |answer, context| {
                match read_created(answer, context) {
                    Ok(created) => Ok(Some(created)),
                    Err(Unread::Code(ErrorCode::NODE_EXISTS)) => Ok(None),
                    Err(unread) => Err(unread),
                }
            })
        }))
    }

    fn create_protected(self) -> PendingCreate<OwnedNode> {
        PendingCreate(State::Protected(Started::one(self), |node| node))
    }
}
