//! Persistent watches.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use zk_proto::session::WatchBy;

use crate::{
    chroot::Chroot,
    driver::command::Command,
    queue::WeakCommandSender,
    watch::{EventQueue, EventSender, Listener, Queued, Watch, WatchEnd, WatchItem, read_event},
};

/// A watch that is armed with the reply to a request.
#[derive(Debug)]
pub(crate) enum Attached {
    Nothing,
    Once(Watch),
    Many(Box<WatchStream>),
}

impl Attached {
    pub(crate) fn once(self) -> Option<Watch> {
        match self {
            Self::Once(watch) => Some(watch),
            Self::Nothing | Self::Many(_) => None,
        }
    }
}

/// Events of one node, or of a node and everything below it, until dropped.
///
/// The stream is bounded, and marks gaps explicitly: after a [`WatchItem::Resync`] everything has to be read again. The
/// server sends the event before it serves the change: a read after an event reflects the change, or a later one. Over another
/// connection only behind a [`sync`](crate::Client::sync): events do not show a new server how far the session has seen.
///
/// ```no_run
/// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
/// use zk_client::{WatchItem};
///
/// let mut changes = zk.watch("/members").recursive().await?;
/// // Watch first, then read: no change falls in between.
/// let (mut members, _) = zk.children("/members").await?;
/// while let Some(item) = changes.next().await {
///     match item {
///         WatchItem::Event(event) => println!("{} {}", event.kind, event.path),
///         WatchItem::Resync(why) => println!("read all anew: {why:?}"),
///         _ => {}
///     }
///     members = zk.children("/members").await?.0;
/// }
/// println!("{:?}: last seen {members:?}", changes.end());
/// # Ok(())
/// # }
/// ```
///
/// Since 3.8.4 and 3.9.2 servers withhold the events of a node from sessions that may not read it. Nothing is reported
/// when an access control list takes that permission away, or gives it back.
///
/// Dropping it removes the watch, also on the server once nothing else of the session needs it there. It does not keep
/// the session alive.
#[must_use = "dropping it takes the watch away"]
pub struct WatchStream {
    event_queue: EventQueue,
    by: WatchBy,
    /// Absolute.
    path: Arc<str>,
    chroot: Chroot,
    /// `None` when there is nothing to remove.
    commands: Option<WeakCommandSender<Command>>,
}

impl WatchStream {
    /// Creates a stream, and the session's end of it.
    pub(crate) fn new(
        items_max: usize,
        by: WatchBy,
        path: &str,
        chroot: Chroot,
        commands: WeakCommandSender<Command>,
    ) -> (Self, Listener) {
        let event_queue = EventQueue::new(items_max);
        let listener = Listener::Many(Arc::new(EventSender(event_queue.clone())));
        let commands = Some(commands);
        (Self { event_queue, by, path: path.into(), chroot, commands }, listener)
    }

    /// The watched node, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        self.chroot.relative(&self.path)
    }

    /// Returns the next item, in the server's order; `None` when the stream has [ended](Self::end).
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<WatchItem> {
        poll_fn(|cx| self.poll_item(cx)).await
    }

    /// Returns an item that is already queued; never waits.
    pub fn try_next(&mut self) -> Option<WatchItem> {
        self.event_queue.try_next().map(|item| self.read(item))
    }

    /// Returns why the stream has ended, once [`next`](Self::next) has returned all items.
    #[must_use]
    pub fn end(&self) -> Option<WatchEnd> {
        self.event_queue.end()
    }

    pub(crate) fn event_queue(&self) -> &EventQueue {
        &self.event_queue
    }

    /// Marks that the watch was never set.
    pub(crate) fn forget(&mut self) {
        self.commands = None;
    }

    fn poll_item(&self, cx: &Context<'_>) -> Poll<Option<WatchItem>> {
        self.event_queue.poll_next(cx).map(|item| item.map(|item| self.read(item)))
    }

    fn read(&self, item: Queued) -> WatchItem {
        match item {
            Queued::Event(event) => WatchItem::Event(read_event(&self.chroot, &event)),
            Queued::Resync(resync) => WatchItem::Resync(resync),
        }
    }
}

/// As its reader sees it.
impl fmt::Debug for WatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream")
            .field("path", &self.path())
            .field("queued", &self.event_queue.len())
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

impl Stream for WatchStream {
    type Item = WatchItem;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WatchItem>> {
        self.poll_item(cx)
    }
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        self.event_queue.close();
        // Without a driver, or after the end, no server has the watch.
        let commands = self.commands.take().filter(|_| !self.event_queue.is_over());
        if let Some(commands) = commands.and_then(|commands| commands.upgrade()) {
            let (by, path) = (self.by, self.path.clone());
            let _ = commands.send(Command::Unwatch { by, path });
        }
    }
}
