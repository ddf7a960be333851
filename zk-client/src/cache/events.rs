//! Notifies listeners of a cache without waiting for any of them.

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
    /// A node was created.
    Created(CachedNode),
    /// A node's data was written.
    Changed {
        /// The node before the write.
        old: CachedNode,
        /// The node after the write.
        new: CachedNode,
    },
    /// A node was deleted. This is its last known state.
    Deleted(CachedNode),
    /// Everything has been read: for the first time, or again after changes may have been missed. With servers since 3.6
    /// that is after every lost connection; with earlier ones after none, since watches of single nodes miss nothing.
    Loaded,
    /// More changes than are kept for a slow listener. A listener that mirrors the cache reads [all of
    /// it](super::Cache::nodes) again; changes after this one are reported, and [`Loaded`](Self::Loaded) if that was among
    /// those before.
    Lagged,
    /// The session is over. Nothing changes any more, and the stream ends after this, unless the cache is
    /// [moved](super::Cache::move_to) to another client.
    Ended(SessionEnd),
}

/// The changes of a [`Cache`](super::Cache), in order: see [`Cache::events`](super::Cache::events).
///
/// Bounded: see [`CacheEvent::Lagged`]. Keeps the cache running.
///
/// Ends with the session, after [`CacheEvent::Ended`]. If the cache is then [moved](super::Cache::move_to) to another
/// client, the same stream continues with the differences found there.
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
/// // A structure of our own, kept in step: existing nodes are reported first, as if just created.
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
#[must_use = "it does nothing unless it is read"]
pub struct CacheEvents {
    queue: Arc<Mutex<Queue>>,
    /// Keeps the cache running.
    _cache: Arc<dyn Any + Send + Sync>,
}

#[derive(Debug)]
struct Queue {
    events: VecDeque<CacheEvent>,
    events_max: usize,
    /// Whether no further events follow.
    ended: bool,
    waker: Option<Waker>,
}

/// The cache's end of a listener's queue.
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

    /// Returns the next change; `None` while the session is over and nothing follows:
    /// [`Cache::state`](super::Cache::state) has the reason. It is not final: once the cache has
    /// [moved](super::Cache::move_to) to another client, further calls return changes again. A loop that ends with `None`
    /// has to be begun anew then, as it is if it runs inside of a service under [`Supervise`](crate::Supervise).
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<CacheEvent> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Returns a change that is already queued; never waits.
    pub fn try_next(&mut self) -> Option<CacheEvent> {
        lock(&self.queue).events.pop_front()
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Option<CacheEvent>> {
        // Cloning and dropping a waker runs foreign code too.
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
    /// Returns whether the listener still exists. The caller wakes the tasks in `woken`.
    pub(super) fn tell(&self, event: &CacheEvent, woken: &mut Vec<Waker>) -> bool {
        let Some(queue) = self.0.upgrade() else { return false };
        let mut queue = lock(&queue);
        queue.ended = matches!(event, CacheEvent::Ended(_));
        let lags = queue.events.len() >= queue.events_max;
        if lags {
            let is_loaded = |event: &CacheEvent| matches!(event, CacheEvent::Loaded);
            let loaded = queue.events.iter().chain([event]).any(is_loaded);
            queue.events.clear();
            queue.events.push_back(CacheEvent::Lagged);
            // A listener that waits for it may hear of nothing else.
            queue.events.extend(loaded.then_some(CacheEvent::Loaded));
        }
        if !lags || queue.ended {
            queue.events.push_back(event.clone());
        }
        woken.extend(queue.waker.take());
        true
    }

    /// The initial contents do not count against the limit: they are in memory already.
    pub(super) fn tell_at_first(&self, event: CacheEvent) {
        if let Some(queue) = self.0.upgrade() {
            let mut queue = lock(&queue);
            queue.events.push_back(event);
            queue.events_max = queue.events_max.saturating_add(1);
        }
    }

    /// Returns whether the listener still exists.
    pub(super) fn goes_on(&self) -> bool {
        let Some(queue) = self.0.upgrade() else { return false };
        lock(&queue).ended = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use zk_proto::Stat;

    use super::*;

    #[tokio::test]
    async fn stream_has_the_same_changes_and_end() {
        let (feed, mut events) = CacheEvents::new(4, false, Arc::new(()));
        let mut woken = Vec::new();
        for event in [CacheEvent::Loaded, CacheEvent::Lagged] {
            assert!(feed.tell(&event, &mut woken));
        }
        assert!(woken.is_empty(), "no task waits");
        let next = async |events: &mut CacheEvents| {
            poll_fn(|cx| Pin::new(&mut *events).poll_next(cx)).await
        };
        assert_eq!(next(&mut events).await, Some(CacheEvent::Loaded));
        assert_eq!(next(&mut events).await, Some(CacheEvent::Lagged));

        lock(&events.queue).ended = true;
        assert_eq!(next(&mut events).await, None);
    }

    /// Whichever event is one too many.
    #[test]
    fn overflow_does_not_swallow_that_everything_is_loaded() {
        let node = CachedNode { path: "/n".into(), data: Bytes::new(), stat: Stat::default() };
        let gone = || CacheEvent::Deleted(node.clone());
        for (before, after) in [(4, 0), (3, 1), (0, 4)] {
            let (feed, mut events) = CacheEvents::new(4, false, Arc::new(()));
            let (before, after) = (std::iter::repeat_n(gone(), before), (0..after).map(|_| gone()));
            for event in before.chain([CacheEvent::Loaded]).chain(after) {
                assert!(feed.tell(&event, &mut Vec::new()));
            }
            let told: Vec<_> = std::iter::from_fn(|| events.try_next()).collect();
            assert_eq!(told, [CacheEvent::Lagged, CacheEvent::Loaded]);
        }
    }
}
