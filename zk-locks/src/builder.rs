//! Settings of recipes.

use std::{fmt, sync::Arc, time::Duration};

use zk_client::{AclList, Client};

use crate::{
    identity,
    layout::{Filter, Layout, Strangers},
    line::{Downgrades, Line, Required, Settings},
    observe::{LockObserver, Observers},
};

/// How long a waiter trusts its watch without looking again: defence in depth against lost notifications,
/// long enough to cost nothing.
const RECHECK: Duration = Duration::from_secs(45);

/// When paths are made anew: far from the end of the numbers, so that there is time for it.
const ROTATE_AT: i32 = 1 << 30;

/// Settings of a recipe: get one from its `builder`, and [`build`](Builder::build) it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use std::{sync::Arc, time::Duration};
/// use zk_locks::{Lock, Metrics};
///
/// let metrics = Arc::new(Metrics::default());
/// let lock = Lock::builder(&zk, "/locks/report")
///     .description("report of the day")
///     .max_waiters(100)
///     .max_hold(Duration::from_secs(600))
///     .observer(metrics.clone())
///     .build();
/// lock.acquire().await?.release().await?;
/// assert_eq!(metrics.grants(), 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "call `build`"]
pub struct Builder<R> {
    client: Client,
    path: String,
    /// Without one it is made up at last.
    description: Option<String>,
    pub(crate) settings: Settings,
    over: fn(Line) -> R,
}

impl<R> Builder<R> {
    pub(crate) fn new(client: &Client, path: &str, over: fn(Line) -> R) -> Self {
        Self {
            // Whatever its requests are waited for: that is bounded as a whole.
            client: client.patient(),
            path: path.to_owned(),
            description: None,
            settings: Settings {
                description: String::new(),
                acl: client.default_acl().clone(),
                recheck: Some(RECHECK),
                layout: Layout::default(),
                filter: Filter::default(),
                look_ahead: false,
                max_waiters: None,
                rotate_at: ROTATE_AT,
                max_hold: None,
                release_after: None,
                lock_delay: None,
                required: Required::Nothing,
                observers: Observers::default(),
                herd: false,
                downgrades: Downgrades::default(),
            },
            over,
        }
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        self.settings.filter.named = Some(name.to_owned());
        self
    }

    /// Who is asking, for people who look at the queue: a few words of text. Default: host and process.
    pub fn description(mut self, text: &str) -> Self {
        self.description = Some(text.to_owned());
        self
    }

    /// Who may do what with the lock's nodes, and with the levels of its path where they are missing. All
    /// contenders need to read each other's nodes, and to create and delete under the path. Default:
    /// what the client has been [told](zk_client::ConnectOptions::default_acl).
    pub fn acl(mut self, acl: &AclList) -> Self {
        self.settings.acl = acl.clone();
        self
    }

    /// How long a waiter trusts its watch at most without looking again; `None` for ever. Default 45 s.
    /// Only a bug would make it matter.
    pub const fn recheck(mut self, pause: Option<Duration>) -> Self {
        self.settings.recheck = pause;
        self
    }

    /// Whose names the nodes have. Default: Curator's.
    pub const fn layout(mut self, layout: Layout) -> Self {
        self.settings.layout = layout;
        self
    }

    /// What becomes of nodes under the path that belong to no known implementation. Default: those with a
    /// sequence number are waited for.
    pub const fn strangers(mut self, strangers: Strangers) -> Self {
        self.settings.filter.strangers = strangers;
        self
    }

    /// Whether a waiter also watches the one behind whom its predecessor waits, and looks at the queue when
    /// that one goes: while the predecessor holds the lock, so that its release is the grant, without a
    /// listing in between. Costs one more notification per release. Default: no.
    pub const fn look_ahead(mut self, look_ahead: bool) -> Self {
        self.settings.look_ahead = look_ahead;
        self
    }

    /// How many may be in front at most when a new attempt joins, the holder included; it fails with
    /// [`QueueFull`](crate::AcquireError::QueueFull) otherwise. Default: any number.
    pub const fn max_waiters(mut self, most: usize) -> Self {
        self.settings.max_waiters = Some(most);
        self
    }

    /// The sequence number from which on the path is made anew: whoever gets such a number leaves again, waits
    /// until the path is empty, deletes it, and joins the queue of a new one, whose numbers begin at 0. Default:
    /// 2^30. The numbers end at 2^31 - 1, after 25 days of a thousand acquires a second on a path that is never
    /// idle for long; others do not know how to wait for that.
    ///
    /// If the path does not get empty within half a minute, because others keep using it, the queue is joined as
    /// it is, until there are no more numbers: [`SequenceExhausted`](crate::AcquireError::SequenceExhausted).
    pub const fn rotate_at(mut self, sequence: i32) -> Self {
        self.settings.rotate_at = sequence;
        self
    }

    /// The path must be there: neither it nor what is above it is ever created by this recipe. While it is missing,
    /// attempts fail with [`PathMissing`](crate::AcquireError::PathMissing) and change nothing, at the price of the
    /// request that found out. For locks whose path belongs to an object that must not come back through its lock
    /// after it was deleted.
    ///
    /// Let the path be a persistent node: servers delete containers that have been empty for a while. For recipes
    /// that are a single node, [`SimpleLock`](crate::SimpleLock) and [`Barrier`](crate::Barrier), it is the node
    /// above that must be there. Nodes of its own below the path, as a [`Semaphore`](crate::Semaphore) has them, a
    /// recipe still creates. The path is not [made anew](Builder::rotate_at) when its numbers end, since that
    /// would delete it. Default: what is missing is created.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// use zk_locks::{AcquireError, Lock};
    ///
    /// // The object, and a path for its lock.
    /// zk.create("/orders/7/lock", b"").parents().await?;
    /// let lock = Lock::builder(&zk, "/orders/7/lock").require_path().build();
    /// lock.acquire().await?.release().await?;
    ///
    /// zk.delete_recursive("/orders/7").await?;
    /// let refused = lock.acquire().await.unwrap_err();
    /// assert_eq!(refused, AcquireError::PathMissing { path: "/orders/7/lock".to_owned() });
    /// assert!(zk.exists("/orders/7").await?.is_none(), "it has not come back");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn require_path(mut self) -> Self {
        self.settings.required = Required::Path;
        self
    }

    /// As [`require_path`](Builder::require_path), for the node above the path: the path itself is created where it
    /// is missing. For an object `/orders/7` whose lock is `/orders/7/lock`.
    pub const fn require_parent(mut self) -> Self {
        self.settings.required = Required::Parent;
        self
    }

    /// How long a lock should be held at most: whoever holds it for longer is told of, as a `tracing` warning
    /// and to the [observer](Builder::observer). Nothing is taken away from it: that is
    /// [`release_after`](Builder::release_after). Costs a task for each guard.
    pub const fn max_hold(mut self, limit: Duration) -> Self {
        self.settings.max_hold = Some(limit);
        self
    }

    /// How long a lock is held at most: then it is taken from its holder and given to the next one. That is told as with
    /// [`max_hold`](Builder::max_hold), and the guard is lost, with [`Lost::HeldTooLong`](crate::Lost::HeldTooLong).
    ///
    /// First the holder hears of it: [`scope`](crate::Guard::scope) drops its work, [`lost`](crate::Guard::lost) and
    /// the [token](crate::Guard::cancellation_token) tell. The node is deleted when all work in scopes has been dropped, or a
    /// second later: work that does not come to an `await` by then goes on beside the next holder's, as does work outside of
    /// scopes that does not listen. Against that only fencing tokens help. While servers are out of reach the lock
    /// counts as lost all the same, and is given away when they are back, or with the session.
    ///
    /// For what is held through a guard; a [`SimpleLock`](crate::SimpleLock), a [`Group`](crate::Group) and a
    /// [`DurableLock`](crate::DurableLock) have no such limit. A [`CohortLock`](crate::CohortLock) counts for each of its
    /// holders. Costs a task for each guard, and one request for each lock that is taken away. Default: never.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// use std::{future::pending, time::Duration};
    /// use zk_locks::{Lock, Lost};
    ///
    /// let lock = Lock::builder(&zk, "/locks/report").release_after(Duration::from_millis(20)).build();
    /// let guard = lock.acquire().await?;
    /// assert_eq!(guard.scope(pending::<()>()).await, Err(Lost::HeldTooLong));
    /// lock.acquire().await?; // although the guard is still there
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn release_after(mut self, limit: Duration) -> Self {
        self.settings.release_after = Some(limit);
        self
    }

    /// Who hears of grants, releases and losses: [`Metrics`](crate::Metrics), for example.
    pub fn observer(mut self, observer: Arc<impl LockObserver>) -> Self {
        self.settings.observers = Observers(Some(observer));
        self
    }

    /// The finished recipe. Nothing happens on the servers yet.
    #[must_use]
    pub fn build(self) -> R {
        let Self { client, path, description, mut settings, over } = self;
        settings.description = description.unwrap_or_else(identity::describe);
        settings.filter.names = settings.layout.names();
        settings.observers.tell(|observer| observer.attached(&client.session()));
        over(Line::new(client, path, settings))
    }
}

impl<R> Clone for Builder<R> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            path: self.path.clone(),
            description: self.description.clone(),
            settings: self.settings.clone(),
            over: self.over,
        }
    }
}

impl<R> fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("path", &self.path).finish_non_exhaustive()
    }
}
