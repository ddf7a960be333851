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

/// Creates a node; resolves to what was made: [`Created`] unless it is told otherwise. See [`CreateMode`] for what can
/// be created.
///
/// What it is told can be told in any order, and combined.
///
/// Who may do what with the node is what the [connection](crate::ConnectOptions::default_acl) was made with, unless
/// [`acl`](Create::acl) says otherwise.
///
/// Servers before 3.5 do not know how to tell metadata with a create, refuse the first one of a session and drop the
/// connection: that create is then asked for anew in the way they know, behind whatever was submitted meanwhile.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Create<'a, T = Created> {
    pub(crate) wish: Wish<'a>,
    begin: Begin<T>,
}

/// A [`Create`] that is content with a node that is there already: see [`Create::or_exists`].
pub type CreateOrExists<'a> = Create<'a, Option<Created>>;

/// A create that survives a lost reply: see [`Create::protected`].
pub type CreateProtected<'a> = Create<'a, OwnedNode>;

/// How a create is begun that resolves to this.
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
        Create { wish: self.wish, begin: |wish, admission| wish.create_or_exists(admission) }
    }

    /// Lets the session see to it that there is exactly one node, whatever happens to replies, and no node
    /// once the returned [`OwnedNode`] is gone. Only for ephemeral modes.
    ///
    /// The last component of the path gets the prefix `_c_<uuid>-`, by which the node is found again.
    ///
    /// It goes on until it is known what became of it, or until the session ends, over lost connections and busy
    /// servers; [`CallOptions`](crate::CallOptions) have no say in that. When it is to be asked again it is behind whatever was submitted
    /// meanwhile. Who wants to wait no longer drops it, as `tokio::time::timeout` does: the session then sees to it
    /// that no node is left.
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

    /// The same, for a path whose last component nobody else has ever asked for and nobody will: it contains a
    /// [`unique_id`](Client::unique_id). For names in the manner of other implementations.
    ///
    /// With a name that is not unique, somebody else's node may be taken for the one created, and deleted.
    pub fn protected_by_its_name(self) -> CreateProtected<'a> {
        self.known_by(KnownBy::Name)
    }

    /// The same, for a name that others use as well, each in its turn or each with a number behind it: the node is
    /// found again by its data, which nobody else has ever written and nobody will, as it contains a
    /// [`unique_id`](Client::unique_id), and by its session. [`NodeExists`](crate::Rejection::NodeExists) is a node of
    /// somebody else's.
    ///
    /// Nobody else's node is deleted in place of this one, whatever has become of it meanwhile: before each delete
    /// the session looks whether the node is still the one, and deletes only the version that it has seen. A node
    /// without a number is written once in the transaction that creates it, so that it never has the version of a node
    /// that was merely created. What remains is a node of the same kind that takes the name between the look and the
    /// delete, after a third party has deleted this one; and with a number, the path as well.
    ///
    /// To find one with a number after a lost reply costs a read of each sibling of the name. Whoever writes it before it
    /// is found makes it a stranger's.
    pub fn protected_by_its_data(self) -> CreateProtected<'a> {
        self.known_by(KnownBy::Data)
    }

    fn known_by(mut self, known_by: KnownBy) -> CreateProtected<'a> {
        self.wish.known_by = known_by;
        Create { wish: self.wish, begin: |wish, _| wish.create_protected() }
    }
}

impl<'a, T> Create<'a, T> {
    /// What kind of node. Default: persistent.
    pub const fn mode(mut self, mode: CreateMode) -> Self {
        self.wish.mode = mode;
        self
    }

    /// Who may do what with the node.
    pub fn acl(mut self, acl: &AclList) -> Self {
        self.wish.acl = acl.clone();
        self
    }

    /// Also creates the nodes above it that are missing, those of the client's chroot included.
    ///
    /// If none is missing this is one create. If some are, all of them are asked for at once, behind each other and in
    /// front of the node: one more round trip, for which the create has to be awaited. They have no data, and the
    /// node's own access control list; they stay if the node cannot be created. If somebody keeps deleting them, the
    /// error is [`NoNode`](crate::Rejection::NoNode) in the end; if they are refused, it is that refusal.
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

    /// The same, and makes what is missing containers, which servers delete some time after their last child: as
    /// persistent nodes where servers do not know containers, before 3.5.1.
    pub const fn containers(mut self) -> Self {
        self.wish.above = Some(CreateMode::Container);
        self
    }

    /// Of what is missing above, creates only what is below this node: that one must be there, and neither it nor what
    /// is above it is created.
    pub const fn parents_below(self, path: &'a str) -> Self {
        let mut create = self.parents();
        create.wish.floor = Some(path);
        create
    }
}

impl<T: Send + 'static> Create<'_, T> {
    /// Submits the request now, behind everything that has been submitted before: it is on its way whatever
    /// becomes of what this returns. Where awaiting the builder would wait for room, this fails with
    /// [`QueueFull`](crate::Cause::QueueFull). That something is missing above the node is noticed when it is awaited.
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
    /// Has this submit something behind the create, in the same write: and once more with every try, if nodes
    /// [above](Create::parents) have to be created first. Resolves to the node and to what was submitted behind it.
    ///
    /// For questions whose answers say more because the node is there already.
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
    /// As without.
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

/// Creates that are requests like others can be told how to go about it.
macro_rules! by_request {
    ($($made:ty),*) => {$(
        impl Create<'_, $made> {
            /// Bounds how long each answer is waited for: see [`Get::timeout`](crate::Get::timeout).
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

/// A create under way; resolves to what was made.
///
/// Dropping it does not take the create back. One that is [protected](Create::protected) leaves no node all the same:
/// the session finds out what became of it and deletes what it made. Of one with [parents](Create::parents) those
/// stay that have been created so far.
#[must_use = "what becomes of a create is only known here"]
pub struct PendingCreate<T>(State<T>);

enum State<T> {
    Request(Pending<T, WriteError>),
    /// Carried by the session.
    Protected(Started, fn(OwnedNode) -> T),
    WithParents(Pin<Box<dyn Future<Output = Result<T, WriteError>> + Send>>),
}

// Nothing in it is pinned that is not boxed.
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
