//! Follows one client after the other, and publishes the cache's state.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use super::{
    copy_state::{CopyState, NO_CONNECTION, Stop},
    node::CacheState,
    work::Work,
};
use crate::{
    carry::{published::SessionState, session::Session},
    error::SessionEnd,
    request::client::Client,
};

/// Keeps one copy in step.
pub(super) struct Follower {
    pub(super) copy_state: CopyState,
    pub(super) clear_at_end: bool,
}

impl Follower {
    pub(super) async fn run(mut self) {
        loop {
            let client = self.copy_state.clients.borrow_and_update().clone();
            self.copy_state.stands_on(NO_CONNECTION);
            match self.follow(client).await {
                Stop::Dropped => return,
                Stop::Moved => {}
                Stop::Session(end) => {
                    self.end(end, self.clear_at_end);
                    if self.copy_state.clients.changed().await.is_err() {
                        return;
                    }
                }
            }
            self.copy_state.is_behind();
        }
    }

    /// Follows one client until there is a reason to stop, whatever it is waiting for.
    async fn follow(&self, client: Client) -> Stop {
        let mut clients = self.copy_state.clients.clone();
        let mut left = pin!(async move {
            match clients.changed().await {
                Ok(()) => Stop::Moved,
                Err(_) => Stop::Dropped,
            }
        });
        let mut lost = pin!(self.notice_losses(client.session()));
        let mut work = pin!(Work::new(&self.copy_state, client).run());
        poll_fn(|cx| match (left.as_mut().poll(cx), lost.as_mut().poll(cx)) {
            (Poll::Ready(stop), _) | (_, Poll::Ready(stop)) => Poll::Ready(stop),
            (Poll::Pending, Poll::Pending) => work.as_mut().poll(cx),
        })
        .await
    }

    /// Publishes the loss of a connection on which watches were armed, even while a read is in progress.
    async fn notice_losses(&self, mut session: Session) -> Stop {
        let mut state = session.state();
        loop {
            if let SessionState::Ended(end) = state {
                return Stop::Session(end);
            }
            if !self.copy_state.is_standing(&session) {
                self.copy_state.is_behind();
            }
            state = session.changed().await;
        }
    }

    /// Ends the copy, unless another client has been set already.
    fn end(&self, end: SessionEnd, clear: bool) {
        let is_over = || !self.copy_state.is_moved();
        if clear && is_over() {
            self.copy_state.contents.remove("/");
        }
        self.copy_state.state.send_if_modified(|state| {
            let ends = is_over();
            if ends {
                *state = CacheState::Ended(end);
            }
            ends
        });
        self.copy_state.contents.end(end, is_over);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // Dropped together with its runtime, on which the session's task runs too.
        if !matches!(*self.copy_state.state.borrow(), CacheState::Ended(_)) {
            self.end(SessionEnd::Closed, self.clear_at_end);
        }
    }
}
