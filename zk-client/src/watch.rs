//! Watches that fire once.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::sync::oneshot;
use zk_proto::{
    EventType, Zxid, planted,
    session::{WatchNotice, Watcher},
};

use crate::{chroot::Chroot, error::SessionEnd};

/// What happened to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeEvent {
    /// What.
    pub kind: EventType,
    /// To which node, relative to the client's chroot.
    pub path: String,
    /// The transaction that did it. Servers before 3.9 do not say, and none does for an event that was
    /// missed while disconnected.
    pub zxid: Option<Zxid>,
}

/// Resolves when the watched node changes, once.
///
/// The server tells of a change before it shows it: a read answered later reflects the change. After a
/// reconnect the event may stand for several changes. Dropping the watch means not to listen; the
/// server keeps its part until it fires.
#[derive(Debug)]
#[must_use = "a watch is armed on the server whether or not anybody listens"]
pub struct Watch {
    notice: oneshot::Receiver<WatchNotice>,
    chroot: Chroot,
}

impl Watch {
    /// A watch, and what the session keeps of it.
    pub(crate) fn new(chroot: Chroot) -> (Self, Listener) {
        let (sender, notice) = oneshot::channel();
        (Self { notice, chroot }, Listener(Arc::new(Mutex::new(Some(sender)))))
    }

    /// The event, if there has been one: never waits. `None` also for a watch that has resolved.
    pub fn try_event(&mut self) -> Option<Result<NodeEvent, SessionEnd>> {
        let notice = self.notice.try_recv().ok()?;
        Some(self.read(notice))
    }

    fn read(&self, notice: WatchNotice) -> Result<NodeEvent, SessionEnd> {
        match notice {
            WatchNotice::Event(event) => {
                let mut path = self.chroot.relative(&event.path);
                if planted!(ChrootLeftOn) {
                    path = &event.path;
                }
                if planted!(ChrootTakenOffTwice) {
                    path = self.chroot.relative(path);
                }
                Ok(NodeEvent { kind: event.kind, path: path.to_owned(), zxid: event.zxid })
            }
            WatchNotice::Over(over) => Err(over.into()),
            // The others are for persistent watches.
            _ => Err(SessionEnd::Closed),
        }
    }
}

impl Future for Watch {
    type Output = Result<NodeEvent, SessionEnd>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let notice = ready!(Pin::new(&mut self.notice).poll(cx));
        // Without a driver there is no session.
        Poll::Ready(notice.map_or(Err(SessionEnd::Closed), |notice| self.read(notice)))
    }
}

/// What the session keeps of a watch.
#[derive(Clone, Debug)]
pub(crate) struct Listener(Arc<Mutex<Option<oneshot::Sender<WatchNotice>>>>);

impl Listener {
    pub(crate) fn notify(&self, notice: WatchNotice) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Nobody may be listening any more.
        let _ = sender.map(|sender| sender.send(notice));
    }
}

impl Watcher for Listener {
    fn is_gone(&self) -> bool {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}
