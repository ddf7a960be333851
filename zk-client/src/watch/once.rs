//! Watches that fire once.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::sync::oneshot::{self, error::TryRecvError};
use zk_proto::session::WatchNotice;

use super::event::{Event, NodeEvent};
use crate::{chroot::Chroot, error::SessionEnd};

/// Resolves when the watched node changes, once.
///
/// The server sends the event before it serves the change: a read answered later over the same connection reflects the
/// change; over another one, behind a [`sync`](crate::Client::sync). After a reconnect the event may stand for several
/// changes. Dropping the watch only stops listening; the server keeps its watch until it fires. A watch that has resolved, also by [`try_event`](Watch::try_event), must not be awaited again: that panics.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use std::time::Duration;
///
/// let ((names, _), mut changed) = zk.children("/").watch().await?;
/// assert!(changed.try_event().is_none(), "nothing has happened yet");
///
/// zk.create("/another", b"").await?;
/// let event = tokio::time::timeout(Duration::from_secs(5), &mut changed).await??;
/// println!("{}: {} children no more", event.kind, names.len());
/// # Ok(())
/// # }
/// ```
#[must_use = "a watch is armed on the server whether or not anybody listens"]
pub struct Watch {
    /// `None` once it has resolved.
    notice: Option<oneshot::Receiver<WatchNotice>>,
    /// Absolute.
    path: Arc<str>,
    chroot: Chroot,
}

impl Watch {
    /// Creates a watch, and the session's end of it.
    pub(crate) fn new(path: Arc<str>, chroot: Chroot) -> (Self, Sender) {
        let (sender, notice) = oneshot::channel();
        let sender = Sender(Arc::new(Mutex::new(Some(sender))));
        (Self { notice: Some(notice), path, chroot }, sender)
    }

    /// Returns the event, if there has been one; never waits. `None` also for a watch that has resolved.
    pub fn try_event(&mut self) -> Option<Result<NodeEvent, SessionEnd>> {
        match self.notice.as_mut()?.try_recv() {
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => Some(self.resolve(None)),
            Ok(notice) => Some(self.resolve(Some(notice))),
        }
    }

    fn resolve(&mut self, notice: Option<WatchNotice>) -> Result<NodeEvent, SessionEnd> {
        self.notice = None;
        match notice {
            Some(WatchNotice::Event(event)) => Ok(read_event(&self.chroot, &event)),
            Some(WatchNotice::Over(over)) => Err(over.into()),
            // The others are for persistent watches; without a driver there is no session.
            _ => Err(SessionEnd::Closed),
        }
    }
}

/// Where it is; not how it is told.
impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.chroot.relative(&self.path);
        f.debug_struct("Watch").field("path", &path).finish_non_exhaustive()
    }
}

impl Future for Watch {
    type Output = Result<NodeEvent, SessionEnd>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let notice = self.notice.as_mut().expect("a watch that has resolved is not awaited again");
        let notice = ready!(Pin::new(notice).poll(cx));
        Poll::Ready(self.resolve(notice.ok()))
    }
}

/// Converts an event for the client: its path is relative to the chroot.
pub(crate) fn read_event(chroot: &Chroot, event: &Event) -> NodeEvent {
    let path = chroot.relative(&event.path).to_owned();
    NodeEvent { kind: event.kind, path, zxid: event.zxid }
}

/// The session's end of a one-shot watch.
#[derive(Clone, Debug)]
pub(crate) struct Sender(Arc<Mutex<Option<oneshot::Sender<WatchNotice>>>>);

impl Sender {
    pub(super) fn notify(&self, notice: WatchNotice) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The watch may have been dropped.
        let _ = sender.map(|sender| sender.send(notice));
    }

    pub(super) fn is_gone(&self) -> bool {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}
