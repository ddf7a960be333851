//! A copy and its published state.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::watch;

use super::{contents::Contents, node::CacheState, scope::Scope};
use crate::{
    carry::{published::SessionState, session::Session},
    error::{ReadError, SessionEnd},
    request::client::Client,
    watch::WatchEnd,
};

/// The state of a copy, shared by the parts that keep it in step.
#[derive(Clone)]
pub(super) struct CopyState {
    pub(super) contents: Arc<Contents>,
    pub(super) root: Arc<str>,
    pub(super) scope: Scope,
    pub(super) with_data: bool,
    pub(super) clear_at_end: bool,
    pub(super) state: Arc<watch::Sender<CacheState>>,
    /// The client to read from. Closed when the last handle of the cache has been dropped.
    pub(super) clients: watch::Receiver<Client>,
    /// Whether a client is followed. While this is locked, no other client is set.
    pub(super) has_follower: Arc<Mutex<bool>>,
    /// The epoch of the connection on which all watches are known to be armed.
    pub(super) connection: Arc<AtomicU64>,
}

/// A number that no connection has.
pub(super) const NO_CONNECTION: u64 = 0;

/// Why to stop following one client.
pub(super) enum Stop {
    /// Its session is over.
    Session(SessionEnd),
    /// There is another client, or this one has to be followed anew.
    Moved,
    /// The last handle of the cache has been dropped.
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

impl CopyState {
    pub(super) fn has_follower(&self) -> MutexGuard<'_, bool> {
        self.has_follower.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same copy for the client that was set last, and that client.
    pub(super) fn to_be_followed(&self) -> (Self, Client) {
        let mut next = self.clone();
        next.stands_on(NO_CONNECTION);
        let client = next.clients.borrow_and_update().clone();
        (next, client)
    }

    pub(super) fn stands_on(&self, connection: u64) {
        self.connection.store(connection, Ordering::Relaxed);
    }

    /// Whether the current connection is one on which all watches are armed.
    pub(super) fn is_standing(&self, session: &Session) -> bool {
        let connected = matches!(session.state(), SessionState::Connected { .. });
        connected && session.epoch() == self.connection.load(Ordering::Relaxed)
    }

    /// Everything has been read, except what the server refuses.
    pub(super) fn is_up_to_date(&self, refused: Option<&ReadError>) {
        self.show(
            refused.map_or(CacheState::Following, |error| CacheState::Refused(error.clone())),
        );
    }

    /// Something is known to be missing. A copy that has not been loaded cannot be behind.
    pub(super) fn is_behind(&self) {
        self.state.send_if_modified(|now| {
            let falls = !matches!(now, CacheState::Loading | CacheState::Behind);
            if falls {
                *now = CacheState::Behind;
            }
            falls
        });
    }

    /// Publishes a state, unless it is that of a client which was left: see [`Cache::move_to`](super::Cache::move_to).
    pub(super) fn show(&self, state: CacheState) {
        self.state.send_if_modified(|now| {
            let changes = *now != state && !self.is_moved();
            if changes {
                *now = state;
            }
            changes
        });
    }

    /// Whether another client has been set already.
    pub(super) fn is_moved(&self) -> bool {
        self.clients.has_changed().unwrap_or(false)
    }
}
