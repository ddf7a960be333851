//! Settings of recipes.

#[cfg(feature = "metrics")]
use std::borrow::Cow;
use std::{fmt, sync::Arc, time::Duration};

use zk_client::{AclList, Client};

#[cfg(feature = "metrics")]
use crate::metrics::UNNAMED;
use crate::{
    identity,
    layout::{Filter, ForeignNodes, Layout},
    observe::{LockObserver, Observers},
    wait_queue::{Downgrades, Required, Settings, Stay, WaitQueue},
};

/// How long a waiter trusts its watch before it lists the queue again: defence in depth against lost notifications,
/// long enough to cost nothing.
const RECHECK: Duration = Duration::from_secs(45);

/// The sequence number at which paths are recreated: far enough from the end to leave time for it.
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
    /// If `None`, `build` makes one up.
    description: Option<String>,
    pub(crate) settings: Settings,
    #[cfg(feature = "metrics")]
    metrics_name: Cow<'static, str>,
    /// Whether the recipe ever reports anything.
    reports: bool,
    over: fn(WaitQueue) -> R,
}

impl<R> Builder<R> {
    pub(crate) fn new(client: &Client, path: &str, over: fn(WaitQueue) -> R) -> Self {
        Self {
            // The recipe bounds the wait as a whole, whatever timeout single requests have.
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
                stay: Stay::default(),
            },
            #[cfg(feature = "metrics")]
            metrics_name: Cow::Borrowed(UNNAMED),
            reports: true,
            over,
        }
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        self.settings.filter.named = Some(name.to_owned());
        self
    }

    /// For recipes that report nothing.
    pub(crate) const fn unreported(mut self) -> Self {
        self.reports = false;
        self
    }

    /// A few words of text that identify the contender to people who inspect the queue. Default: host and process.
    pub fn description(mut self, text: &str) -> Self {
        self.description = Some(text.to_owned());
        self
    }

    /// The access control list of the lock's nodes, and of missing levels of its path. All contenders need to read each
    /// other's nodes, and to create and delete under the path; and to write them for a [`SimpleLock`](crate::SimpleLock), a
    /// [`DurableLock`](crate::DurableLock), a [`DoubleBarrier`](crate::DoubleBarrier), a
    /// [delay](crate::Builder::lock_delay), a [number of permits](crate::Semaphore::counted_at), and requests to [give a lock
    /// back](crate::Queue::revoke). Default: the [list](zk_client::ConnectOptions::default_acl) of the client.
    pub fn acl(mut self, acl: &AclList) -> Self {
        self.settings.acl = acl.clone();
        self
    }

    /// The longest time a waiter trusts its watch before it lists the queue again; `None` for ever. Default 45 s.
    /// Matters only if there is a bug.
    pub const fn recheck(mut self, pause: Option<Duration>) -> Self {
        self.settings.recheck = pause;
        self
    }

    /// The naming scheme of the nodes. Default: Curator's.
    pub const fn layout(mut self, layout: Layout) -> Self {
        self.settings.layout = layout;
        self
    }

    /// How to treat nodes under the path that belong to no known implementation. Default: contenders wait for those
    /// with a sequence number.
    pub const fn foreign_nodes(mut self, foreign_nodes: ForeignNodes) -> Self {
        self.settings.filter.foreign_nodes = foreign_nodes;
        self
    }

    /// Whether a waiter also watches the predecessor of its predecessor, and lists the queue when that node goes: while
    /// the predecessor holds the lock, so that its release is the grant, without a listing in between. Costs one more
    /// notification per release. Default: no.
    pub const fn look_ahead(mut self, look_ahead: bool) -> Self {
        self.settings.look_ahead = look_ahead;
        self
    }

    /// The most contenders, holder included, that may be ahead of a new attempt; otherwise the attempt fails with
    /// [`QueueFull`](crate::AcquireError::QueueFull). Of a [`Semaphore`](crate::Semaphore) and a
    /// [`DurableLock`](crate::DurableLock) only those count who wait. Default: any number.
    pub const fn max_waiters(mut self, most: usize) -> Self {
        self.settings.max_waiters = Some(most);
        self
    }

    /// Has every waiter watch the whole queue instead of its predecessor.
    ///
    /// **Not for many contenders:** whenever one joins or leaves, *every* waiter is woken and lists the queue. For n
    /// waiters that is n events and n listings of n names for each release. Above some ten contenders the default is
    /// better, and never promises less: the nodes are the same, each contender may choose, and both ways can be used on
    /// one path. The advantage of this one is that a waiter needs no permission to read others' nodes, only to list the
    /// path. A free lock costs the same.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// use zk_locks::{Layout, RwLock};
    ///
    /// // For programs that call their nodes <host>-R-<number> and <host>-W-<number>.
    /// let lock = RwLock::builder(&zk, "/shared_lock").layout(Layout::HostType).herd().build();
    /// lock.read().await?.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn herd(mut self) -> Self {
        self.settings.herd = true;
        self
    }

    /// The sequence number from which on the path is recreated: a contender with such a number leaves, deletes the path
    /// once that is empty, and joins the queue of a new one, whose numbers begin at 0. Default: 2^30. The numbers end at
    /// 2^31 - 1, after 25 days of a thousand acquires a second on a path that is never idle for long; other
    /// implementations do not know how to wait for that. Only an empty path can be deleted, so no holder is ever missed. One
    /// with data, or another access control list than [this one](Self::acl), is created again with those, as a persistent node.
    ///
    /// An attempt that finds no node but its own does so at once, unless servers have refused to delete the path within the
    /// last ten minutes. Otherwise it leaves and waits for the path if it would
    /// have to wait for the lock anyway, for half a minute at most; readers wait only as long as a writer is there. None
    /// waits of which that is not expected: a `try_…`, the request for a [ticket](crate::Ticket), an
    /// [upgrade](crate::ReadGuard::try_upgrade). Nor does any where a node without a place in the queue keeps the path,
    /// such as one without a number, or where attempts of the same session have waited in vain: ten minutes after those
    /// have begun, the path is waited for again.
    ///
    /// All these join the queue as it is, until there are no more numbers. Then an attempt that may wait does so whatever
    /// the others want, and fails with [`SequenceExhausted`](crate::AcquireError::SequenceExhausted) if the path does not
    /// become empty; the others do at once.
    pub const fn rotate_at(mut self, sequence: i32) -> Self {
        self.settings.rotate_at = sequence;
        self
    }

    /// Requires the path to exist: this recipe never creates it or its ancestors. While it is missing, attempts fail
    /// with [`PathMissing`](crate::AcquireError::PathMissing) and change nothing, at the price of the request that
    /// found out. For locks whose path belongs to an object that its lock must not bring back after deletion.
    ///
    /// Make the path a persistent node: servers delete containers that have been empty for a while. For recipes that
    /// are a single node, [`SimpleLock`](crate::SimpleLock) and [`Barrier`](crate::Barrier), the parent must exist. A
    /// recipe still creates its own nodes below the path, as a [`Semaphore`](crate::Semaphore) does. The path is not
    /// [recreated](Builder::rotate_at) when its numbers end, since that would delete it. Where a
    /// [`MultiLock`](crate::MultiLock) has to make other paths in front of this one, those stay. Default: missing nodes are
    /// created.
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

    /// As [`require_path`](Builder::require_path), for the parent of the path: the path itself is created where it is
    /// missing. For an object `/orders/7` whose lock is `/orders/7/lock`.
    pub const fn require_parent(mut self) -> Self {
        self.settings.required = Required::Parent;
        self
    }

    /// How long a lock should be held at most. A longer hold is reported as a `tracing` warning and to the
    /// [observer](Builder::observer), unless the lock is known to be lost by then. The holder keeps the lock: to take it
    /// away is [`release_after`](Builder::release_after). An [upgraded](crate::ReadGuard::try_upgrade) lock is another
    /// one, whose time begins with the upgrade; a [downgraded](crate::WriteGuard::downgrade) one is the same. Costs a task
    /// for each guard.
    pub const fn max_hold(mut self, limit: Duration) -> Self {
        self.settings.max_hold = Some(limit);
        self
    }

    /// How long a lock is held at most: then it is taken from its holder and granted to the next contender. The report
    /// is that of [`max_hold`](Builder::max_hold), and the guard is lost, with
    /// [`Lost::HeldTooLong`](crate::Lost::HeldTooLong). Time counts as there: anew with an upgrade, which no contender
    /// that waits to write permits.
    ///
    /// The holder is informed first: [`scope`](crate::Guard::scope) drops its work, [`lost`](crate::Guard::lost)
    /// resolves and the [token](crate::Guard::cancellation_token) is cancelled. The node is deleted when all work in
    /// scopes has been dropped, or a second later. Work that reaches no `await` by then continues beside the next
    /// holder's, as does work outside of scopes that does not listen; only fencing tokens protect against that. While
    /// servers are unreachable the lock counts as lost all the same, and is given away when they are back, or with the
    /// session. The delete is that of [`release`](crate::Guard::release), which waits for it, if it is called later, and
    /// tells whether servers refuse it.
    ///
    /// Applies to what a guard holds; a [`SimpleLock`](crate::SimpleLock), a [`Group`](crate::Group), a
    /// [`DoubleBarrier`](crate::DoubleBarrier) and a [`DurableLock`](crate::DurableLock) have no such limit, nor a
    /// [`max_hold`](Builder::max_hold). A [`CohortLock`](crate::CohortLock) counts for each of its holders. Costs a task for
    /// each guard, and one request for each lock that is taken away. Default: never.
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

    /// The observer of grants, releases and losses: [`Metrics`](crate::Metrics), for example. A
    /// [`SimpleLock`](crate::SimpleLock), a [`Group`](crate::Group) and barriers report nothing.
    pub fn observer(mut self, observer: Arc<impl LockObserver>) -> Self {
        self.settings.observers.set = Some(observer);
        self
    }

    /// Names the lock in its [metrics](crate::metrics): the value of their label `lock`. Locks of one purpose should
    /// have the same name, so that names stay few; a path is a name only where paths are few. Default: `default`.
    ///
    /// Metrics go to the recorder that is installed when the first lock of that name is built in a session.
    #[cfg(feature = "metrics")]
    pub fn metrics_name(mut self, name: impl Into<String>) -> Self {
        self.metrics_name = Cow::Owned(name.into());
        self
    }

    /// Returns the finished recipe. Sends no request yet.
    #[must_use]
    pub fn build(self) -> R {
        #[cfg(feature = "metrics")]
        let metrics_name = self.metrics_name;
        let Self { client, path, description, mut settings, reports, over, .. } = self;
        settings.description = description.unwrap_or_else(identity::describe);
        settings.filter.names = settings.layout.names();
        if reports {
            #[cfg(feature = "metrics")]
            {
                settings.observers.recorder = Some(crate::metrics::named(&client, &metrics_name));
            }
            settings.observers.tell(|observer| observer.attached(&client.session()));
        }
        over(WaitQueue::new(client, path, settings))
    }
}

impl<R> Clone for Builder<R> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            path: self.path.clone(),
            description: self.description.clone(),
            settings: self.settings.clone(),
            #[cfg(feature = "metrics")]
            metrics_name: self.metrics_name.clone(),
            reports: self.reports,
            over: self.over,
        }
    }
}

impl<R> fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("path", &self.path).finish_non_exhaustive()
    }
}
