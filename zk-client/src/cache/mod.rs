//! Local copies of nodes, kept in step with the servers.
//!
//! | module | concern |
//! |---|---|
//! | `scope` | which nodes are copied |
//! | `contents`, `kept` | the copy, and the operations that change it; a node as it is kept |
//! | `events` | notifying listeners without waiting for them |
//! | `node` | a node of a copy, and the states of a cache |
//! | `copy_state` | a copy and its published state |
//! | `follow` | following one client, and handing over to the next |
//! | `work` | reading whatever may have changed until the copy is up to date |
//! | `ask`, `flight` | what is read next; the reads under way, and how many of them go into one request |
//! | `costly` | reads that cost their connections |
//! | `answers`, `watched` | what answers say of the nodes; the same of reads that arm watches |
//! | `source` | the source of change events: persistent watches, or one-shot watches instead |

mod answers;
mod ask;
mod contents;
mod copy_state;
mod costly;
mod events;
mod flight;
mod follow;
mod kept;
mod node;
mod scope;
mod source;
mod watched;
mod work;

use std::{
    fmt, mem,
    sync::{Arc, Mutex, atomic::AtomicU64},
};

use tokio::sync::watch;
use zk_proto::path::PathError;

use self::{
    contents::Contents,
    copy_state::{CopyState, NO_CONNECTION},
    follow::Follower,
    scope::Scope,
};
use crate::{
    error::{Cause, ReadError, SessionEnd},
    request::client::Client,
};

pub use self::{
    events::{CacheEvent, CacheEvents},
    node::{CacheState, CachedNode},
};

/// A local copy of a node, of its children, or of everything below it, kept in step with the servers.
///
/// The copy converges: whatever happens to connections, servers or readers, once the servers' nodes no longer change
/// and the session is connected, the copy becomes equal to them and reports [`CacheState::Following`]. Until then it
/// may lag, and may skip states that were overwritten; a single node never returns to an older state, and a node never
/// appears before its parent. The contents at one moment need not have existed on the servers at one moment.
///
/// The cache reads only what servers report as changed, and everything when they cannot report what changed
/// ([`Resync`](crate::Resync)).
///
/// Since 3.8.4 and 3.9.2 servers withhold the events of a node from sessions that may not read it, and no watch fires
/// when an access control list changes: a cache that is no longer allowed to read a node keeps its last state and stays
/// [`Following`](CacheState::Following) until it reads everything again, such as after a reconnect.
///
/// Since 3.6, one watch covers all nodes. Everything is read by requests for up to 32 nodes each, one read of each node and
/// one listing of each that has children; a change is read by one request. Without data, nodes are read by single requests.
/// Servers before 3.6 have no persistent watches; there a node costs two watches and two requests, and the first cache of
/// a session, unless another watch was refused before, costs the connection: see [`Client::watch`].
///
/// A node takes the memory of its path, data and metadata, and about 120 bytes. What is taken from the cache is a copy,
/// unless it has more than 4 KiB: the data of such nodes are shared.
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
/// When the session is over, the copy keeps its last contents, unless [configured](CacheBuilder::clear_at_end) to be
/// cleared. Since no client ever gets another session, the copy is updated again only if it is [moved](Cache::move_to)
/// to another client: the differences are then reported as if they had just happened.
///
/// Its reads wait for as long as the session lives, regardless of the client's [timeouts](crate::CallOptions).
///
/// Clones share the copy. When the last clone and all its [`CacheEvents`] have been dropped, the cache is removed, and its
/// watch with it; servers before 3.6 keep theirs, one or two for each node, until they fire or the connection is lost. Until
/// then it keeps the session alive.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    copy_state: CopyState,
    /// Hands the copy another client.
    clients: watch::Sender<Client>,
}

/// Configures a [`Cache`].
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

/// Default number of events kept for a slow listener.
const EVENTS_MAX: usize = 4096;

impl Cache {
    /// Builds a copy of one node, which need not exist.
    pub const fn node<'a>(client: &'a Client, path: &'a str) -> CacheBuilder<'a> {
        CacheBuilder::new(client, path, Scope::Node)
    }

    /// Builds a copy of a node and its children.
    pub const fn children<'a>(client: &'a Client, path: &'a str) -> CacheBuilder<'a> {
        CacheBuilder::new(client, path, Scope::Children)
    }

    /// Builds a copy of a node and everything below it.
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

    /// Returns a node, if it is in the copy.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<CachedNode> {
        self.0.copy_state.contents.get(path)
    }

    /// Returns all nodes of the copy at this moment, ordered by path.
    #[must_use]
    pub fn nodes(&self) -> Vec<CachedNode> {
        self.0.copy_state.contents.nodes()
    }

    /// Returns the children of a node at this moment, ordered by name.
    #[must_use]
    pub fn children_of(&self, path: &str) -> Vec<CachedNode> {
        self.0.copy_state.contents.children(path)
    }

    /// Returns the changes from now on, until the session ends.
    pub fn events(&self) -> CacheEvents {
        self.0.copy_state.contents.listen(self.0.clone())
    }

    /// Returns all current nodes, as if just [created](CacheEvent::Created), followed by the changes from then on: for
    /// keeping another structure in step with the cache.
    pub fn events_from_the_start(&self) -> CacheEvents {
        self.0.copy_state.contents.listen_from_the_start(self.0.clone())
    }

    /// Returns the cache's state.
    #[must_use]
    pub fn state(&self) -> CacheState {
        self.0.copy_state.state.borrow().clone()
    }

    /// Waits until the cache is [`Following`](CacheState::Following); returns at once if it is.
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// [`ReadError`] if a server refuses to let the nodes be read, or if the session is over.
    pub async fn ready(&self) -> Result<(), ReadError> {
        let mut state = self.0.copy_state.state.subscribe();
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

    /// Follows another client, whose nodes must be the same: after the previous session has ended, or in place of it.
    /// The differences are reported as changes, to existing [listeners](Self::events) too. What the servers have counts,
    /// also where it is older than the copy: they may have been restored from a backup. A server that lags catches up first,
    /// by a `sync`, unless it serves only readers. From now on the copy is kept by a task on that client's runtime; the
    /// runtime of the one before may end.
    pub fn move_to(&self, client: &Client) {
        let Inner { copy_state, clients } = &*self.0;
        let mut has_follower = copy_state.has_follower();
        let before = clients.send_replace(client.patient());
        let is_followed = mem::replace(&mut *has_follower, true);
        // What the other client has read shows nothing any more. The next follower, which may be quick, begins behind this.
        copy_state.is_behind();
        copy_state.contents.goes_on();
        drop(has_follower);
        if !is_followed {
            Follower::spawn(copy_state);
        }
        drop(before);
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

    /// Leaves the data out, for applications that need only the nodes' paths and metadata.
    pub const fn without_data(mut self) -> Self {
        self.with_data = false;
        self
    }

    /// Empties the copy when the session is over, for applications that prefer no data to stale data. Each node is
    /// reported as deleted. Default: the last contents stay.
    pub const fn clear_at_end(mut self) -> Self {
        self.clear_at_end = true;
        self
    }

    /// Sets how many events are kept for a busy listener; one more replaces all of them by [`CacheEvent::Lagged`].
    /// Default 4096. The cache's own queue of changes to be read has another limit,
    /// [`watch_items_max`](crate::ConnectOptions::watch_items_max).
    pub const fn events_max(mut self, events: usize) -> Self {
        self.events_max = events;
        self
    }

    /// Starts reading in the background: see [`Cache::ready`].
    ///
    /// # Errors
    /// [`PathError`] if the path is invalid.
    pub fn start(self) -> Result<Cache, PathError> {
        let Self { client, path, scope, with_data, clear_at_end, events_max } = self;
        let root: Arc<str> = path.parse::<zk_proto::path::ZkPath>()?.as_str().into();
        let (clients, client) = watch::channel(client.patient());
        let copy_state = CopyState {
            contents: Arc::new(Contents::new(events_max)),
            root,
            scope,
            with_data,
            clear_at_end,
            state: Arc::new(watch::Sender::new(CacheState::Loading)),
            clients: client,
            has_follower: Arc::new(Mutex::new(true)),
            connection: Arc::new(AtomicU64::new(NO_CONNECTION)),
        };
        Follower::spawn(&copy_state);
        Ok(Cache(Arc::new(Inner { copy_state, clients })))
    }
}
