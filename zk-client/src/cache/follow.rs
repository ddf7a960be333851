//! Following one client after the other, and saying where the copy stands.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use tokio::sync::watch;

use super::{
    node::CacheState,
    standing::{NO_CONNECTION, Standing, Stop},
    work::Work,
};
use crate::{
    carry::{published::SessionState, session::Session},
    error::SessionEnd,
    request::client::Client,
};

/// Keeps one copy in step.
pub(super) struct Follower {
    pub(super) standing: Standing,
    pub(super) clear_at_end: bool,
    /// Whom to ask. Closed when nobody has the cache any more.
    pub(super) clients: watch::Receiver<Client>,
}

impl Follower {
    pub(super) async fn run(mut self) {
        loop {
            let client = self.clients.borrow_and_update().clone();
            self.standing.stands_on(NO_CONNECTION);
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
            self.standing.is_behind();
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
        let mut work = pin!(Work::new(&self.standing, client).run());
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
            if !self.standing.is_standing(&session) {
                self.standing.is_behind();
            }
            state = session.changed().await;
        }
    }

    /// Nothing follows, unless there is another client already: see [`Cache::move_to`](super::Cache::move_to).
    fn end(&self, end: SessionEnd, clear: bool) {
        let is_over = || !self.clients.has_changed().unwrap_or(false);
        if clear && is_over() {
            self.standing.contents.remove("/");
        }
        self.standing.state.send_if_modified(|state| {
            let ends = is_over();
            if ends {
                *state = CacheState::Ended(end);
            }
            ends
        });
        self.standing.contents.end(end, is_over);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // With its runtime, on which the session's own task lives too.
        if !matches!(*self.standing.state.borrow(), CacheState::Ended(_)) {
            self.end(SessionEnd::Closed, false);
        }
    }
}
