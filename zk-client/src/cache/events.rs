//! Telling whoever listens to a cache, without waiting for anybody.

use std::{
    any::Any,
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;

use super::node::CachedNode;
use crate::error::SessionEnd;

/// What has changed in a [`Cache`](super::Cache).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheEvent {
    /// A node came.
    Created(CachedNode),
    /// A node's data was written.
    Changed {
        /// As it was.
        old: CachedNode,
        /// As it is.
        new: CachedNode,
    },
    /// A node went. This is how it was last.
    Deleted(CachedNode),
    /// Everything has been read: for the first time, or anew after something may have been missed.
    Loaded,
    /// More has changed than is kept for a slow listener. Whoever keeps something in step with the cache looks at
    /// [all of it](super::Cache::nodes) anew; what changes after this is told.
    Lagged,
    /// The session is over. Nothing changes any more, and the stream ends behind this, unless the cache is
    /// [moved](super::Cache::move_to) to another client.
    Ended(SessionEnd),
}

/// What changes in a [`Cache`](super::Cache), in the order in which it does: see [`Cache::events`](super::Cache::events).
///
/// Bounded: see [`CacheEvent::Lagged`]. Keeps the cache going.
///
/// Ends when the session does, behind [`CacheEvent::Ended`]. If the cache is then [moved](super::Cache::move_to) to another
/// client, the same stream goes on with what is different there.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use std::collections::BTreeMap;
/// use zk_client::{Cache, CacheEvent};
///
/// zk.create("/shards/1", b"zk-17").parents().await?;
/// let cache = Cache::children(&zk, "/shards").start()?;
/// // Something of our own that is kept in step: what is there comes first, as if it had just been created.
/// let mut shards = BTreeMap::new();
/// let mut changes = cache.events_from_the_start();
/// while let Some(change) = changes.next().await {
///     match change {
///         CacheEvent::Created(node) | CacheEvent::Changed { new: node, .. } => {
///             shards.insert(node.path.clone(), node.data);
///         }
///         CacheEvent::Deleted(node) => drop(shards.remove(&node.path)),
///         CacheEvent::Lagged => {
///             shards = cache.nodes().into_iter().map(|node| (node.path, node.data)).collect();
///         }
///         CacheEvent::Loaded => break, // here, to see what there is
///         _ => {}
///     }
/// }
/// assert_eq!(shards["/shards/1"], "zk-17");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "it is only of use to whoever reads it"]
pub struct CacheEvents {
    queue: Arc<Mutex<Queue>>,
    /// Keeps it going.
    _cache: Arc<dyn Any + Send + Sync>,
}

#[derive(Debug)]
struct Queue {
    events: VecDeque<CacheEvent>,
    events_max: usize,
    /// Whether nothing follows.
    ended: bool,
    waker: Option<Waker>,
}

/// The cache's end of it.
#[derive(Debug)]
pub(super) struct Feed(Weak<Mutex<Queue>>);

impl CacheEvents {
    pub(super) fn new(
        events_max: usize,
        ended: bool,
        cache: Arc<dyn Any + Send + Sync>,
    ) -> (Feed, Self) {
        let queue =
            Queue { events: VecDeque::new(), events_max: events_max.max(1), ended, waker: None };
        let queue = Arc::new(Mutex::new(queue));
        (Feed(Arc::downgrade(&queue)), Self { queue, _cache: cache })
    }

    /// The next change; `None` when nothing follows, since the session is over: [`Cache::state`](super::Cache::state) says why.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<CacheEvent> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// A change that is there already; never waits.
    pub fn try_next(&mut self) -> Option<CacheEvent> {
        lock(&self.queue).events.pop_front()
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Option<CacheEvent>> {
        // Wakers run code of others, as they are cloned and dropped too.
        let waker = cx.waker().clone();
        let mut queue = lock(&self.queue);
        match queue.events.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None if queue.ended => Poll::Ready(None),
            None => {
                let before = queue.waker.replace(waker);
                drop(queue);
                drop(before);
                Poll::Pending
            }
        }
    }
}

impl Drop for CacheEvents {
    fn drop(&mut self) {
        let waker = lock(&self.queue).waker.take();
        drop(waker);
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream for CacheEvents {
    type Item = CacheEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<CacheEvent>> {
        self.poll(cx)
    }
}

impl Feed {
    /// Returns whether anybody listens. Whom that wakes is left to the caller.
    pub(super) fn tell(&self, event: &CacheEvent, woken: &mut Vec<Waker>) -> bool {
        let Some(queue) = self.0.upgrade() else { return false };
        let mut queue = lock(&queue);
        queue.ended = matches!(event, CacheEvent::Ended(_));
        let lags = queue.events.len() >= queue.events_max;
        if lags {
            queue.events.clear();
            queue.events.push_back(CacheEvent::Lagged);
        }
        if !lags || queue.ended {
            queue.events.push_back(event.clone());
        }
        woken.extend(queue.waker.take());
        true
    }

    /// What there is at first does not count: it is in memory already.
    pub(super) fn tell_at_first(&self, event: &CacheEvent) {
        if let Some(queue) = self.0.upgrade() {
            let mut queue = lock(&queue);
            queue.events.push_back(event.clone());
            queue.events_max = queue.events_max.saturating_add(1);
        }
    }

    /// Returns whether anybody listens.
    pub(super) fn goes_on(&self) -> bool {
        let Some(queue) = self.0.upgrade() else { return false };
        lock(&queue).ended = false;
        true
    }
}
