//! Local copies of nodes that follow the servers'.
//!
//! | module | concern |
//! |---|---|
//! | `scope` | which nodes are copied |
//! | `contents` | the copy, and what changes it |
//! | `events` | telling whoever listens, without waiting for anybody |
//! | `node` | what a copy holds, and where it stands |
//! | `standing` | one copy, and what is known of its standing |
//! | `follow` | following one client after the other |
//! | `work` | reading what may have changed, until it has not |
//! | `source` | where news of changes come from: persistent watches, or others instead |

mod contents;
mod events;
mod follow;
mod node;
mod scope;
mod source;
mod standing;
mod work;

use std::{
    fmt,
    sync::{Arc, atomic::AtomicU64},
};

use tokio::sync::watch;
use zk_proto::path::PathError;

use self::{
    contents::Contents,
    follow::Follower,
    scope::Scope,
    standing::{NO_CONNECTION, Standing},
};
use crate::{
    error::{Cause, ReadError, SessionEnd},
    request::client::Client,
};

pub use self::{
    events::{CacheEvent, CacheEvents},
    node::{CacheState, CachedNode},
};

/// A local copy of a node, of a node's children, or of everything below a node, that follows the servers'.
///
/// It converges: whatever happens to connections, servers or readers, once the servers' nodes stay as they are and the
/// session is connected, the copy becomes equal to them, and says so ([`CacheState::Following`]). In between it may lag,
/// and may skip states that were overwritten; single nodes never go back to an older state, and a node that is created
/// is never there before its parent. What it shows at one moment need not have been there at one moment.
///
/// Nothing is read twice without a reason: the cache reads what servers say has changed, and everything when
/// they cannot say what ([`Resync`](crate::Resync)). On servers before 3.6, which have no persistent watches, it makes
/// do with two watches for each node.
///
/// ```no_run
/// # async fn example(zk: zk_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use zk_client::{Cache, CacheEvent};
///
/// let members = Cache::children(&zk, "/members").start()?;
/// let mut changes = members.events();
/// members.ready().await?;
/// println!("{} members", members.nodes().len());
/// while let Some(change) = changes.next().await {
///     match change {
///         CacheEvent::Created(node) => println!("{} came", node.path),
///         CacheEvent::Deleted(node) => println!("{} went", node.path),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// When the session is over, the copy stays as it was last, unless it is [told](CacheBuilder::clear_at_end) to be
/// cleared. Since no client ever gets another session, it goes on only if it is [moved](Cache::move_to) to another
/// client: then the difference is told as if it had happened just now.
///
/// What it reads waits for as long as the session lives, whatever [timeouts](crate::CallOptions) requests of its client have.
///
/// Clones are of the same copy. When the last one and all its [`CacheEvents`] have gone, the cache does too, and its
/// watches. It keeps the session alive until then.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    contents: Arc<Contents>,
    state: Arc<watch::Sender<CacheState>>,
    /// Where the follower is told to go on.
    clients: watch::Sender<Client>,
}

/// Describes a [`Cache`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is started"]
pub struct CacheBuilder<'a> {
    client: &'a Client,
    path: &'a str,
    scope: Scope,
    with_data: bool,
    clear_at_end: bool,
    events_max: usize,
}

/// Events that are kept for a slow listener, by default.
const EVENTS_MAX: usize = 4096;

impl Cache {
    /// A copy of one node, which need not exist.
    pub const fn node<'a>(client: &'a Client, path: &'a str) -> CacheBuilder<'a> {
        CacheBuilder::new(client, path, Scope::Node)
    }

    /// A copy of a node and its children.
    pub const fn children<'a>(client: &'a Client, path: &'a str) -> CacheBuilder<'a> {
        CacheBuilder::new(client, path, Scope::Children)
    }

    /// A copy of a node and everything below it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::Cache;
    ///
    /// zk.create("/app/settings/color", b"red").parents().await?;
    /// let settings = Cache::subtree(&zk, "/app/settings").events_max(100).start()?;
    /// settings.ready().await?;
    /// assert_eq!(settings.get("/app/settings/color").ok_or("it is there")?.data, "red");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn subtree<'a>(client: &'a Client, path: &'a str) -> CacheBuilder<'a> {
        CacheBuilder::new(client, path, Scope::Subtree)
    }

    /// A node, if it is in the copy.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<CachedNode> {
        self.0.contents.get(path)
    }

    /// All nodes of the copy at this moment, in the order of their paths.
    #[must_use]
    pub fn nodes(&self) -> Vec<CachedNode> {
        self.0.contents.nodes()
    }

    /// The children of a node at this moment, in the order of their names.
    #[must_use]
    pub fn children_of(&self, path: &str) -> Vec<CachedNode> {
        self.0.contents.children(path)
    }

    /// What changes from now on, until the session ends.
    pub fn events(&self) -> CacheEvents {
        self.0.contents.listen(self.0.clone())
    }

    /// Everything there is now, as if it had just been [created](CacheEvent::Created), and what changes from
    /// then on: for whoever keeps something of their own in step with it.
    pub fn events_from_the_start(&self) -> CacheEvents {
        self.0.contents.listen_from_the_start(self.0.clone())
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> CacheState {
        self.0.state.borrow().clone()
    }

    /// Waits until everything has been read and nothing is known to be missing; returns at once if that is so.
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// [`ReadError`] if a server refuses to let the nodes be read, or if the session is over.
    pub async fn ready(&self) -> Result<(), ReadError> {
        let mut state = self.0.state.subscribe();
        let settled =
            state.wait_for(|now| !matches!(now, CacheState::Loading | CacheState::Behind)).await;
        let ended = |end| Err(ReadError::Unavailable(Cause::SessionEnded(end)));
        match settled.map(|state| state.clone()) {
            Ok(CacheState::Refused(error)) => Err(error),
            Ok(CacheState::Ended(end)) => ended(end),
            Ok(_) => Ok(()),
            Err(_) => ended(SessionEnd::Closed),
        }
    }

    /// Goes on with another client, whose nodes are to be the same: after the session of the one before has ended, or
    /// instead of it. What is different there is told as changes, to those who [listen](Self::events) already too.
    pub fn move_to(&self, client: &Client) {
        let Inner { contents, state, clients } = &*self.0;
        clients.send_replace(client.patient());
        state.send_if_modified(|state| {
            let ended = matches!(state, CacheState::Ended(_));
            if ended {
                *state = CacheState::Behind;
            }
            ended
        });
        contents.goes_on();
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl<'a> CacheBuilder<'a> {
    const fn new(client: &'a Client, path: &'a str, scope: Scope) -> Self {
        Self { client, path, scope, with_data: true, clear_at_end: false, events_max: EVENTS_MAX }
    }

    /// Leaves the data out: for those who only want to know which nodes there are, and their metadata.
    pub const fn without_data(mut self) -> Self {
        self.with_data = false;
        self
    }

    /// Empties the copy when the session is over, for those who would rather know nothing than something old. Each
    /// node is told as deleted. Default: it stays as it was last.
    pub const fn clear_at_end(mut self) -> Self {
        self.clear_at_end = true;
        self
    }

    /// How many events are kept for each listener that is busy; one more, and all of them are replaced by
    /// [`CacheEvent::Lagged`]. Default 4096.
    pub const fn events_max(mut self, events: usize) -> Self {
        self.events_max = events;
        self
    }

    /// Starts to read, in the background: see [`Cache::ready`].
    ///
    /// # Errors
    /// [`PathError`] if the path is not a valid one.
    pub fn start(self) -> Result<Cache, PathError> {
        let Self { client, path, scope, with_data, clear_at_end, events_max } = self;
        let root: Arc<str> = path.parse::<zk_proto::path::ZkPath>()?.as_str().into();
        let contents = Arc::new(Contents::new(events_max));
        let state = Arc::new(watch::Sender::new(CacheState::Loading));
        let (clients, latest) = watch::channel(client.patient());
        let standing = Standing {
            contents: contents.clone(),
            root,
            scope,
            with_data,
            state: state.clone(),
            connection: AtomicU64::new(NO_CONNECTION),
        };
        let follower = Follower { standing, clear_at_end, clients: latest };
        client.spawn(follower.run());
        Ok(Cache(Arc::new(Inner { contents, state, clients })))
    }
}
