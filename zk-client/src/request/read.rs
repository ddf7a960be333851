//! Reads of nodes, and of what servers know of the session.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use zk_proto::{
    AclList, ClientInfo, ErrorCode, List, Stat, Text, Zxid,
    request::{
        ExistsRequest, ExistsResponse, GetAclRequest, GetAclResponse, GetAllChildrenNumberRequest,
        GetAllChildrenNumberResponse, GetChildren2Request, GetChildren2Response, GetDataRequest,
        GetDataView, GetEphemeralsResponse, SyncRequest, SyncResponse, WhoAmIResponse,
    },
    session::{Answer, WatchBy},
};

use super::{
    answer::{Unread, body, detached},
    ask::Ask,
    builder::{Request, Watchable},
    client::Client,
};
use crate::error::ReadError;

impl Client {
    /// Reads a node's data: resolves to the data and the node's [`Stat`].
    ///
    /// The data of a node that was created with null reads as empty. A [watch](Request::watch) fires when the data is
    /// written or the node deleted; none is armed if there is no such node.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// let (data, stat) = zk.get("/config").await?;
    /// println!("{} bytes, written {} times", data.len(), stat.version);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn get<'a>(&'a self, path: &'a str) -> Request<'a, (Bytes, Stat), ReadError> {
        Request::watchable(
            self.target(),
            Ask::node(path, |frames, path, watch| frames.of(&GetDataRequest { path, watch })),
        )
    }

    /// Whether a node exists: resolves to its [`Stat`] if it does.
    ///
    /// A [watch](Request::watch) is armed either way; it fires when the node is created, written or deleted. Since 3.8.4
    /// and 3.9.2 a node that is there has to be readable: otherwise the error is [`NoAuth`](crate::Rejection::NoAuth).
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let (stat, mut changed) = zk.exists("/ready").watch().await?;
    /// if stat.is_none() {
    ///     changed.await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn exists<'a>(&'a self, path: &'a str) -> Request<'a, Option<Stat>, ReadError> {
        Request::watchable(
            self.target(),
            Ask::node(path, |frames, path, watch| frames.of(&ExistsRequest { path, watch })),
        )
    }

    /// The names (not paths) of a node's children, in no order, and the node's own [`Stat`].
    ///
    /// A [watch](Request::watch) fires when a child is created or deleted, or the node itself is deleted. Names can be
    /// left [`packed`](Request::packed).
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// let (mut names, parent) = zk.children("/jobs").await?;
    /// names.sort();
    /// assert_eq!(names.len() as i32, parent.num_children);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn children<'a>(
        &'a self,
        path: &'a str,
    ) -> Request<'a, (Vec<String>, Stat), ReadError> {
        Request::watchable(
            self.target(),
            Ask::node(path, |frames, path, watch| frames.of(&GetChildren2Request { path, watch })),
        )
    }

    /// A node's access control list and its [`Stat`], of which [`aversion`](crate::Stat::aversion) is the
    /// list's version. Servers mask digests if the session may not change the list.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::Error> {
    /// use zk_client::{Acl, AclList};
    ///
    /// let (_, stat) = zk.acl("/private").await?;
    /// let mine = AclList::from_iter([Acl::creator_all()]);
    /// zk.set_acl("/private", &mine).version(stat.aversion).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn acl<'a>(&'a self, path: &'a str) -> Request<'a, (AclList, Stat), ReadError> {
        Request::new(
            self.target(),
            Ask::node(path, |frames, path, _| frames.of(&GetAclRequest { path })),
            |answer| body(answer).map(|GetAclResponse { acl, stat }| (acl, stat)),
        )
    }

    /// The number of all nodes below a node. The server walks its whole tree for it. Since 3.6.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// println!("{} nodes", zk.descendant_count("/app").await?);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn descendant_count<'a>(&'a self, path: &'a str) -> Request<'a, u32, ReadError> {
        Request::new(
            self.target(),
            Ask::node(path, |frames, path, _| frames.of(&GetAllChildrenNumberRequest { path })),
            |answer| {
                let GetAllChildrenNumberResponse { total_number } = body(answer)?;
                Ok(u32::try_from(total_number).unwrap_or_default())
            },
        )
    }

    /// Waits until this server has caught up with what the leader had committed when asked. A read submitted after it,
    /// even before its reply, sees at least that state; with [`retry_throttled`](crate::CallOptions::retry_throttled) only
    /// one submitted after its reply, as a sync that a server has no time for is sent again behind the read.
    ///
    /// The leader answers by itself: one that was replaced and has not noticed may be behind, for up to `syncLimit` ticks
    /// (ZOOKEEPER-1675). It cannot write: behind a write, of any node, a read is linearizable.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// // As fresh as possible: both are sent at once, in this order.
    /// let synced = zk.sync("/config").submit();
    /// let (config, _) = zk.get("/config").await?;
    /// synced.await?;
    /// # drop(config);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn sync<'a>(&'a self, path: &'a str) -> Request<'a, (), ReadError> {
        Request::new(
            self.target(),
            Ask::node(path, |frames, path, _| frames.of(&SyncRequest { path })),
            |answer| body::<SyncResponse>(answer).map(drop),
        )
    }

    /// A [`sync`](Self::sync) that resolves to the transaction that the server has caught up with.
    pub(crate) const fn synced(&self) -> Request<'_, Zxid, ReadError> {
        Request::new(
            self.target(),
            Ask::node("/", |frames, path, _| frames.of(&SyncRequest { path })),
            |answer| body::<SyncResponse>(answer).map(|_| answer.zxid),
        )
    }

    /// The paths of this session's ephemeral nodes that begin with `prefix`, unordered. The prefix is not limited to
    /// whole components: `/a` matches `/ab` too. `/` matches all; a client with a chroot sees only those inside. Since
    /// 3.6.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// for path in zk.ephemerals("/locks/").await? {
    ///     println!("{path} goes with the session");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn ephemerals<'a>(&'a self, prefix: &'a str) -> Request<'a, Vec<String>, ReadError> {
        Request::in_context(self.target(), Ask::Ephemerals(prefix), |answer, context| {
            let GetEphemeralsResponse { ephemerals } = body(&answer)?;
            // A chroot is a prefix of its siblings' names too.
            let inside = ephemerals.strs().filter(|path| context.chroot.contains(path));
            Ok(inside.map(|path| context.chroot.relative(&path).to_owned()).collect())
        })
    }

    /// The identities of this session as its server knows them, one entry each, unordered. Since 3.7.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// for identity in zk.who_am_i().await? {
    ///     println!("{} {}", identity.auth_scheme, identity.user);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn who_am_i(&self) -> Request<'_, Vec<ClientInfo>, ReadError> {
        Request::new(self.target(), Ask::WhoAmI, |answer| {
            let WhoAmIResponse { client_info } = body(answer)?;
            Ok(client_info.iter().collect())
        })
    }
}

impl<'a> Request<'a, (Vec<String>, Stat), ReadError> {
    /// Leaves the names in the reply's memory, instead of making a string of each: for callers that list often, or
    /// many, and keep few.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// let (names, parent) = zk.children("/jobs").packed().await?;
    /// assert_eq!(names.len() as i32, parent.num_children);
    /// # Ok(())
    /// # }
    /// ```
    pub fn packed(self) -> Request<'a, (ChildNames, Stat), ReadError> {
        self.read_as(|answer| {
            let body_alone = detached(&answer.body, &answer.body);
            let answer = Answer { body: body_alone, ..*answer };
            let GetChildren2Response { children, stat } = body(&answer)?;
            Ok((ChildNames(children), stat))
        })
    }
}

impl Watchable for (Bytes, Stat) {
    const BY: WatchBy = WatchBy::Data;
    fn read(answer: &Answer) -> Result<Self, Unread> {
        let GetDataView { data, stat } = body(answer)?;
        Ok((detached(&answer.body, data.unwrap_or_default()), stat))
    }
}

impl Watchable for Option<Stat> {
    const BY: WatchBy = WatchBy::Exists;
    fn read(answer: &Answer) -> Result<Self, Unread> {
        match body::<ExistsResponse>(answer) {
            Ok(ExistsResponse { stat }) => Ok(Some(stat)),
            Err(Unread::Code(ErrorCode::NO_NODE)) => Ok(None),
            Err(unread) => Err(unread),
        }
    }
}

impl Watchable for (Vec<String>, Stat) {
    const BY: WatchBy = WatchBy::Children;
    fn read(answer: &Answer) -> Result<Self, Unread> {
        let GetChildren2Response { children, stat } = body(answer)?;
        Ok((children.strs().map(Into::into).collect(), stat))
    }
}

/// Names of children, unordered, in the reply's memory: see [`Request::packed`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// zk.create("/job-7", b"").await?;
/// let (names, _) = zk.children("/").packed().await?;
/// assert!(names.iter().any(|name| name == "job-7"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ChildNames(List<Text>);

impl ChildNames {
    /// Returns the names. One that is not UTF-8, which servers do not accept, is shown with replacement characters.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.strs()
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for ChildNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
