//! The queue of events between the session and a listener: bounded, and never blocking the session.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use zk_proto::session::{CloseReason, WatchNotice};

use super::event::{Delivery, Event, Resync, WatchEnd};

/// Limit on the bytes of paths queued for one listener: no server can make a client use more memory than this and a
/// frame, however long its paths are.
const BYTES_MAX: usize = 1 << 20;

/// The queue of one listener. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue(Arc<Mutex<Queued>>);

/// The session's end of an [`EventQueue`]. If the session is dropped before its end, with its runtime, dropping this is
/// the end.
#[derive(Debug)]
pub(crate) struct EventSender(pub(crate) EventQueue);

impl Drop for EventSender {
    fn drop(&mut self) {
        self.0.notify(WatchNotice::Over(CloseReason::Closed));
    }
}

/// The queued items.
#[derive(Debug)]
struct Queued {
    items: VecDeque<Item>,
    /// How many of `items` are events, and the total length of their paths.
    events: usize,
    bytes: usize,
    events_max: usize,
    /// Why nothing follows, if nothing does.
    end: Option<WatchEnd>,
    /// Whether the listener has been dropped.
    closed: bool,
    waker: Option<Waker>,
}

/// One queued item, as the session reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Event(Event),
    Resync(Resync),
}

impl EventQueue {
    /// Creates a queue for `events_max` events, besides which there is always room for a [`Resync`].
    pub(crate) fn new(events_max: usize) -> Self {
        let news = Queued {
            items: VecDeque::new(),
            events: 0,
            bytes: 0,
            events_max: events_max.max(1),
            end: None,
            closed: false,
            waker: None,
        };
        Self(Arc::new(Mutex::new(news)))
    }

    fn lock(&self) -> MutexGuard<'_, Queued> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next item; `None` when nothing follows.
    pub(crate) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Item>> {
        // Cloning and dropping a waker runs foreign code too.
        let waker = cx.waker().clone();
        let mut news = self.lock();
        if let Some(item) = news.take() {
            return Poll::Ready(Some(item));
        }
        if news.end.is_some() {
            return Poll::Ready(None);
        }
        let before = news.waker.replace(waker);
        drop(news);
        drop(before);
        Poll::Pending
    }

    /// Returns an item that is already queued.
    pub(crate) fn try_next(&self) -> Option<Item> {
        self.lock().take()
    }

    /// How many events are queued.
    pub(crate) fn len(&self) -> usize {
        self.lock().events
    }

    /// Returns why nothing follows, once all items have been read.
    pub(crate) fn end(&self) -> Option<WatchEnd> {
        let news = self.lock();
        news.end.filter(|_| news.items.is_empty())
    }

    /// Called when the listener is dropped.
    pub(crate) fn close(&self) {
        let mut news = self.lock();
        news.closed = true;
        news.items = VecDeque::new();
        (news.events, news.bytes) = (0, 0);
        let waker = news.waker.take();
        drop(news);
        drop(waker);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether no further items will arrive.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Called when the watch has been removed.
    pub(super) fn remove(&self) {
        let mut news = self.lock();
        news.end.get_or_insert(WatchEnd::Removed);
        let waker = news.waker.take();
        drop(news);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Queues a notice of the session or of its end.
    pub(crate) fn notify(&self, notice: WatchNotice) -> Delivery {
        let mut news = self.lock();
        if news.closed {
            return Delivery::Kept;
        }
        let delivery = match notice {
            WatchNotice::Event(event) => news.event(event),
            WatchNotice::Gap => {
                news.resync(Resync::Reconnected);
                Delivery::Kept
            }
            WatchNotice::Over(over) => {
                let end = WatchEnd::Session(over.into());
                news.end = news.end.or(Some(end));
                Delivery::Kept
            }
            WatchNotice::Unsupported => {
                news.end.get_or_insert(WatchEnd::Unsupported);
                Delivery::Kept
            }
            _ => Delivery::Kept,
        };
        let waker = news.waker.take();
        drop(news);
        if let Some(waker) = waker {
            waker.wake();
        }
        delivery
    }
}

impl Queued {
    fn take(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        if let Item::Event(event) = &item {
            self.events -= 1;
            self.bytes -= event.path.len();
        }
        Some(item)
    }

    fn event(&mut self, event: Event) -> Delivery {
        let bytes = self.bytes.saturating_add(event.path.len());
        if self.events < self.events_max && bytes <= BYTES_MAX {
            self.events += 1;
            self.bytes = bytes;
            self.items.push_back(Item::Event(event));
            return Delivery::Kept;
        }
        // A listener that has to read everything again needs none of these.
        self.items.clear();
        (self.events, self.bytes) = (0, 0);
        self.resync(Resync::Lagged);
        Delivery::Lagged
    }

    /// Queues a gap. The items before it matter only as events of single nodes: one gap in a row is enough.
    fn resync(&mut self, resync: Resync) {
        match self.items.back_mut() {
            Some(Item::Resync(last)) => *last = resync,
            _ => self.items.push_back(Item::Resync(resync)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use zk_proto::EventType;

    use super::*;

    fn event(path: &str) -> Event {
        Event { kind: EventType::NODE_CREATED, path: path.into(), zxid: None }
    }

    fn say(event_queue: &EventQueue, path: &str) -> Delivery {
        event_queue.notify(WatchNotice::Event(event(path)))
    }

    fn read(event_queue: &EventQueue) -> Vec<Item> {
        std::iter::from_fn(|| event_queue.try_next()).collect()
    }

    #[test]
    fn slow_listener_gets_a_resync_then_events() {
        let event_queue = EventQueue::new(3);
        for path in ["/1", "/2", "/3"] {
            assert_eq!(say(&event_queue, path), Delivery::Kept);
        }
        assert_eq!(say(&event_queue, "/4"), Delivery::Lagged);
        assert_eq!(say(&event_queue, "/5"), Delivery::Kept);
        let items = [Item::Resync(Resync::Lagged), Item::Event(event("/5"))];
        assert_eq!(read(&event_queue), items);
        assert_eq!(say(&event_queue, "/6"), Delivery::Kept);
        assert_eq!(read(&event_queue), [Item::Event(event("/6"))]);
    }

    #[test]
    fn resync_takes_no_room_of_events() {
        let event_queue = EventQueue::new(1);
        event_queue.notify(WatchNotice::Gap);
        assert_eq!(say(&event_queue, "/1"), Delivery::Kept);
        event_queue.notify(WatchNotice::Gap);
        let gap = || Item::Resync(Resync::Reconnected);
        assert_eq!(read(&event_queue), [gap(), Item::Event(event("/1")), gap()]);
        for path in ["/2", "/3"] {
            say(&event_queue, path);
        }
        assert_eq!(say(&event_queue, "/4"), Delivery::Kept);
        assert_eq!(say(&event_queue, "/5"), Delivery::Lagged);
        assert_eq!(read(&event_queue), [Item::Resync(Resync::Lagged)]);
    }

    #[test]
    fn long_paths_take_more_room() {
        let event_queue = EventQueue::new(1000);
        let long = format!("/{}", "x".repeat(BYTES_MAX / 2));
        assert_eq!(say(&event_queue, &long), Delivery::Kept);
        assert_eq!(say(&event_queue, &long), Delivery::Lagged);
        assert_eq!(read(&event_queue), [Item::Resync(Resync::Lagged)]);
        assert_eq!(say(&event_queue, &long), Delivery::Kept);
    }

    /// Inspects the mailbox when woken and dropped, as a waker of a custom executor may.
    struct Looks(EventQueue);

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            assert!(!self.0.is_over());
        }
    }

    impl Drop for Looks {
        fn drop(&mut self) {
            assert!(self.0.0.try_lock().is_ok(), "dropped under the lock");
        }
    }

    #[test]
    fn wakers_run_and_drop_outside_the_lock() {
        let event_queue = EventQueue::new(2);
        let wait = || {
            let waker = Waker::from(Arc::new(Looks(event_queue.clone())));
            event_queue.poll_next(&Context::from_waker(&waker))
        };
        assert!(wait().is_pending());
        assert!(wait().is_pending(), "instead of the one before");
        say(&event_queue, "/1");
        assert!(wait().is_ready());
        assert!(wait().is_pending());
        event_queue.close();
    }

    #[test]
    fn gaps_in_a_row_are_one() {
        let event_queue = EventQueue::new(2);
        for _ in 0..5 {
            event_queue.notify(WatchNotice::Gap);
        }
        assert_eq!(read(&event_queue), [Item::Resync(Resync::Reconnected)]);
    }
}
