//! What each member has for itself.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use zk_proto::{SessionId, Time, Zxid};

use super::{Conn, sessions::Sessions, tree::Tree, txn::Committed, watches::Watches};

/// Which clients a member serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// None: it has no leader.
    Nobody,
    /// Clients that only want to read.
    Readers,
    /// All clients.
    All,
}

/// What a leader goes by that is cut off, until it has noticed.
#[derive(Debug)]
pub(super) struct LeaderAlone {
    /// The sessions that there were when it was cut off.
    pub(super) sessions: BTreeSet<SessionId>,
    /// Whether it has proposed anything, which gets no votes.
    pub(super) proposes: bool,
}

/// What a member without a quorum has for itself alone while it serves readers.
#[derive(Debug)]
pub(super) struct Reader {
    /// The nodes as the others know them.
    pub(super) tree: Tree,
    /// The last transaction that is in them.
    pub(super) applied: Zxid,
    pub(super) sessions: Sessions,
}

impl Reader {
    /// When a session ends.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.sessions.deadline()
    }
}

/// One member's own state.
#[derive(Debug)]
pub(super) struct Replica {
    /// What the ensemble's configuration calls it.
    pub(super) number: i64,
    /// Whether the process runs.
    pub(super) up: bool,
    /// Whether it is cut off from the other members.
    pub(super) cut: bool,
    pub(super) service: Service,
    /// The epoch of the leader that it serves by.
    pub(super) epoch: i64,
    /// When it will have noticed that it is cut off from its leader, or from its followers.
    pub(super) gives_up: Option<Time>,
    /// If it is a leader that is cut off, and has not noticed.
    pub(super) alone: Option<LeaderAlone>,
    pub(super) lag: Duration,
    /// How many requests in a thousand it throttles.
    pub(super) throttled: u64,
    pub(super) tree: Tree,
    pub(super) watches: Watches,
    /// The last transaction that is in `tree`.
    pub(super) applied: Zxid,
    /// What it has for itself while it serves readers only; `tree` and `applied` have what it makes of that.
    pub(super) reader: Option<Box<Reader>>,
    /// The last transaction that it has heard of.
    pub(super) logged: Zxid,
    /// What is committed and not applied, with the time for it.
    pub(super) pending: VecDeque<(Time, Arc<Committed>)>,
    /// Sessions that it has heard of; it tells the leader when that asks, and can be reached.
    pub(super) touched: BTreeSet<SessionId>,
    /// Which connection each session has here.
    pub(super) bound: BTreeMap<SessionId, Conn>,
    /// How many frames and words have come so far.
    pub(super) received: u64,
    /// How many messages have left so far.
    pub(super) sent: u64,
    /// Connections whose next answer waits for what is to be applied.
    pub(super) waiting: BTreeSet<Conn>,
}

impl Replica {
    pub(super) fn new(number: i64, tree: Tree, watches_mix: bool, lag: Duration) -> Self {
        Self {
            number,
            up: true,
            cut: false,
            service: Service::Nobody,
            epoch: 0,
            gives_up: None,
            alone: None,
            lag,
            throttled: 0,
            tree,
            watches: Watches::new(watches_mix),
            applied: Zxid(0),
            reader: None,
            logged: Zxid(0),
            pending: VecDeque::new(),
            bound: BTreeMap::new(),
            received: 0,
            sent: 0,
            waiting: BTreeSet::new(),
            touched: BTreeSet::new(),
        }
    }

    /// Whether the other members can be reached.
    pub(super) const fn reachable(&self) -> bool {
        self.up && !self.cut
    }

    /// Whether it wants to have a leader, and can be heard.
    pub(super) fn looks(&self) -> bool {
        self.reachable() && self.service != Service::All
    }

    /// Whether it hears of the leader of this epoch.
    pub(super) fn follows(&self, epoch: i64) -> bool {
        self.reachable() && self.service == Service::All && self.epoch == epoch
    }

    /// When something happens here by itself. `leader`: the epoch of the leader that there is.
    pub(super) fn deadline(&self, leader: Option<i64>) -> Option<Time> {
        let hears = leader.is_some_and(|epoch| self.follows(epoch));
        let next = self.pending.front().filter(|_| hears).map(|(at, _)| *at);
        let ends = self.reader.as_ref().and_then(|reader| reader.deadline());
        next.into_iter().chain(self.gives_up).chain(ends).min()
    }

    pub(super) fn unbind(&mut self, session: SessionId, conn: Conn) {
        if self.bound.get(&session) == Some(&conn) {
            self.bound.remove(&session);
        }
    }
}
