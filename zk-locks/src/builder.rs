//! Settings of recipes.

use std::{fmt, sync::Arc, time::Duration};

use zk_client::{AclList, Client};

use crate::{
    identity,
    layout::{Filter, Layout, Strangers},
    line::{Downgrades, Line, Settings},
    observe::{Observer, Observers},
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
    description: Option<String>,
    acl: AclList,
    recheck: Option<Duration>,
    layout: Layout,
    filter: Filter,
    look_ahead: bool,
    max_waiters: Option<usize>,
    rotate_at: i32,
    max_hold: Option<Duration>,
    pub(crate) lock_delay: Option<Duration>,
    observers: Observers,
    pub(crate) herd: bool,
    pub(crate) downgrades: Downgrades,
    over: fn(Line) -> R,
}

impl<R> Builder<R> {
    pub(crate) fn new(client: &Client, path: &str, over: fn(Line) -> R) -> Self {
        Self {
            client: client.clone(),
            path: path.to_owned(),
            description: None,
            acl: client.default_acl().clone(),
            recheck: Some(RECHECK),
            layout: Layout::default(),
            filter: Filter::default(),
            look_ahead: false,
            max_waiters: None,
            rotate_at: ROTATE_AT,
            max_hold: None,
            lock_delay: None,
            observers: Observers::default(),
            herd: false,
            downgrades: Downgrades::default(),
            over,
        }
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        self.filter.named = Some(name.to_owned());
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
        self.acl = acl.clone();
        self
    }

    /// How long a waiter trusts its watch at most without looking again; `None` for ever. Default 45 s.
    /// Only a bug would make it matter.
    pub const fn recheck(mut self, pause: Option<Duration>) -> Self {
        self.recheck = pause;
        self
    }

    /// Whose names the nodes have. Default: Curator's.
    pub const fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// What becomes of nodes under the path that belong to no known implementation. Default: those with a
    /// sequence number are waited for.
    pub const fn strangers(mut self, strangers: Strangers) -> Self {
        self.filter.strangers = strangers;
        self
    }

    /// Whether a waiter also watches the one behind whom its predecessor waits, and looks at the queue when
    /// that one goes: while the predecessor holds the lock, so that its release is the grant, without a
    /// listing in between. Costs one more notification per release. Default: no.
    pub const fn look_ahead(mut self, look_ahead: bool) -> Self {
        self.look_ahead = look_ahead;
        self
    }

    /// How many may be in front at most when a new attempt joins, the holder included; it fails with
    /// [`QueueFull`](crate::AcquireError::QueueFull) otherwise. Default: any number.
    pub const fn max_waiters(mut self, most: usize) -> Self {
        self.max_waiters = Some(most);
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
        self.rotate_at = sequence;
        self
    }

    /// How long a lock should be held at most: whoever holds it for longer is told of, as a `tracing` warning
    /// and to the [observer](Builder::observer). Nothing is taken away from it. Costs a task for each guard.
    pub const fn max_hold(mut self, limit: Duration) -> Self {
        self.max_hold = Some(limit);
        self
    }

    /// Who hears of grants, releases and losses: [`Metrics`](crate::Metrics), for example.
    pub fn observer(mut self, observer: Arc<impl Observer>) -> Self {
        self.observers = Observers(Some(observer));
        self
    }

    /// The finished recipe. Nothing happens on the servers yet.
    #[must_use]
    pub fn build(self) -> R {
        let Self { client, path, description, acl, recheck, layout, .. } = self;
        let Self { mut filter, look_ahead, max_waiters, rotate_at, .. } = self;
        let Self { max_hold, lock_delay, observers, herd, downgrades, over, .. } = self;
        let description = description.unwrap_or_else(identity::describe);
        filter.names = layout.names();
        observers.tell(|observer| observer.attached(&client.session()));
        let settings = Settings {
            description,
            acl,
            recheck,
            layout,
            filter,
            look_ahead,
            max_waiters,
            rotate_at,
            max_hold,
            lock_delay,
            observers,
            herd,
            downgrades,
        };
        over(Line::new(client, path, settings))
    }
}

impl<R> Clone for Builder<R> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            path: self.path.clone(),
            description: self.description.clone(),
            acl: self.acl.clone(),
            filter: self.filter.clone(),
            observers: self.observers.clone(),
            ..*self
        }
    }
}

impl<R> fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("path", &self.path).finish_non_exhaustive()
    }
}
