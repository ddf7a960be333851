//! Watches that go on until they are dropped.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use zk_proto::{
    AddWatchMode, Str,
    frame::RequestFrame,
    path::Naming,
    request::{AddWatchRequest, ErrorResponse},
    session::WatchBy,
};

use super::{Attached, Letterbox, Listener, Mailbox, NodeEvent, mailbox::Item, read_event};
use crate::{
    call::{Command, Pending, Target, Unread, body},
    chroot::Chroot,
    error::{ReadError, SessionEnd},
    inbox::WeakCommands,
    operations::{awaitable, read_with},
};

/// How far a persistent watch sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WatchMode {
    /// The node itself: created, written, deleted; and its set of children.
    Node,
    /// The node and everything below it: created, written, deleted. What it says of a child it does not say of the
    /// set of children again.
    Recursive,
}

impl WatchMode {
    const fn by(self) -> WatchBy {
        match self {
            Self::Node => WatchBy::Persistent,
            Self::Recursive => WatchBy::Recursive,
        }
    }

    const fn on_wire(self) -> AddWatchMode {
        match self {
            Self::Node => AddWatchMode::PERSISTENT,
            Self::Recursive => AddWatchMode::PERSISTENT_RECURSIVE,
        }
    }
}

/// What a [`WatchStream`] has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchItem {
    /// Something happened to a node.
    Event(NodeEvent),
    /// Something may have happened that nobody will tell: whoever keeps a picture of the nodes reads all of them
    /// anew. What happens after this is told.
    Resync(Resync),
}

/// Why events may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resync {
    /// The connection was lost, and there is a new one. Servers do not tell what happened in between. (Also after
    /// both kinds of watches were set on one path of a server before 3.9, which cannot keep them apart.)
    Reconnected,
    /// More events came than are kept for a slow reader: see [`AddWatch::capacity`].
    Lagged,
}

/// Why a [`WatchStream`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum WatchEnd {
    /// The session is over.
    #[error("{0}")]
    Session(SessionEnd),
    /// The session has moved to a server of before 3.6, which has no such watches.
    #[error("the server has no persistent watches")]
    Unsupported,
    /// Somebody has [removed](crate::Client::remove_watches) it.
    #[error("the watch was removed")]
    Removed,
}

/// Sets a watch that goes on: see [`Client::watch`](crate::Client::watch).
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct AddWatch<'a> {
    pub(crate) target: Target<'a>,
    path: &'a str,
    mode: WatchMode,
    capacity: Option<usize>,
}

awaitable! {
    AddWatch: WatchStream, ReadError;
}

impl<'a> AddWatch<'a> {
    pub(crate) const fn new(target: Target<'a>, path: &'a str, mode: WatchMode) -> Self {
        Self { target, path, mode, capacity: None }
    }

    /// How many events are kept for a reader that is busy, at least 1; one more, and all of them are replaced by
    /// one [`Resync::Lagged`]. Independent of that, of all their paths no more than 1 MiB is kept. Default:
    /// [`ConnectOptions::watch_items_max`](crate::ConnectOptions::watch_items_max).
    pub const fn capacity(mut self, items: usize) -> Self {
        self.capacity = Some(items);
        self
    }

    fn start(self, admission: crate::call::Admission) -> Pending<WatchStream, ReadError> {
        let Self { target, path, mode, capacity } = self;
        if target.handle.level.lacks_add_watch() {
            return Pending::failed(ReadError::Rejected(crate::Rejection::Unimplemented));
        }
        let frame =
            |path: Str<'_>| RequestFrame::of(&AddWatchRequest { path, mode: mode.on_wire() });
        let items_max = capacity.unwrap_or(target.handle.watch_items_max);
        let by = mode.by();
        let attach = |path: &str| {
            let (stream, listener) = WatchStream::new(
                items_max,
                by,
                path,
                target.handle.chroot.clone(),
                target.handle.commands.downgrade(),
            );
            (Attached::Many(Box::new(stream)), by, listener)
        };
        read_with(
            target,
            path,
            Naming::Exact,
            Some(&attach),
            frame,
            admission,
            |answer, context| {
                context.learn(|level| level.note_add_watch(answer.code));
                let Attached::Many(mut stream) = context.watch else {
                    return Err(Unread::Code(zk_proto::ErrorCode::NO_WATCHER));
                };
                match body::<ErrorResponse>(&answer) {
                    Ok(_) => Ok(*stream),
                    Err(unread) => {
                        stream.forget();
                        Err(unread)
                    }
                }
            },
        )
    }
}

/// Events of one node, or of a node and everything below it, as long as it is kept.
///
/// Bounded, and explicit about what it cannot tell: after a [`WatchItem::Resync`] everything has to be read anew.
/// The server tells of a change before it shows it: what is read after an event reflects the change, or a later one.
///
/// ```no_run
/// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
/// use zk_client::{WatchItem, WatchMode};
///
/// let mut changes = zk.watch("/members", WatchMode::Recursive).await?;
/// // Set first, read then: nothing falls in between.
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
/// Dropping it takes the watch away, on the server as well as soon as nothing else of the session needs it there. It
/// does not keep the session alive.
#[derive(Debug)]
#[must_use = "dropping it takes the watch away"]
pub struct WatchStream {
    mailbox: Mailbox,
    by: WatchBy,
    /// Absolute.
    path: Arc<str>,
    chroot: Chroot,
    /// `None` when there is nothing to be taken away.
    commands: Option<WeakCommands>,
}

impl WatchStream {
    /// A stream, and what the session keeps of it.
    pub(crate) fn new(
        items_max: usize,
        by: WatchBy,
        path: &str,
        chroot: Chroot,
        commands: WeakCommands,
    ) -> (Self, Listener) {
        let mailbox = Mailbox::new(items_max);
        let listener = Listener::Many(Arc::new(Letterbox(mailbox.clone())));
        let commands = Some(commands);
        (Self { mailbox, by, path: path.into(), chroot, commands }, listener)
    }

    /// The watched node, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        self.chroot.relative(&self.path)
    }

    /// The next item, in the order in which the server told; `None` when the stream has [ended](Self::end).
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<WatchItem> {
        poll_fn(|cx| self.poll_item(cx)).await
    }

    /// An item that is there already; never waits.
    pub fn try_next(&mut self) -> Option<WatchItem> {
        self.mailbox.try_next().map(|item| self.read(item))
    }

    /// Why the stream has ended, once [`next`](Self::next) has nothing more to give.
    #[must_use]
    pub fn end(&self) -> Option<WatchEnd> {
        self.mailbox.end()
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// There was never a watch.
    fn forget(&mut self) {
        self.commands = None;
    }

    fn poll_item(&self, cx: &Context<'_>) -> Poll<Option<WatchItem>> {
        self.mailbox.poll_next(cx).map(|item| item.map(|item| self.read(item)))
    }

    fn read(&self, item: Item) -> WatchItem {
        match item {
            Item::Event(event) => WatchItem::Event(read_event(&self.chroot, &event)),
            Item::Resync(resync) => WatchItem::Resync(resync),
        }
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
        self.mailbox.close();
        // Without a driver, or after the end, there is nothing on any server.
        let commands = self.commands.take().filter(|_| !self.mailbox.is_over());
        if let Some(commands) = commands.and_then(|commands| commands.upgrade()) {
            let (by, path) = (self.by, self.path.clone());
            let _ = commands.send(Command::Unwatch { by, path });
        }
    }
}
