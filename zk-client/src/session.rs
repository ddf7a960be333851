//! A view of the session: where it stands, and how long it is sure to last.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;
use zk_proto::{SessionId, Time};

use crate::{clock::Clock, error::SessionEnd, sweep::Unconfirmed};

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

/// Until when the servers are sure to keep the session, written by the driver and read by anyone.
#[derive(Debug, Default)]
pub(crate) struct Lease(AtomicU64);

impl Lease {
    pub(crate) fn publish(&self, until: Option<Time>) {
        let nanos = until.map_or(0, |until| until.since_epoch().as_nanos());
        self.0.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Release);
    }

    fn until(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Acquire))
    }
}

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
/// // Ephemeral nodes are there for at least so long, whatever happens to the connection.
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
    published: watch::Receiver<Published>,
    lease: Arc<Lease>,
    sweeps: Arc<Unconfirmed>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let published = *self.published.borrow();
        f.debug_struct("Session")
            .field("id", &published.id)
            .field("state", &published.state)
            .field("epoch", &published.epoch)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(
        published: watch::Receiver<Published>,
        lease: Arc<Lease>,
        sweeps: Arc<Unconfirmed>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { published, lease, sweeps, clock }
    }

    /// The same view, for which everything so far is past.
    pub(crate) fn renewed(&self) -> Self {
        let mut view = self.clone();
        view.published.mark_unchanged();
        view
    }

    /// The session's number, as servers know it.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.published.borrow().id
    }

    /// Where the session stands.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.published.borrow().state
    }

    /// Number of connections that the session has had. Whoever remembers it can tell later whether there
    /// was a reconnect in between, across which watches may report several events out of order.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.published.borrow().epoch
    }

    /// Negotiated session timeout: how long servers keep the session without hearing from it.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.published.borrow().timeout
    }

    /// How long the session is sure to last even if nothing more is heard: counted from when the newest
    /// message was *sent* that has been answered. Zero once it is not sure any more; a connection that
    /// comes back in time raises it again.
    ///
    /// Sound against a standalone server or a leader. A member that is cut off from its leader goes on
    /// answering for a while after the leader has given the session up (`syncLimit` ticks at most).
    #[must_use]
    pub fn lease_left(&self) -> Duration {
        match self.state() {
            SessionState::Ended(_) | SessionState::Closing => Duration::ZERO,
            _ => self.lease.until().saturating_sub(self.clock.now()),
        }
    }

    /// How many nodes of the session nobody owns any more although no server has confirmed that they are gone:
    /// it goes on deleting them. Above 0 for longer than an answer takes, while servers are out of reach or
    /// refuse. 0 once the session is over: they go with it.
    #[must_use]
    pub fn orphans(&self) -> usize {
        match self.state() {
            SessionState::Ended(_) => 0,
            _ => self.sweeps.count(),
        }
    }

    /// Waits until the state is another than when this was last called on this value (or since it was
    /// made), and returns the newest; intermediate states may be skipped. The end of a session never is.
    pub async fn changed(&mut self) -> SessionState {
        match self.published.changed().await {
            Ok(()) => self.published.borrow_and_update().state,
            Err(_) => SessionState::Ended(self.end().unwrap_or(SessionEnd::Closed)),
        }
    }

    /// Waits until the session is over.
    pub async fn ended(&self) -> SessionEnd {
        let mut published = self.published.clone();
        loop {
            let state = published.borrow_and_update().state;
            if let SessionState::Ended(end) = state {
                return end;
            }
            // Without a driver: it publishes an end before it goes, unless its runtime went first, and
            // then nobody keeps the session alive.
            if published.changed().await.is_err() {
                return self.end().unwrap_or(SessionEnd::Closed);
            }
        }
    }

    /// Why the session has ended, if it has.
    fn end(&self) -> Option<SessionEnd> {
        match self.state() {
            SessionState::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Whether a server has confirmed that the session was closed.
    pub(crate) fn is_close_confirmed(&self) -> bool {
        self.published.borrow().close_confirmed
    }
}
