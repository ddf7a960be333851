//! A view of the session: its state, and how long it is sure to last.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::task::coop::consume_budget;
use zk_proto::SessionId;

use crate::{
    carry::{
        known::Known,
        published::{Published, SessionState},
    },
    clock::Clock,
    error::SessionEnd,
};

/// A view of a client's session. Cheap to clone; does not keep the session alive.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use zk_client::{SessionEnd, SessionState};
///
/// let mut session = zk.session();
/// assert_eq!(session.state(), SessionState::Connected { read_only: false });
/// // Ephemeral nodes exist for at least this long, whatever happens to the connection.
/// assert!(session.lease_left() <= session.timeout());
///
/// server.expire(session.id()); // as if it had been out of reach for too long
/// while let state @ (SessionState::Connected { .. } | SessionState::Disconnected) = session.changed().await {
///     println!("{state:?}: sure for {:?}", session.lease_left());
/// }
/// assert_eq!(session.ended().await, SessionEnd::Expired);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session {
    known: Arc<Known>,
    /// The state, and the connection's epoch, that [`changed`](Session::changed) returned last.
    told: (SessionState, u64),
    clock: Clock,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let published = self.known.board.get();
        f.debug_struct("Session")
            .field("id", &published.id)
            .field("state", &published.state)
            .field("epoch", &published.epoch)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(known: Arc<Known>, clock: Clock) -> Self {
        let Published { state, epoch, .. } = known.board.get();
        Self { known, told: (state, epoch), clock }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Returns the same view, with every change so far marked as seen.
    pub(crate) fn renewed(&self) -> Self {
        Self::new(self.known.clone(), self.clock.clone())
    }

    /// Returns the session's id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.known.board.get().id
    }

    /// Returns the session's current state.
    #[must_use]
    pub fn state(&self) -> SessionState {
        let state = self.known.board.get().state;
        self.known.lease.over().map_or(state, SessionState::Ended)
    }

    /// Returns the number of connections that the session has had. By comparing it, the caller detects a reconnect in
    /// between, across which watches may report several events out of order.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.known.board.get().epoch
    }

    /// Returns the [`epoch`](Self::epoch) of the last connection to a member without a quorum; 0 if there was none.
    ///
    /// Such a member may show what is so nowhere else: up to 3.6 it ends sessions by itself, and their ephemeral nodes
    /// are gone there alone. No such member has answered a request if [`epoch`](Self::epoch), asked for before the
    /// request, is greater than this once the answer is there.
    #[must_use]
    pub fn read_only_epoch(&self) -> u64 {
        self.known.board.get().read_only_epoch
    }

    /// Returns the negotiated session timeout: how long servers keep the session without hearing from it.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.known.board.get().timeout
    }

    /// Returns how long the session is sure to last even if nothing more is received: counted from when the newest
    /// answered message was *sent*. Zero once it is not sure any more; a connection made in time raises it again.
    ///
    /// As long as anything is held in the session, be it an [`OwnedNode`](crate::OwnedNode), a lock or a
    /// [`LeaseKeeper`](crate::LeaseKeeper), only replies that involved the leader count, and a margin is subtracted:
    /// see [`ConnectOptions::lease`](crate::ConnectOptions::lease). Otherwise every reply counts in full. That is sound
    /// against a standalone server or a leader; but a member that is cut off from its leader keeps answering for a
    /// while after the leader has expired the session (`syncLimit` ticks at most).
    #[must_use]
    pub fn lease_left(&self) -> Duration {
        match self.state() {
            SessionState::Ended(_) | SessionState::Closing => Duration::ZERO,
            _ => self.known.lease.until().saturating_sub((self.clock)()),
        }
    }

    /// Returns how many nodes of the session have lost their owner while no server has confirmed their delete; the
    /// session keeps deleting them. Above 0 for longer than a reply takes only while servers are out of reach or
    /// refuse. 0 once the session is over: the nodes go with it.
    #[must_use]
    pub fn orphans(&self) -> usize {
        match self.state() {
            SessionState::Ended(_) => 0,
            _ => self.known.sweeps.count(),
        }
    }

    /// Waits until the state differs from the one returned last (or from that of when this value was made), and returns
    /// the newest. No state is returned twice in a row, except the end, which every call returns at once, but for other
    /// tasks of the thread that run now and then. Of the states passed in between, one is returned: a disconnection, if
    /// there is another connection now.
    ///
    /// Dropping the future loses nothing.
    pub async fn changed(&mut self) -> SessionState {
        loop {
            let mut changed = pin!(self.known.board.changed());
            changed.as_mut().enable();
            let Published { state, epoch, .. } = self.known.board.get();
            let (told, of) = self.told;
            let is_connected = |state| matches!(state, SessionState::Connected { .. });
            // A disconnection has passed in between.
            let has_passed = is_connected(told) && is_connected(state) && epoch != of;
            let newest = if has_passed { SessionState::Disconnected } else { state };
            self.told = (newest, epoch);
            if newest != told {
                return newest;
            }
            if matches!(state, SessionState::Ended(_)) {
                // A caller that waits in a loop for another state would keep its thread, and a timeout around it.
                consume_budget().await;
                return state;
            }
            changed.await;
        }
    }

    /// Waits until the session is over.
    pub async fn ended(&self) -> SessionEnd {
        self.until_ended(Self::state).await
    }

    /// Waits until the session is over and all that was asked of it is answered; returns also whether a server has
    /// confirmed that it was closed.
    pub(crate) async fn wound_up(&self) -> (SessionEnd, bool) {
        let end = self.until_ended(|session| session.known.board.get().state).await;
        (end, self.known.board.get().close_confirmed)
    }

    async fn until_ended(&self, state: impl Fn(&Self) -> SessionState) -> SessionEnd {
        loop {
            let mut changed = pin!(self.known.board.changed());
            changed.as_mut().enable();
            // The driver publishes an end before it ends, also if its runtime ends first.
            if let SessionState::Ended(end) = state(self) {
                return end;
            }
            changed.await;
        }
    }

    /// Returns why the session has ended, if it has.
    pub(crate) fn end(&self) -> Option<SessionEnd> {
        match self.state() {
            SessionState::Ended(end) => Some(end),
            _ => None,
        }
    }

    pub(crate) const fn known(&self) -> &Arc<Known> {
        &self.known
    }
}
