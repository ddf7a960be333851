//! The session's state, as the driver publishes it.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, futures::Notified};
use zk_proto::SessionId;

use crate::error::SessionEnd;

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// No connection has been made so far.
    Connecting,
    /// A server serves the session.
    Connected {
        /// Whether that server is cut off from the quorum.
        read_only: bool,
    },
    /// No server serves the session. The session lives on for a while, with its ephemeral nodes and watches.
    Disconnected,
    /// The application has closed it. Its ephemeral nodes may be gone at any moment.
    Closing,
    /// It is over, for good.
    Ended(SessionEnd),
}

/// The state that the driver publishes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    pub(crate) state: SessionState,
    /// Number of connections so far.
    pub(crate) epoch: u64,
    /// The last of them to a member without a quorum; 0 if there was none.
    pub(crate) read_only_epoch: u64,
    pub(crate) id: SessionId,
    pub(crate) timeout: Duration,
    /// Whether a server has confirmed that the session was closed.
    pub(crate) close_confirmed: bool,
}

impl Published {
    /// Changes the state, unless a later one has been published. Returns whether it did.
    pub(crate) fn enter(&mut self, state: SessionState) -> bool {
        let is_later = match self.state {
            SessionState::Ended(_) => false,
            SessionState::Closing => matches!(state, SessionState::Ended(_)),
            _ => true,
        };
        if is_later {
            self.state = state;
        }
        is_later
    }

    /// Returns why the driver has ended.
    pub(crate) const fn end(&self) -> SessionEnd {
        match self.state {
            SessionState::Ended(end) => end,
            _ => SessionEnd::Closed,
        }
    }
}

/// Where the driver publishes the state, and others wait for it to change. A tenth of a channel of tokio, which is made
/// for crowds: it has eight lists of those who wait.
#[derive(Debug)]
pub(crate) struct Board {
    published: Mutex<Published>,
    changed: Notify,
}

impl Board {
    pub(crate) const fn new(first: Published) -> Self {
        Self { published: Mutex::new(first), changed: Notify::const_new() }
    }

    pub(crate) fn get(&self) -> Published {
        *self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is published, and wakes all that wait, if `change` says that it did.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Published) -> bool) {
        let is_changed = change(&mut self.published.lock().unwrap_or_else(PoisonError::into_inner));
        if is_changed {
            self.changed.notify_waiters();
        }
    }

    /// Resolves at the next change: once it is [enabled](Notified::enable), none is missed.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}
