//! Follows one client, publishes the cache's state, and hands over to what follows the next.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use super::{
    copy_state::{CopyState, Stop},
    node::CacheState,
    work::Work,
};
use crate::{
    carry::{published::SessionState, session::Session},
    error::SessionEnd,
    request::client::Client,
};

/// Keeps one copy in step with one client, on the client's runtime.
pub(super) struct Follower {
    copy_state: CopyState,
    stop: Stop,
}

impl Follower {
    /// Begins to follow the client that was set last. There must be no other follower.
    pub(super) fn spawn(copy_state: &CopyState) {
        let (copy_state, client) = copy_state.to_be_followed();
        // Unless it finds another reason, it is dropped together with its runtime, on which the session's task runs too.
        let follower = Self { copy_state, stop: Stop::Session(SessionEnd::Closed) };
        client.clone().spawn(follower.run(client));
    }

    async fn run(mut self, client: Client) {
        self.stop = self.follow(client).await;
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

    /// Ends the copy, unless another client has been set meanwhile.
    fn end(&self, end: SessionEnd) {
        let Self { copy_state, .. } = self;
        let is_over = || !copy_state.is_moved();
        if copy_state.clear_at_end {
            copy_state.contents.clear(is_over);
        }
        copy_state.state.send_if_modified(|state| {
            let ends = is_over();
            if ends {
                *state = CacheState::Ended(end);
            }
            ends
        });
        copy_state.contents.end(end, is_over);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut has_follower = self.copy_state.has_follower();
        let goes_on = matches!(self.stop, Stop::Moved) || self.copy_state.is_moved();
        *has_follower = goes_on;
        drop(has_follower);
        if goes_on {
            self.copy_state.is_behind();
            Self::spawn(&self.copy_state);
        } else if let Stop::Session(end) = self.stop {
            self.end(end);
        }
    }
}
