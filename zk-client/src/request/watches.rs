//! Persistent watches; checking for watches and removing them.

use std::sync::Arc;

use zk_proto::{
    ErrorCode, WatcherType,
    path::{Naming, PathError},
    request::ErrorResponse,
    session::WatchBy,
};

use super::{
    answer::{Unread, body},
    ask::Ask,
    builder::Request,
    client::Client,
    watch_stream::{Attached, WatchStream},
};
use crate::{driver::command::Command, error::ReadError, watch::WatchMode};

/// A kind of watches on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WatchKind {
    /// Those that fire once when the set of children changes.
    Children,
    /// Those that fire once when the node is created, written or deleted.
    Data,
    /// [Persistent](Client::watch) ones of the node itself.
    Node,
    /// Persistent, [recursive](Request::recursive) ones.
    Recursive,
    /// All of them.
    Any,
}

impl WatchKind {
    const fn on_wire(self) -> WatcherType {
        match self {
            Self::Children => WatcherType::CHILDREN,
            Self::Data => WatcherType::DATA,
            Self::Node => WatcherType::PERSISTENT,
            Self::Recursive => WatcherType::PERSISTENT_RECURSIVE,
            Self::Any => WatcherType::ANY,
        }
    }

    const fn armed_by(self) -> &'static [WatchBy] {
        match self {
            Self::Children => &[WatchBy::Children],
            Self::Data => &[WatchBy::Data],
            Self::Node => &[WatchBy::Persistent],
            Self::Recursive => &[WatchBy::Recursive],
            Self::Any => {
                &[WatchBy::Children, WatchBy::Data, WatchBy::Persistent, WatchBy::Recursive]
            }
        }
    }
}

impl Client {
    /// Watches a node persistently: whether it is created, written or deleted, and its set of children; or, if
    /// [`recursive`](Request::recursive), everything below it too. See [`WatchStream`]. The node need not exist. Since
    /// 3.6; earlier servers answer [`Unimplemented`](crate::Rejection::Unimplemented), the first time at the cost of the
    /// connection, and once more behind a connection lost otherwise: servers may have been upgraded.
    ///
    /// It does not interfere with other watches on the same path, although servers before 3.9 keep one watch per path
    /// and session: where the later one would replace the earlier one, the client uses the existing watch for both. Except
    /// that since 3.8.4, before 3.9, the set of children of a node with a recursive watch of this session is known by the
    /// children's events: the coming and going of a child that the session may not read is told of to nobody.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::{EventType, WatchItem};
    ///
    /// let mut changes = zk.watch("/workers").recursive().capacity(100).await?;
    /// zk.create("/workers/1", b"").parents().await?;
    /// match changes.next().await {
    ///     Some(WatchItem::Event(event)) => assert_eq!(event.kind, EventType::NODE_CREATED),
    ///     other => println!("{other:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn watch<'a>(&'a self, path: &'a str) -> Request<'a, WatchStream, ReadError> {
        let ask = Ask::Watch { path, mode: WatchMode::Node, capacity: None };
        Request::in_context(self.target(), ask, |answer, context| {
            let Attached::Many(mut stream) = context.watch else {
                return Err(Unread::Code(ErrorCode::NO_WATCHER).into());
            };
            match body::<ErrorResponse>(&answer) {
                Ok(_) => Ok(*stream),
                Err(unread) => {
                    stream.forget();
                    Err(unread.into())
                }
            }
        })
    }

    /// Whether the server has a watch of this kind for this session on exactly this path. Since 3.5.
    ///
    /// Servers before 3.9 cannot distinguish kinds: they count persistent watches among the others and, since 3.6,
    /// those of other sessions; they do not support [`WatchKind::Node`] and [`WatchKind::Recursive`], and answer
    /// [`Unimplemented`](crate::Rejection::Unimplemented). Where one watch serves two, the server has only one.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// use zk_client::WatchKind;
    ///
    /// let (_, changed) = zk.get("/config").watch().await?;
    /// assert!(zk.check_watches("/config", WatchKind::Data).await?);
    /// # drop(changed);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn check_watches<'a>(
        &'a self,
        path: &'a str,
        kind: WatchKind,
    ) -> Request<'a, bool, ReadError> {
        let ask = Ask::HasWatch { path, kind: kind.on_wire() };
        Request::new(self.target(), ask, |answer| match body(answer) {
            Ok(()) => Ok(true),
            Err(Unread::Code(ErrorCode::NO_WATCHER)) => Ok(false),
            // The kind is the only part that servers may not know: the rest has the form of any request.
            Err(Unread::Code(ErrorCode::MARSHALLING_ERROR)) => {
                Err(Unread::Code(ErrorCode::UNIMPLEMENTED))
            }
            Err(unread) => Err(unread),
        })
    }

    /// Removes all of this session's watches of this kind on exactly this path, for all listeners. One-shot watches
    /// resolve with an event ([`DATA_WATCH_REMOVED`](crate::EventType::DATA_WATCH_REMOVED) and the like), streams with
    /// their [end](crate::WatchEnd::Removed). Requests submitted after this arm new watches.
    ///
    /// The server's watch is removed as soon as nothing else is watched on that path: before 3.9 removing one kind
    /// would remove others too. Since 3.5. Rarely needed: dropping a stream removes its watch, and an unused one-shot
    /// watch costs nothing.
    ///
    /// # Errors
    /// [`PathError`] if `path` is not a valid path.
    pub fn remove_watches(&self, path: &str, kind: WatchKind) -> Result<(), PathError> {
        let path = self.handle.chroot.resolve(path, Naming::Exact)?;
        let (kinds, path) = (kind.armed_by(), Arc::from(&*path));
        self.handle.command_in_turn(Command::RemoveWatches { kinds, path });
        Ok(())
    }
}

impl Request<'_, WatchStream, ReadError> {
    /// Watches everything below the node too. A change of a child is not reported again as a change of the set of
    /// children.
    pub const fn recursive(self) -> Self {
        self.covering(WatchMode::Recursive)
    }

    pub(crate) const fn covering(mut self, nodes: WatchMode) -> Self {
        if let Ask::Watch { mode, .. } = &mut self.ask {
            *mode = nodes;
        }
        self
    }

    /// Sets how many events are kept for a busy reader, at least 1; one more replaces all of them by one
    /// [`Resync::Lagged`](crate::Resync::Lagged). In addition, the paths of the events kept are limited to 1 MiB.
    /// Default: [`ConnectOptions::watch_items_max`](crate::ConnectOptions::watch_items_max).
    pub fn capacity(mut self, items: usize) -> Self {
        if let Ask::Watch { capacity, .. } = &mut self.ask {
            *capacity = Some(items);
        }
        self
    }
}
