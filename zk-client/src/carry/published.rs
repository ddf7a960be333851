//! Where a session stands, as the driver publishes it.

use std::time::Duration;

use zk_proto::SessionId;

use crate::error::SessionEnd;

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// Never connected so far.
    Connecting,
    /// A server serves the session.
    Connected {
        /// Whether that server is cut off from the quorum.
        read_only: bool,
    },
    /// No server does. The session lives on for a while, and with it its ephemeral nodes and watches.
    Disconnected,
    /// Its user has told it to end. Its ephemeral nodes may be gone at any moment.
    Closing,
    /// It is over, for good.
    Ended(SessionEnd),
}

/// What the driver publishes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    pub(crate) state: SessionState,
    /// Connections so far.
    pub(crate) epoch: u64,
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

    /// Why there is no driver any more.
    pub(crate) const fn end(&self) -> SessionEnd {
        match self.state {
            SessionState::Ended(end) => end,
            _ => SessionEnd::Closed,
        }
    }
}
