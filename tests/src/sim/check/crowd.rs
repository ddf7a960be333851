//! S3 of semaphores: no more permits are taken than there are. B1: no participant passes a barrier that is set. B2:
//! none enters a double barrier before all are there, nor has left it before all have gone. L2: who waits at a barrier hears of
//! its end. S9: nobody deletes what another has made.

use std::collections::BTreeMap;

use zk_locks::FencingToken;
use zk_proto::{
    SessionId, Zxid,
    path::{join, parent},
};
use zk_testkit::server::{Committed, Stamp, Txn};

use super::{Checker, reasons::Reasons};
use crate::{
    history::{Change, History, Live, What, guid},
    sim::{
        recipe::{PARTICIPANTS, PERMITS, Recipe, Site},
        workload::{ERRANDS, KEPT, MEDDLED, SOLO},
    },
};

/// The node that tells how many permits there are, where one does.
pub(crate) const COUNT: &str = "/permits/count";

/// How the path ends at which permits are taken.
const LEASES: &str = "/leases";

/// How the path of a node with a number ends at a semaphore that nobody else uses.
const SOLO_COUNT: &str = "/count";

/// What tells that all are there is no participant.
const READY: &str = "ready";

/// A participant of a double barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entrant {
    pub(crate) client: u32,
    pub(crate) session: SessionId,
    pub(crate) site: Site,
    pub(crate) token: FencingToken,
}

/// When something was so at each path: transactions, and their times.
type Moments = BTreeMap<Box<str>, Vec<(Zxid, u64)>>;

/// Nodes whose children are counted, transaction by transaction.
#[derive(Debug, Default)]
pub(super) struct Crowds {
    /// Those that have got children in the transaction at hand.
    grown: Vec<Box<str>>,
    /// The nodes that tell how many permits there are.
    numbers: BTreeMap<Box<str>, Number>,
    /// When all were at a double barrier.
    full: Moments,
    /// When that was told.
    ready: Moments,
    /// What is too much.
    too_many: Vec<String>,
    /// Since when each transaction has been known here, as far as that is of interest.
    times: BTreeMap<Zxid, u64>,
    /// Ephemeral nodes that were deleted, with their owners, in the transaction at hand.
    deleted: Vec<(Box<str>, SessionId)>,
    /// Those of them that others than their owners have deleted.
    taken_away: Vec<TakenAway>,
}

/// A node that tells how many permits there are.
#[derive(Debug, Default)]
struct Number {
    /// Of what it has now, if that is a number.
    version: Option<i32>,
    /// The largest number that it has had with each version, in all its lives.
    by_version: BTreeMap<i32, u32>,
}

/// An ephemeral node that another session has deleted.
#[derive(Debug)]
struct TakenAway {
    path: Box<str>,
    owner: SessionId,
    by: SessionId,
}

impl Number {
    /// How many permits may be taken. Whether the number is the one that was read is known by its version alone, also of a
    /// node that was deleted and made anew: `Semaphore::counted_at` says so.
    fn most(&self) -> Option<u32> {
        self.by_version.get(&self.version?).copied()
    }
}

/// The first moment at a path from a transaction on.
fn first_since(moments: &Moments, path: &str, zxid: Zxid) -> Option<(Zxid, u64)> {
    let moments = moments.get(path)?;
    moments.get(moments.partition_point(|(at, _)| *at < zxid)).copied()
}

/// How many there are, but for the sign that all are.
fn counted(history: &History, path: &str) -> usize {
    history.children(path).filter(|(name, _)| *name != READY).count()
}

impl Crowds {
    /// Something has changed in the transaction at hand.
    fn see(&mut self, path: &str, what: What, data: Option<&[u8]>) {
        if path == COUNT || path.starts_with(SOLO) && path.ends_with(SOLO_COUNT) {
            self.counts(path, what, data);
        }
        match what {
            What::Created(_) => self.created(path),
            What::Deleted(owner) if owner.0 != 0 => {
                self.deleted.push((path.into(), owner));
            }
            _ => {}
        }
    }

    /// A node that tells how many permits there are has changed.
    fn counts(&mut self, path: &str, what: What, data: Option<&[u8]>) {
        let number = self.numbers.entry(path.into()).or_default();
        match what {
            What::Created(node) | What::Written(node) => {
                let count = <[u8; 4]>::try_from(data.unwrap_or_default()).ok();
                let count = count.map(u32::from_be_bytes);
                number.version = count.map(|_| node.version);
                let most = number.by_version.entry(node.version).or_default();
                *most = count.unwrap_or_default().max(*most);
            }
            What::Deleted(_) => number.version = None,
            What::Children(_) => {}
        }
    }

    fn created(&mut self, path: &str) {
        let Some(parent) = parent(path) else { return };
        let is_double = parent.starts_with("/double/");
        let is_semaphore = parent.starts_with("/permits/") || parent.starts_with(SOLO);
        let is_lease = is_semaphore && parent.ends_with(LEASES);
        if (is_double || is_lease) && !self.grown.iter().any(|grown| **grown == *parent) {
            self.grown.push(parent.into());
        }
    }

    /// A transaction has been taken in as a whole.
    fn count(&mut self, history: &History, now: u64, committed: &Committed) {
        let Stamp { zxid, session, .. } = committed.stamp;
        self.times.insert(zxid, now);
        for path in std::mem::take(&mut self.grown) {
            let there = counted(history, &path);
            if path.starts_with("/double/") {
                let sign = history.live.get(&*join(&path, READY));
                if sign.is_some_and(|sign| sign.czxid == zxid) {
                    self.ready.entry(path).or_default().push((zxid, now));
                } else if there >= PARTICIPANTS {
                    self.full.entry(path).or_default().push((zxid, now));
                }
            } else if let Some(most) = self.permits_of(&path).filter(|most| there > *most as usize)
            {
                self.too_many.push(format!("{there} of {most} permits of {path}, {zxid}"));
            }
        }
        for (path, owner) in std::mem::take(&mut self.deleted) {
            if owner != session {
                self.taken_away.push(TakenAway { path, owner, by: session });
            }
        }
    }

    /// When a transaction was committed.
    pub(super) fn when(&self, zxid: Zxid) -> u64 {
        self.times.get(&zxid).copied().unwrap_or_default()
    }

    /// When all were at a double barrier first, from this transaction on.
    fn full_since(&self, path: &str, zxid: Zxid) -> Option<(Zxid, u64)> {
        first_since(&self.full, path, zxid)
    }

    /// When that was told first, from this transaction on.
    fn ready_since(&self, path: &str, zxid: Zxid) -> Option<(Zxid, u64)> {
        first_since(&self.ready, path, zxid)
    }

    /// How many permits there are at most, where that is known.
    fn permits_of(&self, leases: &str) -> Option<u32> {
        let is = |recipe| leases.starts_with(&Site::new(recipe, 0).path());
        if is(Recipe::SemaphoreMutex) {
            Some(1)
        } else if is(Recipe::CountedSemaphore) {
            Some(self.numbers.get(COUNT).and_then(Number::most).unwrap_or(PERMITS))
        } else if let Some(semaphore) = leases.strip_prefix(SOLO) {
            let semaphore = semaphore.strip_suffix(LEASES)?;
            self.numbers.get(&*format!("{SOLO}{semaphore}{SOLO_COUNT}"))?.most()
        } else {
            Some(PERMITS)
        }
    }
}

impl Checker {
    /// Takes in what has been committed since. Returns the sessions that have ended.
    pub(super) fn learn(&mut self, history: &[Committed]) -> Vec<SessionId> {
        let Self { now, crowds, reasons, history: known, .. } = self;
        let mut ended = Vec::new();
        let step = |known: &mut History, crowds: &mut Crowds, reasons: &mut Reasons| {
            known.step(history, |zxid, path, what, data| {
                crowds.see(path, what, data);
                reasons.see(zxid, path, what);
            })
        };
        while let Some(committed) = step(known, crowds, reasons) {
            crowds.count(known, *now, committed);
            reasons.count(known, *now, committed);
            if let Txn::CloseSession = committed.txn {
                ended.push(committed.stamp.session);
            }
        }
        ended
    }

    /// Whether a node was not there after this transaction, or at any time since.
    fn was_absent_since(&self, path: &str, zxid: Zxid) -> bool {
        let mut is_there = false;
        for change in self.history.changes_after(path, Zxid(0)) {
            if change.zxid > zxid && !is_there {
                return true;
            }
            match change.what {
                What::Created(_) => is_there = true,
                What::Deleted(_) => is_there = false,
                _ => {}
            }
        }
        !is_there
    }

    pub(super) fn check_crowds(&mut self) {
        for text in std::mem::take(&mut self.crowds.too_many) {
            self.violated("S3", text);
        }
        for TakenAway { path, owner, by } in std::mem::take(&mut self.crowds.taken_away) {
            // By the name that a session has now: a read-only server has given it another one before.
            let by_meddler = self.meddlers.iter().any(|session| session.id() == by);
            if by_meddler {
                // Of nodes with ids no one else's is taken for them.
                if guid(&path).is_none() {
                    self.robbed.insert(owner, self.now);
                }
                continue;
            }
            // A simple lock's holder looks at its node, and deletes it then: if it was taken from it in between, so is
            // what the next holder has made meanwhile. `Create::protected_by_its_data` says so.
            let since_robbed = self.robbed.get(&by).map(|at| self.now - at);
            let limit = self.options.longest_timeout();
            if &*path == MEDDLED && since_robbed.is_some_and(|since| since <= limit) {
                self.count("simple locks taken away by who had one taken away");
                // And so on.
                self.robbed.insert(owner, self.now);
            } else if !path.starts_with(&*KEPT.path())
                && !path.starts_with(ERRANDS)
                // What it was answered may have said that the node was its own.
                && !self.was_damaged(by)
            {
                self.violated("S9", format!("{by} has deleted {path}, which it had not made"));
            }
        }
    }

    /// Whether a node lives.
    pub(crate) fn is_there(&self, path: &str) -> bool {
        self.history.live.contains_key(path)
    }

    /// A participant has passed a barrier that it came to then.
    pub(crate) fn passed_barrier(
        &mut self,
        client: u32,
        session: SessionId,
        site: Site,
        then: Zxid,
    ) {
        let path = site.path();
        if !self.is_doubtful(session) && !self.was_absent_since(&path, then) {
            self.violated(
                "B1",
                format!("c{client} passes {path}, which is set since before {then}"),
            );
        }
    }

    /// A participant has not passed a barrier in so long.
    pub(crate) fn held_up_at_barrier(
        &mut self,
        client: u32,
        session: SessionId,
        site: Site,
        waited: u64,
    ) {
        // What only reads can be had from hears of nothing for as long as that lasts.
        if self.options.reads_alone(client) {
            return;
        }
        let path = site.path();
        let patience = self.patience(client);
        let begun = self.now - waited + patience;
        let is_gone = |change: &Change| matches!(change.what, What::Deleted(_));
        let is_set = !self.history.last_of(&path).is_some_and(|last| is_gone(&last));
        // A wait that has begun ends even if the barrier has been set again. In trouble it may begin later than was tried.
        let is_well = self.now - waited >= self.options.well_from();
        let removed = self.history.changes_after(&path, Zxid(0)).iter().filter(|it| is_gone(it));
        let mut removed = removed.map(|change| self.crowds.when(change.zxid));
        let since = match is_set {
            true => removed.find(|at| is_well && *at > begun),
            false => removed.next_back(),
        };
        let is_late = |since: u64| waited > patience && self.now > since + patience;
        if let Some(since) = since.filter(|since| is_late(*since) && !self.is_doubtful(session)) {
            let text = format!("c{client} waits at {path}, which has been removed at {since}");
            self.violated("L2", text);
        }
    }

    /// A participant has entered a double barrier.
    pub(crate) fn entered(&mut self, entrant: Entrant) {
        let Entrant { client, session, token, .. } = entrant;
        let path = entrant.site.path();
        let full = self.crowds.full_since(&path, Zxid(token.get()));
        if full.is_none() && !self.is_doubtful(session) {
            let text = format!("c{client} enters {path} with {token} before all are there");
            self.violated("B2", text);
        }
    }

    /// A participant that came then has not got into a double barrier in time. If it was told long ago that all are
    /// there, or they were and still are, it should have.
    pub(crate) fn not_entered(&mut self, client: u32, session: SessionId, site: Site, then: Zxid) {
        let path = site.path();
        let own = |live: &Live| live.owner == session && live.czxid > then;
        let nodes: Vec<Zxid> = self
            .history
            .children(&path)
            .filter_map(|(_, live)| own(live).then_some(live.czxid))
            .collect();
        // Of two of one session it is unknown which it was.
        let [node] = *nodes else { return };
        let there = counted(&self.history, &path);
        let full = self.crowds.full_since(&path, node).filter(|_| there >= PARTICIPANTS);
        let Some((_, full)) = self.crowds.ready_since(&path, node).or(full) else { return };
        if self.now > full + self.patience(client) && !self.is_doubtful(session) {
            let text = format!("c{client} is not let into {path}, all were there at {full}");
            self.violated("L2", text);
        }
    }

    /// A participant has left a double barrier, and waited for all who had been there with it.
    pub(crate) fn has_left(&mut self, entrant: Entrant) {
        let Entrant { client, session, token, .. } = entrant;
        let path = entrant.site.path();
        let Some((full, _)) = self.crowds.full_since(&path, Zxid(token.get())) else { return };
        let staying: Vec<String> = self
            .history
            .children(&path)
            .filter(|(name, live)| *name != READY && live.czxid <= full)
            .map(|(name, live)| format!("{name} ({}) of {}", live.czxid, live.owner))
            .collect();
        if !staying.is_empty() && !self.is_doubtful(session) {
            let text = format!("c{client} has left {path} with {token} before {staying:?}");
            self.violated("B2", text);
        }
    }
}
