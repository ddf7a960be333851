//! E1: why something was refused, or lost, is true. L4: what has a limit ends there, and not before. S2: a lock stays
//! unused after a holder that has not released it, where that is wanted.

use std::collections::{BTreeMap, BTreeSet};

use zk_client::{Cause, Rejection, Session, SessionEnd, SessionState};
use zk_locks::{AcquireError, Contender, FencingToken, Lost};
use zk_proto::{
    SessionId, Zxid,
    path::{join, parent},
};
use zk_testkit::server::{Committed, Txn};

use super::{Checker, ROUNDING, exclusion::Held};
use crate::{
    history::{History, What},
    sim::{
        recipe::{Recipe, Site},
        workload::Drawn,
    },
};

/// An ephemeral node that was deleted.
#[derive(Debug)]
struct Gone {
    path: Box<str>,
    owner: SessionId,
    born: Zxid,
}

/// What there was in queues, and who took it away.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    /// The ephemeral nodes, and the transactions that made them.
    born: BTreeMap<Box<str>, Zxid>,
    /// Those that were deleted in the transaction at hand.
    gone: Vec<Gone>,
    /// How many nodes each queue has had, of each session.
    comings: BTreeMap<Box<str>, BTreeMap<SessionId, usize>>,
    /// Sessions that others have taken a node from, and when they did last.
    deprived: BTreeMap<SessionId, u64>,
    /// What clients have begun to release: the transactions that made the nodes. These may outlive that, and go with their
    /// sessions.
    let_go: BTreeSet<Zxid>,
    /// When the first in a queue went, if it went with its session and nobody had begun to release it.
    unreleased: BTreeMap<Box<str>, (u64, SessionId)>,
    /// Until when the session that is being closed could be relied on.
    relied: BTreeMap<SessionId, u64>,
}

/// Who asked for something, how, and when.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) client: u32,
    pub(crate) session: Session,
    pub(crate) site: Site,
    pub(crate) drawn: Option<Drawn>,
    /// For how long it wanted to wait, if it said so.
    pub(crate) within: Option<u64>,
    pub(crate) since: u64,
    /// How many were in the queue then, and how many of its own and of others had been before.
    queue: (usize, usize, usize),
}

/// What is said of something that was held.
pub(crate) struct Loss {
    pub(crate) client: u32,
    pub(crate) session: Session,
    pub(crate) why: Lost,
    pub(crate) drawn: Option<Drawn>,
    /// For how long it was held, if that is known.
    pub(crate) held: Option<u64>,
    /// When it was certainly held.
    pub(crate) since: Option<u64>,
    /// The nodes that stood for it, of which none is made anew.
    pub(crate) nodes: Vec<(String, FencingToken)>,
}

impl Reasons {
    pub(super) fn see(&mut self, zxid: Zxid, path: &str, what: What) {
        match what {
            What::Created(node) if node.owner.0 != 0 => {
                self.born.insert(path.into(), zxid);
                if let Some(queue) = parent(path) {
                    let comings = self.comings.entry(queue.into()).or_default();
                    *comings.entry(node.owner).or_default() += 1;
                }
            }
            What::Deleted(owner) if owner.0 != 0 => {
                let born = self.born.remove(path).unwrap_or(Zxid(0));
                self.gone.push(Gone { path: path.into(), owner, born });
            }
            _ => {}
        }
    }

    /// A transaction has been taken in as a whole.
    pub(super) fn count(&mut self, history: &History, now: u64, committed: &Committed) {
        let ends = matches!(committed.txn, Txn::CloseSession);
        for Gone { path, owner, born } in std::mem::take(&mut self.gone) {
            if owner != committed.stamp.session {
                self.deprived.insert(owner, now);
            }
            let Some(queue) = parent(&path) else { continue };
            let is_ahead = |live: &crate::history::Live| live.owner.0 != 0 && live.czxid < born;
            let was_first = !history.children(queue).any(|(_, live)| is_ahead(live));
            let was_let_go = self.let_go.remove(&born);
            if was_first && ends && !was_let_go {
                self.unreleased.insert(queue.into(), (now, owner));
            } else if was_first {
                self.unreleased.remove(queue);
            }
        }
    }
}

/// Its end was asked for, or has come.
fn is_over(session: &Session) -> bool {
    matches!(session.state(), SessionState::Closing | SessionState::Ended(_))
}

impl Asker {
    /// The end of a wait is not before its time.
    fn waits_long_enough(&self, now: u64, drift: u64) -> bool {
        self.within.is_some_and(|within| now + drift + ROUNDING >= self.since + within)
    }
}

impl Checker {
    pub(crate) fn wants(
        &self,
        client: u32,
        session: Session,
        site: Site,
        drawn: Option<Drawn>,
    ) -> Asker {
        let queue = self.queue_of(site, session.id());
        Asker { client, session, site, drawn, within: None, since: self.now, queue }
    }

    fn queue_of(&self, site: Site, session: SessionId) -> (usize, usize, usize) {
        let path = site.path();
        let there = self.history.children(&path).filter(|(_, live)| live.owner.0 != 0).count();
        let comings = self.reasons.comings.get(&*path);
        let (mut own, mut others) = (0, 0);
        for (owner, came) in comings.into_iter().flatten() {
            *(if *owner == session { &mut own } else { &mut others }) += came;
        }
        (there, own, others)
    }

    /// How many nodes below a path a session has had.
    pub(crate) fn came(&self, path: &str, session: SessionId) -> usize {
        let comings = self.reasons.comings.get(path);
        comings.and_then(|comings| comings.get(&session)).copied().unwrap_or_default()
    }

    /// How much a client's clock may be wrong by in a time, in milliseconds.
    pub(crate) fn drift(&self, client: u32, time: u64) -> u64 {
        time * u64::from(self.options.drifts[client as usize].unsigned_abs()) / 1_000_000 + 1
    }

    /// Something was not to be had, and this is said to be why.
    pub(crate) fn refused(&mut self, asker: &Asker, error: &AcquireError) {
        let Asker { client, session, site, drawn, within, .. } = asker;
        let is_true = match error {
            AcquireError::TimedOut => {
                let drift = within.map_or(0, |within| self.drift(*client, within));
                asker.waits_long_enough(self.now, drift)
            }
            AcquireError::WouldDeadlock => {
                site.recipe == Recipe::RwLock || self.options.shares_paths
            }
            _ => self.is_reason(*client, session, *drawn, error),
        };
        if !is_true {
            let text = format!(
                "c{client} is refused {}: {error}, by {drawn:?}, {:?}",
                site.path(),
                session.state(),
            );
            self.shown_wrong(*client, "E1", text);
        }
    }

    /// Something of its own has failed, and this is said to be why.
    pub(crate) fn failed(
        &mut self,
        client: u32,
        session: &Session,
        drawn: Option<Drawn>,
        what: &str,
        error: &AcquireError,
    ) {
        if !self.is_reason(client, session, drawn, error) {
            self.shown_wrong(client, "E1", format!("c{client}, {what}: {error}"));
        }
    }

    /// Whether this can be why something has failed, however it was asked for.
    fn is_reason(
        &self,
        client: u32,
        session: &Session,
        drawn: Option<Drawn>,
        error: &AcquireError,
    ) -> bool {
        match error {
            AcquireError::SessionEnded(end) => self.may_have_ended(session, *end),
            AcquireError::LeaseRanOut => true,
            AcquireError::NodeDeleted => self.may_have_lost_a_node(client, session),
            // Another task of a cohort held it.
            AcquireError::HeldTooLong => drawn.is_none(),
            AcquireError::QueueFull { ahead } => {
                drawn.is_none_or(|drawn| drawn.max_waiters.is_some_and(|most| most < *ahead))
            }
            AcquireError::PathMissing { .. } => drawn.is_none_or(|drawn| drawn.requires_parent),
            AcquireError::Rejected(Rejection::ReadOnly) => self.options.reads_alone(client),
            // Recipes are patient.
            AcquireError::Unavailable(cause) => {
                matches!(
                    cause,
                    Cause::Disconnected(_) | Cause::TooLarge { .. } | Cause::CostsConnection(_)
                )
            }
            _ => false,
        }
    }

    /// Something was said to be taken.
    pub(crate) fn not_free(&mut self, asker: &Asker) {
        let is_queue =
            matches!(asker.site.recipe, Recipe::Lock | Recipe::HerdLock | Recipe::RwLock);
        let rotates = asker.drawn.is_none_or(|drawn| drawn.rotates);
        // Other members may be behind, and list who has gone.
        if !is_queue || rotates || self.options.members > 1 {
            return;
        }
        let (before, own_before, others_before) = asker.queue;
        let (_, own, others) = self.queue_of(asker.site, asker.session.id());
        self.count("locks that were not to be had at once");
        // A node of its own may be that of an attempt before, which has been given up.
        if before == 0 && (own, others) == (own_before, others_before) {
            let text = format!("c{} is told that {} is taken", asker.client, asker.site.path());
            self.shown_wrong(asker.client, "E1", text);
        }
    }

    /// It has ended so, or that may become known at this moment.
    fn may_have_ended(&self, session: &Session, so: SessionEnd) -> bool {
        match session.state() {
            // What is asked for while it closes is told so, also if it expires before any server hears of that.
            SessionState::Ended(SessionEnd::Expired) if so == SessionEnd::Closed => {
                self.reasons.relied.contains_key(&session.id())
            }
            SessionState::Ended(end) => end == so,
            SessionState::Closing | SessionState::Disconnected => true,
            _ => false,
        }
    }

    /// A session is about to be closed.
    pub(crate) fn closes(&mut self, client: u32, session: &Session) {
        if is_over(session) {
            return;
        }
        let left = session.lease_left().as_millis() as u64;
        let until = self.now + left.saturating_sub(self.drift(client, left) + ROUNDING);
        self.sends_the_rest(client);
        self.reasons.relied.entry(session.id()).or_insert(until);
    }

    /// What was held is lost, and this is said to be why.
    pub(crate) fn lost(&mut self, loss: &Loss) {
        let Loss { client, session, why, drawn, held, .. } = loss;
        let client = *client;
        let is_true = match *why {
            Lost::SessionEnded(end) => self.may_have_ended(session, end),
            Lost::NodeDeleted => {
                self.may_have_lost_a_node(client, session) && self.is_gone(session, &loss.nodes)
            }
            Lost::LeaseRanOut => {
                // By the close, or some time before it.
                let relied = self.reasons.relied.get(&session.id());
                let is_left = relied.is_none_or(|&until| self.now >= until)
                    && matches!(session.state(), SessionState::Closing | SessionState::Ended(_));
                is_left
                    || loss.since.is_none_or(|since| self.may_have_run_out(client, session, since))
            }
            Lost::HeldTooLong => drawn.is_none_or(|drawn| {
                drawn.release_after.is_some_and(|limit| {
                    held.is_none_or(|held| held + self.drift(client, limit) + ROUNDING >= limit)
                })
            }),
            _ => true,
        };
        if !is_true {
            let text = format!(
                "c{client} has lost {:?} after {held:?} ms, had it at {:?}: {why}, by {drawn:?}",
                loss.nodes, loss.since
            );
            self.shown_wrong(client, "E1", text);
        }
    }

    /// Whether one of these nodes is not there any more, or goes with its session.
    fn is_gone(&self, session: &Session, nodes: &[(String, FencingToken)]) -> bool {
        let is_there = |(path, token): &(String, FencingToken)| {
            self.history.live.get(&**path).is_some_and(|live| live.czxid.0 == token.get())
        };
        let excused = self.is_doubtful(session.id()) || is_over(session);
        nodes.is_empty() || excused || !nodes.iter().all(is_there)
    }

    /// Something is held still, after so long.
    pub(crate) fn kept(&mut self, client: u32, drawn: Option<Drawn>, held: u64, stalled: u64) {
        let Some(limit) = drawn.and_then(|drawn| drawn.release_after) else { return };
        if held > limit + self.drift(client, limit) + stalled + ROUNDING {
            let text =
                format!("c{client} holds for {held} ms what is to be released after {limit}");
            self.violated("L4", text);
        }
    }

    /// A place in a queue is said to be behind so many.
    pub(crate) fn is_behind(&mut self, asker: &Asker, ahead: Option<usize>) {
        let (_, own, others) = self.queue_of(asker.site, asker.session.id());
        if ahead.is_some_and(|ahead| ahead >= (own + others).max(1)) {
            let path = asker.site.path();
            let text = format!("c{} is behind {ahead:?} in {path}", asker.client);
            self.shown_wrong(asker.client, "E1", text);
        }
    }

    /// A release has begun: what was held is not used any more.
    pub(crate) fn releases(&mut self, token: FencingToken) {
        self.reasons.let_go.insert(Zxid(token.get()));
    }

    /// What a task of a cohort has released, another one may hold.
    pub(super) fn holds_on(&mut self, token: FencingToken) {
        self.reasons.let_go.remove(&Zxid(token.get()));
    }

    /// A release was confirmed: the node is gone.
    pub(crate) fn released(&mut self, client: u32, path: &str, token: FencingToken) {
        let stays = self.history.live.get(path).is_some_and(|live| live.czxid.0 == token.get());
        if stays {
            let text = format!("c{client} is told that {path} is released, and it is there");
            self.shown_wrong(client, "E1", text);
        }
    }

    /// What a listing said of those who wait, when it came.
    pub(crate) fn listed(&mut self, client: u32, path: &str, listed: &[Contender]) {
        let in_order = listed.windows(2).all(|pair| pair[0].token <= pair[1].token);
        let invented = listed.iter().find(|it| {
            let node = join(path, &it.name);
            let live = self.history.live.get(&*node);
            // One that is there has that token; one that was has gone since.
            live.is_some_and(|live| live.czxid.0 != it.token.get())
        });
        if let Some(wrong) =
            invented.map(|it| format!("{it:?}")).or_else(|| (!in_order).then(String::new))
        {
            let text = format!("c{client} is told of {listed:?} in {path}: {wrong}");
            self.shown_wrong(client, "E1", text);
        }
    }

    /// Those who hold permits were listed for one of them.
    pub(crate) fn is_listed(
        &mut self,
        client: u32,
        path: &str,
        token: FencingToken,
        listed: &[Contender],
    ) {
        let holds = self.history.children(path).any(|(_, live)| live.czxid.0 == token.get());
        if holds && !listed.iter().any(|it| it.token == token) {
            let text = format!("c{client} holds {token} in {path}, and is told of {listed:?}");
            self.shown_wrong(client, "E1", text);
        }
        self.listed(client, path, listed);
    }

    /// Others have taken a node of it away, of which it has heard only now; or its session is over and it does not know
    /// yet.
    fn may_have_lost_a_node(&self, client: u32, session: &Session) -> bool {
        let id = session.id();
        let heard = |at: u64| self.now <= at + self.patience(client) || self.was_throttled(client);
        self.reasons.deprived.get(&id).is_some_and(|&at| heard(at))
            || self.is_doubtful(id)
            || is_over(session)
    }

    /// Nobody uses it so shortly behind one that has not released it.
    pub(super) fn check_delay(&mut self, held: &Held) {
        let delay = held.drawn.and_then(|drawn| drawn.lock_delay).filter(|_| held.is_in_turn());
        let (Some(delay), Some(queue)) = (delay, held.site.queue()) else { return };
        let Some(&(since, of)) = self.reasons.unreleased.get(&*queue) else { return };
        let early = self.now + self.drift(held.client, delay) + ROUNDING < since + delay;
        if early && !self.was_closed(of) {
            let client = held.client;
            let text = format!("c{client} got {queue} {delay} ms too early, {of} ended at {since}");
            self.violated("S2", text);
        }
    }
}
