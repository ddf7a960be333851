//! Creating a node.

use std::{
    future::{Future, IntoFuture},
    time::Duration,
};

use zk_proto::{AclList, OpCode, path::Naming, session::OnLoss};

use super::{
    mode::CreateMode,
    parents::{Above, Outcome as _},
    started::{only, start},
    wish::{Created, OwnedWish, Wish, read_created, read_existing},
};
use crate::{
    carry::attempt::KnownBy,
    error::{CallError as _, Cause, WriteError},
    request::{call_options::Admission, client::Client, pending::Pending, span::RequestSpan},
};

impl Client {
    /// Creates a node; its kind is a [`CreateMode`].
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::WriteError> {
    /// use zk_client::CreateMode;
    ///
    /// let created = zk.create("/jobs/job-", b"work").mode(CreateMode::PersistentSequential).await?;
    /// println!("{} by transaction {}", created.path, created.stat.czxid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create<'a>(&'a self, path: &'a str, data: &'a [u8]) -> Create<'a> {
        Create { wish: Wish::new(self, path, data) }
    }
}

/// Creates a node; resolves to the [`Created`] node. See [`CreateMode`] for the kinds of nodes.
///
/// The options can be set in any order, and combined.
///
/// The node gets the [connection's](crate::ConnectOptions::default_acl) access control list, unless
/// [`acl`](Create::acl) is set.
///
/// Servers before 3.5 cannot return metadata with a create, refuse the first one of a session and drop the connection:
/// the client then sends that create again in the older form, after whatever was submitted in the meantime. One that was
/// made for a newer server, and was still to be sent when the session went to an older one, fails with
/// [`Unimplemented`](crate::Rejection::Unimplemented); it was not carried out there.
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Create<'a> {
    pub(super) wish: Wish<'a>,
}

impl<'a> Create<'a> {
    /// Sets the kind of node. Default: persistent.
    pub const fn mode(mut self, mode: CreateMode) -> Self {
        self.wish.mode = mode;
        self
    }

    /// Sets the node's access control list.
    pub fn acl(mut self, acl: &AclList) -> Self {
        self.wish.acl = Some(Box::new(acl.clone()));
        self
    }

    /// Also creates missing parents, those of the client's chroot included.
    ///
    /// If none is missing, this is one create. Otherwise all of them are requested at once, in order and before the
    /// node: one more round trip, for which the create has to be awaited. They have no data, and the node's own access
    /// control list; they stay if the node cannot be created. If another client keeps deleting them, the error is
    /// [`NoNode`](crate::Rejection::NoNode) in the end; if they are refused, it is that refusal. A create that
    /// [fails fast](Self::fail_fast) needs room for all of them at once.
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
    /// persistent nodes where servers do not support containers, before 3.5.1: the first refusal in a session costs the
    /// connection.
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

    /// Succeeds if the node exists already: it has [`existed`](Created::existed) then. In return it is never in doubt
    /// while the session lives, unless it fails fast or times out, or is turned away when it is sent again, by a server that is
    /// busy or takes no writes: if the reply is lost, the create is sent again, and may then find the node that the first one
    /// has made; a refusal is of the last time. Not for sequential modes, and not for protected creates.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::WriteError> {
    /// if zk.create("/jobs", b"").or_exists().await?.existed {
    ///     println!("another client has created it before");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn or_exists(mut self) -> Self {
        self.wish.or_exists = true;
        self
    }

    /// Makes the session ensure that there is exactly one node, even if replies are lost, and no node once its
    /// [owner](Created::owned) has been dropped. Only for ephemeral modes.
    ///
    /// The last component of the path gets the prefix `_c_<uuid>-`, by which the node is found again.
    ///
    /// The create continues until its outcome is known or the session ends, over lost connections and busy servers: it
    /// does not fail fast. A retry comes after whatever was submitted in the meantime. After a
    /// [timeout](Self::timeout), or when the future is dropped, the session ensures that no node is left.
    ///
    /// It is in doubt, and may leave a node for as long as the session lives, if a reply was lost and servers refuse to list the
    /// siblings or all answers are unreadable; or if servers have ended eight connections over it, as over one that is longer than
    /// they accept. It is in doubt as well if the session ends before its fate is known: the node goes with the session then.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::CreateMode;
    ///
    /// let seat = zk.create("/hall/seat-", b"").mode(CreateMode::EphemeralSequential);
    /// let seat = seat.protected().containers().await?.owned.expect("a protected node has an owner");
    /// assert_eq!(seat.sequence(), Some(0));
    /// # Ok(())
    /// # }
    /// ```
    pub const fn protected(self) -> Self {
        self.known_by(KnownBy::Prefix)
    }

    /// As [`protected`](Self::protected), for a path whose last component no other client has used or ever will: it
    /// contains a [`unique_id`](Client::unique_id). For the naming schemes of other implementations.
    ///
    /// With a name that is not unique, another client's node may be taken for the one created, and deleted.
    pub const fn protected_by_its_name(self) -> Self {
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
    pub const fn protected_by_its_data(self) -> Self {
        self.known_by(KnownBy::Data)
    }

    const fn known_by(mut self, known_by: KnownBy) -> Self {
        self.wish.known_by = Some(known_by);
        self
    }

    /// Bounds the wait for each reply: see [`Request::timeout`](crate::Request::timeout). A protected create that has
    /// not ended by then is in doubt.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.wish.options.timeout = Some(timeout);
        self
    }

    /// Fails wherever it would have to wait for a connection or for room: see
    /// [`Request::fail_fast`](crate::Request::fail_fast). Protected creates wait nevertheless.
    pub const fn fail_fast(mut self) -> Self {
        self.wish.options = self.wish.options.fail_fast();
        self
    }

    /// Submits the request now, behind all earlier submissions: it is sent even if the returned future is dropped.
    /// Where awaiting it would wait for room, this fails with [`QueueFull`](crate::Cause::QueueFull). Missing parents
    /// are noticed when it is awaited.
    pub fn submit(self) -> Pending<Created, WriteError> {
        self.start(Admission::Now)
    }

    fn start(self, admission: Admission) -> Pending<Created, WriteError> {
        let Self { wish } = &self;
        let Some(above) = Above::of([wish]) else { return begin(wish, admission) };
        let owned = OwnedWish::of(wish);
        let first = begin(wish, admission);
        Pending::working(Box::pin(async move {
            let again = |client: &Client, _| begin(&owned.wish(client), Admission::Waiting);
            (above.climb(&owned.client, first.await, again).await, None)
        }))
    }

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
    /// assert_eq!(others.await?.0, [zk_client::path::name(&seat.path)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As without it.
    pub fn followed_by<B>(
        self,
        behind: impl Fn(&Client) -> B,
    ) -> impl Future<Output = Result<(Created, B), WriteError>> {
        let Self { wish } = self;
        let submit = move |client: &Client, wish: Wish<'_>| {
            (begin(&Wish { client, ..wish }, Admission::Waiting), behind(client))
        };
        // In one write; or with all that the client holds back already.
        let cork = wish.client.handle.held.is_none().then(|| wish.client.cork());
        let (node, submitted) = submit(cork.as_deref().unwrap_or(wish.client), wish.clone());
        drop(cork);
        async move {
            let first = node.await.map(|node| (node, submitted));
            if first.missing().is_none() || wish.above.is_none() {
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

impl IntoFuture for Create<'_> {
    type Output = Result<Created, WriteError>;
    type IntoFuture = Pending<Created, WriteError>;
    fn into_future(self) -> Self::IntoFuture {
        self.start(Admission::Waiting)
    }
}

/// Starts a create whose parents exist.
fn begin(wish: &Wish<'_>, admission: Admission) -> Pending<Created, WriteError> {
    let refused = |why| Pending::failed(WriteError::not_sent(Cause::InvalidArgument(why)));
    match (wish.known_by, wish.or_exists) {
        (Some(_), false) => {
            let target = wish.target();
            let span = RequestSpan::begin(target.handle, OpCode::CREATE2, Some(wish.path));
            let started = start(target.handle, [wish.clone()].into_iter(), None, &[]);
            Pending::creating(target, started, only).in_span(span)
        }
        (Some(_), true) => refused("a protected node cannot have existed"),
        (None, true) if wish.mode.naming() == Naming::Sequential => {
            refused("no other node has a sequential node's name")
        }
        (None, true) => wish.request(OnLoss::Resend, admission, read_existing),
        (None, false) => wish.request(OnLoss::Report, admission, read_created),
    }
}
