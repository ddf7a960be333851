//! Group membership.

use std::sync::Arc;

use zk_client::{
    Client, CreateMode, ReadError, Rejection, SessionId, Stat, Watch, Zxid, bytes::Bytes,
};

use crate::{
    builder::Builder,
    contender::read_all,
    error::AcquireError,
    follow::{Follow, Look, Source, watched},
    guard::{Guard, Held},
    layout::Layout,
    token::FencingToken,
    wait_queue::WaitQueue,
};

/// The marker in the names of the nodes of kazoo's `Party`.
const PARTY: &str = "__party__";

/// A group of members. Each is in it as long as its session lives, or until it leaves.
///
/// Members are ephemeral nodes under the path. By default every node there counts, as it does for Curator's
/// `GroupMember`; with [`Layout::Kazoo`] those of kazoo's `Party` do.
///
/// Joining costs one request, leaving one; listing the members a listing and a read for each member, in two round
/// trips. A member is in the group until the servers end its session: a crash shows only after its session timeout. A membership
/// that is [lost](Guard::lost) is gone: join again, with another client if the session has ended.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::Group;
///
/// let group = Group::new(&zk, "/groups/workers");
/// let membership = group.join(b"10.0.0.7:8080").await?;
/// let mut changes = group.follow();
/// loop {
///     let members = changes.next().await?;
///     println!("{} workers", members.len());
///     # break;
/// }
/// membership.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    wait_queue: Arc<WaitQueue>,
}

/// A member of a [`Group`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupMember {
    /// The name of its node.
    pub name: String,
    /// The data that it publishes.
    pub data: Bytes,
    /// The session that owns it.
    pub session: SessionId,
    /// When it joined: milliseconds since 1970 on the clock of the leader.
    pub since: i64,
    /// The transaction in which it joined.
    pub joined: Zxid,
}

impl Group {
    /// The group under `path`, with default settings. The path is created when the first member joins.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// The group under `path`, with settings: its [`acl`](Builder::acl), its [`layout`](Builder::layout), of which only
    /// [`Kazoo`](Layout::Kazoo) changes anything, and the [required](Builder::require_path) nodes. Those about queues have
    /// no effect, and [observers](Builder::observer) are told nothing.
    pub fn builder(client: &Client, path: &str) -> Builder<Self> {
        Builder::new(client, path, |wait_queue| Self { wait_queue: Arc::new(wait_queue) })
            .unreported()
    }

    /// Joins the group with data for others, such as an address, until the guard is [released](Guard::release) or
    /// dropped. Each call makes another member.
    ///
    /// One request; one more round trip if the path is missing. Dropping the future cancels the join: no node stays
    /// behind. To become a member again after the session has ended, use [`PersistentNode`](crate::PersistentNode).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn join(&self, data: &[u8]) -> Result<Guard, AcquireError> {
        let id = self.wait_queue.client.unique_id()?;
        let (name, mode) = match self.wait_queue.settings.layout {
            Layout::Kazoo => (id.replace('-', "") + PARTY, CreateMode::EphemeralSequential),
            _ => (id, CreateMode::Ephemeral),
        };
        let (node, ()) = self.wait_queue.plant(&name, mode, data, |_| ()).await?;
        let token = FencingToken::new(node.stat().czxid);
        let held = Held::new(self.wait_queue.client.clone(), node.path().to_owned(), token);
        Ok(Guard::of(held, node)?)
    }

    /// Lists the members, in the order of joining. One listing, and one read for each member, in two round trips.
    /// Members that leave in between are left out.
    ///
    /// # Errors
    /// [`ReadError`]. A path that is missing is an empty group.
    pub async fn members(&self) -> Result<Vec<GroupMember>, ReadError> {
        match self.wait_queue.client.children(&self.wait_queue.path).await {
            Ok((names, _)) => self.read(names).await,
            Err(ReadError::Rejected(Rejection::NoNode)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Follows the members, in the order of joining: those that come and go. Changes of the data of single members are not
    /// followed; they show with the next coming or going. Sends no request before the first [`next`](Follow::next).
    ///
    /// Each change costs one notification, one listing, and one read for each member.
    #[must_use]
    pub fn follow(&self) -> Follow<Vec<GroupMember>> {
        Follow::new(self.clone())
    }

    async fn read(&self, names: Vec<String>) -> Result<Vec<GroupMember>, ReadError> {
        let WaitQueue { client, path, settings, .. } = &*self.wait_queue;
        let counts = |name: &String| settings.layout != Layout::Kazoo || name.contains(PARTY);
        let names = names.into_iter().filter(counts);
        let there = read_all(client, path, names, |name| name).await?;
        let member = |(name, data, stat): (String, Bytes, Stat)| GroupMember {
            name,
            data,
            session: stat.ephemeral_owner,
            since: stat.ctime,
            joined: stat.czxid,
        };
        let mut members: Vec<_> = there.into_iter().map(member).collect();
        members.sort_by(|a, b| (a.joined, &a.name).cmp(&(b.joined, &b.name)));
        Ok(members)
    }

    /// Lists the group, with a watch for the next change.
    async fn list(&self) -> Result<(Vec<String>, Watch), ReadError> {
        let WaitQueue { client, path, .. } = &*self.wait_queue;
        let list = || client.children(path).watch().submit();
        let (listed, watch) = watched(client, path, list(), list).await?;
        Ok((listed.map(|(names, _)| names).unwrap_or_default(), watch))
    }
}

impl Source<Vec<GroupMember>> for Group {
    fn look(&self) -> Look<'_, Vec<GroupMember>> {
        Box::pin(async {
            let (names, watch) = self.list().await?;
            Ok((self.read(names).await?, Some(watch)))
        })
    }
}
