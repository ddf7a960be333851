//! A node that stands for a lock, and its state: whether it still does, and if not, why.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Mutex, PoisonError, atomic::AtomicBool},
    task::Poll,
};

use tokio::{
    sync::{OnceCell, watch},
    time::sleep,
};
use zk_client::{Client, EventType, LeaseKeeper, NodeEvent, SessionEnd, SessionState, Stat, Watch};

use super::{Status, owned::Slot};
use crate::error::Lost;

/// A node that stands for a lock, and its state, shared by all holders that have it in turn.
#[derive(Debug)]
pub(crate) struct HeldNode {
    pub(crate) client: Client,
    pub(crate) path: String,
    /// The transaction that created it, if other contenders may have nodes of the same name.
    pub(super) number: Option<i64>,
    /// What its guard has of it.
    pub(super) owned: Slot,
    /// On the node. Armed by the keeper, and looked at by all views.
    own_watch: Mutex<Option<Watch>>,
    /// Whether there is a task that watches it.
    pub(super) has_keeper: AtomicBool,
    pub(super) known: watch::Sender<Known>,
    /// Why it is lost, once that is certain.
    reason: OnceCell<Lost>,
    /// The holder of a lock relies on its session.
    _lease: LeaseKeeper,
}

/// The known state of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// Whether it no longer stands for a lock. Until a reason is certain it counts as [`Lost::NodeDeleted`].
    pub(super) is_lost: bool,
    /// Whether a client has asked for the lock back.
    pub(super) is_revoked: bool,
    /// Whether it is being released.
    pub(super) is_put_away: bool,
    /// Number of scopes with work in progress.
    pub(super) working: u32,
}

impl HeldNode {
    pub(super) fn new(client: Client, path: String, number: Option<i64>) -> Self {
        Self {
            _lease: client.keep_lease(),
            client,
            path,
            number,
            owned: Slot::default(),
            own_watch: Mutex::new(None),
            has_keeper: AtomicBool::new(false),
            known: watch::Sender::new(Known::default()),
            reason: OnceCell::new(),
        }
    }

    pub(super) fn status(&self) -> Status {
        self.look();
        if let Some(lost) = self.loss() {
            return Status::Lost(lost);
        }
        let session = self.client.session();
        let lease_left = session.lease_left();
        match session.state() {
            SessionState::Ended(end) => Status::Lost(self.lose(Lost::SessionEnded(end))),
            SessionState::Closing => {
                Status::Lost(self.lose(Lost::SessionEnded(SessionEnd::Closed)))
            }
            _ if lease_left.is_zero() => Status::Lost(self.lose(Lost::LeaseRanOut)),
            SessionState::Connected { read_only: false } => Status::Held,
            _ => Status::Suspect { lease_left },
        }
    }

    /// Why it is lost, if it is known to be.
    pub(super) fn loss(&self) -> Option<Lost> {
        let lost = self.known.borrow().is_lost;
        lost.then(|| self.reason.get().copied().unwrap_or(Lost::NodeDeleted))
    }

    /// The loss of a lock that was taken away, also while the node is put away: the time of the lock goes on.
    pub(super) fn taken_away(&self) -> Option<Lost> {
        self.reason.get().copied().filter(|why| *why == Lost::HeldTooLong)
    }

    pub(super) fn lose(&self, lost: Lost) -> Lost {
        if !self.known.borrow().is_lost {
            // Fails if a faster caller has set the reason.
            let _ = self.reason.set(lost);
        }
        self.is_lost();
        self.loss().unwrap_or(lost)
    }

    fn is_lost(&self) {
        self.known.send_if_modified(|known| {
            let is_news = !known.is_lost && !known.is_put_away;
            if is_news {
                let why = self.reason.get().map(Lost::to_string);
                let why =
                    why.as_deref().unwrap_or("own node is gone, by a delete or with the session");
                tracing::warn!(path = self.path, why, "lock is lost");
            }
            known.is_lost |= is_news;
            is_news
        });
    }

    /// Why it is lost. Servers delete the nodes of a session that ends before they drop its connection: so if the node
    /// is gone, this asks whether the session still exists. That lasts until it is connected, or over.
    pub(super) async fn reason(&self) -> Lost {
        let find_out = || async {
            let Err(error) = self.client.exists(&self.path).await else { return Lost::NodeDeleted };
            // The error may be here before the state is.
            match (error.session_end(), self.client.session().state()) {
                (Some(end), _) | (None, SessionState::Ended(end)) => Lost::SessionEnded(end),
                _ => Lost::NodeDeleted,
            }
        };
        *self.reason.get_or_init(find_out).await
    }

    /// Processes an event that the watch has received already, whichever task was to receive it.
    fn look(&self) {
        let event = {
            let mut slot = self.own_watch.lock().unwrap_or_else(PoisonError::into_inner);
            let event = slot.as_mut().and_then(Watch::try_event);
            if event.is_some() {
                *slot = None;
            }
            event
        };
        event.into_iter().for_each(|event| self.hear(event));
    }

    /// The next event of the watch; `None` if there is no watch any more.
    pub(super) async fn event(&self) -> Option<Result<NodeEvent, SessionEnd>> {
        poll_fn(|cx| {
            let mut slot = self.own_watch.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(watch) = slot.as_mut() else { return Poll::Ready(None) };
            let event = Pin::new(watch).poll(cx);
            if event.is_ready() {
                *slot = None;
            }
            event.map(Some)
        })
        .await
    }

    pub(super) fn hear(&self, event: Result<NodeEvent, SessionEnd>) {
        match event {
            Ok(event) if event.kind == EventType::NODE_DELETED => self.is_lost(),
            Ok(_) => {}
            Err(end) => {
                self.lose(Lost::SessionEnded(end));
            }
        }
    }

    pub(super) fn is_watched(&self) -> bool {
        self.own_watch.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn watched_by(&self, watch: Option<Watch>) {
        *self.own_watch.lock().unwrap_or_else(PoisonError::into_inner) = watch;
    }

    /// Records that a client has asked for the lock back.
    pub(super) fn revoke(&self) {
        self.known.send_if_modified(|known| !std::mem::replace(&mut known.is_revoked, true));
    }

    /// Whether this node of the same name is another one.
    pub(super) fn is_another(&self, stat: &Stat) -> bool {
        self.number.is_some_and(|number| stat.czxid.0 != number)
    }

    /// Waits until the session can no longer be relied on, or the loss is known otherwise. No request.
    pub(super) async fn out_of_touch(&self) -> Lost {
        let (mut session, mut known) = (self.client.session(), self.known.subscribe());
        loop {
            if let Status::Lost(lost) = self.status() {
                return lost;
            }
            let lease_left = session.lease_left();
            tokio::select! {
                biased;
                _ = session.changed() => {}
                // The sender lives as long as `self`.
                _ = known.changed() => {}
                // The lease grows with every answer; look again when it would have run out.
                () = sleep(lease_left) => {}
            }
        }
    }
}
