//! Following one client after the other, and saying where the copy stands.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use tokio::sync::watch;

use super::{CacheState, contents::Contents, scope::Scope, work::Work};
use crate::{
    Client, Session,
    error::{ReadError, SessionEnd},
    session::SessionState,
    watch::WatchEnd,
};

/// Keeps one copy in step.
pub(super) struct Follower {
    pub(super) contents: Arc<Contents>,
    pub(super) root: Arc<str>,
    pub(super) scope: Scope,
    pub(super) with_data: bool,
    pub(super) clear_at_end: bool,
    pub(super) state: Arc<watch::Sender<CacheState>>,
    /// Whom to ask. Closed when nobody has the cache any more.
    pub(super) clients: watch::Receiver<Client>,
    /// The number of the connection on which all watches are known to stand.
    pub(super) standing_on: AtomicU64,
}

/// No connection has this number.
pub(super) const NO_CONNECTION: u64 = 0;

/// Why to stop following one client.
pub(super) enum Stop {
    /// Its session is over.
    Session(SessionEnd),
    /// There is another client.
    Moved,
    /// Nobody has the cache any more.
    Dropped,
}

impl From<WatchEnd> for Stop {
    fn from(end: WatchEnd) -> Self {
        match end {
            WatchEnd::Session(end) => Self::Session(end),
            WatchEnd::Unsupported | WatchEnd::Removed => Self::Moved,
        }
    }
}

impl Follower {
    pub(super) async fn run(mut self) {
        loop {
            let client = self.clients.borrow_and_update().clone();
            self.stands_on(NO_CONNECTION);
            match self.follow(client).await {
                Stop::Dropped => return,
                Stop::Moved => {}
                Stop::Session(end) => {
                    self.end(end, self.clear_at_end);
                    if self.clients.changed().await.is_err() {
                        return;
                    }
                }
            }
            self.is_behind();
        }
    }

    /// Until there is a reason to stop, in whatever it is just waiting.
    async fn follow(&self, client: Client) -> Stop {
        let mut clients = self.clients.clone();
        let mut left = pin!(async move {
            match clients.changed().await {
                Ok(()) => Stop::Moved,
                Err(_) => Stop::Dropped,
            }
        });
        let mut lost = pin!(self.notice_losses(client.session()));
        let mut work = pin!(Work::new(self, client).run());
        poll_fn(|cx| match (left.as_mut().poll(cx), lost.as_mut().poll(cx)) {
            (Poll::Ready(stop), _) | (_, Poll::Ready(stop)) => Poll::Ready(stop),
            (Poll::Pending, Poll::Pending) => work.as_mut().poll(cx),
        })
        .await
    }

    /// Says so when a connection is lost on which watches stood, whatever is being read meanwhile.
    async fn notice_losses(&self, mut session: Session) -> Stop {
        let mut state = session.state();
        loop {
            if let SessionState::Ended(end) = state {
                return Stop::Session(end);
            }
            if !self.is_standing(&session) {
                self.is_behind();
            }
            state = session.changed().await;
        }
    }

    pub(super) fn stands_on(&self, connection: u64) {
        self.standing_on.store(connection, Ordering::Relaxed);
    }

    /// Whether the connection there is now is one on which all watches stand.
    pub(super) fn is_standing(&self, session: &Session) -> bool {
        let connected = matches!(session.state(), SessionState::Connected { .. });
        connected && session.epoch() == self.standing_on.load(Ordering::Relaxed)
    }

    /// Everything has been read, but for what is refused.
    pub(super) fn is_up_to_date(&self, refused: Option<&ReadError>) {
        self.show(
            refused.map_or(CacheState::Following, |error| CacheState::Refused(error.clone())),
        );
    }

    /// Something is known to be missing.
    pub(super) fn is_behind(&self) {
        // What has never been there is not behind.
        if *self.state.borrow() != CacheState::Loading {
            self.show(CacheState::Behind);
        }
    }

    pub(super) fn show(&self, state: CacheState) {
        self.state.send_if_modified(|now| {
            let changes = *now != state;
            *now = state;
            changes
        });
    }

    /// Nothing follows, unless there is another client already: see [`Cache::move_to`](super::Cache::move_to).
    fn end(&self, end: SessionEnd, clear: bool) {
        let is_over = || !self.clients.has_changed().unwrap_or(false);
        if clear && is_over() {
            self.contents.remove("/");
        }
        self.state.send_if_modified(|state| {
            let ends = is_over();
            if ends {
                *state = CacheState::Ended(end);
            }
            ends
        });
        self.contents.end(end, is_over);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // With its runtime, on which the session's own task lives too.
        if !matches!(*self.state.borrow(), CacheState::Ended(_)) {
            self.end(SessionEnd::Closed, false);
        }
    }
}
