//! What must hold, whatever goes wrong.
//!
//! | file | rules |
//! |---|---|
//! | `caches` | W4 |
//! | `claim` | what was granted, in one shape |
//! | `doubt` | sessions that the rules do not hold for, and why |
//! | `exclusion` | S1, S2, S3, S4: holders of locks |
//! | `keeping` | S4: what is held, at any moment |
//! | `leases` | S4, L4, E1: leases as the wire proves them |
//! | `minority` | S4: leases of those whom a minority serves |
//! | `passing` | L3: cohorts that keep a lock to themselves |
//! | `crowd` | S3, B1, B2, L2, S9: how many hold permits, and meet at barriers; who deletes whose nodes |
//! | `wire` | S7, S8, S9 as far as frames show them |
//! | `writes` | S5, S9: what became of writes, and what reads have shown |
//! | `habits` | L1, S7, L3, L4: how sessions behave on connections |
//! | `histories` | S6: whole histories of nodes |
//! | `watches` | W1, W2, W3, W5 |
//! | `restores` | W2: what new connections are told of |
//! | `room` | S8: how much is asked for at once |
//! | `orphans` | X1, X2, X3, R1: what is left behind |
//! | `herd` | L3: which clients are woken |
//! | `reasons` | E1, L4: why something was refused or lost |
//! | `liveness` | L1, L2, L3, L4: what must happen in time |

mod caches;
mod claim;
mod crowd;
mod doubt;
mod exclusion;
mod habits;
mod herd;
mod histories;
mod keeping;
mod leases;
mod liveness;
mod minority;
mod orphans;
mod passing;
mod reasons;
mod restores;
mod room;
mod watches;
mod wire;
mod writes;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use zk_client::Session;
use zk_proto::{
    SessionId,
    traffic::{Received, Sent},
};
use zk_testkit::{
    server::Ensemble,
    sim::{LinkId, Observer, Seen},
};

use self::doubt::Doubt;
pub(crate) use self::{
    caches::{Copied, Scope},
    claim::{Claim, Grip, Latched, Part},
    crowd::{COUNT, Entrant},
    exclusion::{Came, EXEMPT_GRANTS, GRANTED, Held, Share},
    histories::Asked,
    keeping::Kept,
    passing::SECTIONS,
    reasons::{Asker, Loss},
    room::Room,
    watches::{Armed, Kind},
    writes::{UNIQUE, Write},
};
use super::{Counts, Options};
use crate::history::History;

/// What may be early or late because the simulation itself rounds, in milliseconds.
pub(crate) const ROUNDING: u64 = 10;

/// Something that must not happen and has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: &'static str,
    /// When, in milliseconds.
    pub at: u64,
    /// What.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, at, text } = self;
        write!(f, "{rule} violated at {}.{:03}: {text}", at / 1000, at % 1000)
    }
}

/// All checkers, and what they know together. Clones share it.
///
/// May be locked while the cluster is, but not the other way round.
#[derive(Clone)]
pub(crate) struct SharedChecker(Arc<Mutex<Checker>>);

pub(crate) struct Checker {
    pub(crate) options: Options,
    pub(crate) now: u64,
    pub(crate) violations: Vec<Violation>,
    pub(crate) counts: Counts,
    pub(crate) history: History,
    crowds: crowd::Crowds,
    leases: leases::Leases,
    minorities: minority::Minorities,
    restores: restores::Restores,
    rooms: room::Rooms,
    reasons: reasons::Reasons,
    holders: exclusion::Holders,
    turns: passing::Turns,
    wires: wire::Wires,
    habits: habits::Habits,
    herd: herd::Herd,
    writes: writes::Writes,
    histories: histories::Histories,
    pub(crate) promises: liveness::Promises,
    /// Sessions that delete what is not theirs.
    pub(crate) meddlers: Vec<Session>,
    doubts: doubt::Doubts,
    /// Until when sessions were kept alive by members that are cut off from their leader.
    misled: BTreeMap<SessionId, u64>,
    /// When a node was taken away by a meddler from each session, last.
    robbed: BTreeMap<SessionId, u64>,
}

impl SharedChecker {
    pub(crate) fn new(options: &Options) -> Self {
        Self(Arc::new(Mutex::new(Checker {
            options: options.clone(),
            now: 0,
            violations: Vec::new(),
            counts: Counts::new(),
            history: History::default(),
            crowds: crowd::Crowds::default(),
            leases: leases::Leases::default(),
            minorities: minority::Minorities::default(),
            restores: restores::Restores::default(),
            rooms: room::Rooms::default(),
            reasons: reasons::Reasons::default(),
            holders: exclusion::Holders::default(),
            turns: passing::Turns::default(),
            wires: wire::Wires::default(),
            habits: habits::Habits::default(),
            herd: herd::Herd::default(),
            writes: writes::Writes::default(),
            histories: histories::Histories::default(),
            promises: liveness::Promises::default(),
            meddlers: Vec::new(),
            doubts: doubt::Doubts::default(),
            misled: BTreeMap::new(),
            robbed: BTreeMap::new(),
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Checker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, at a time that the caller knows.
    pub(crate) fn at(&self, now: u64) -> MutexGuard<'_, Checker> {
        let mut checker = self.lock();
        checker.now = now;
        checker
    }
}

impl Checker {
    pub(crate) fn violated(&mut self, rule: &'static str, text: String) {
        self.violations.push(Violation { rule, at: self.now, text });
    }

    /// The same of what a client has seen, unless what it sees may have been damaged on the way: an event
    /// with one bit flipped can be a ping's answer.
    pub(crate) fn shown_wrong(&mut self, client: u32, rule: &'static str, text: String) {
        let session = self.promises.sessions.get(&client).map(|session| session.id());
        let misled = |session| self.is_doubtful(session) || self.was_damaged(session);
        if session.is_some_and(misled) {
            self.count("oddities in doubtful sessions");
        } else {
            self.violated(rule, text);
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// How much longer than the servers a client may believe in its session, because its clock is slow.
    fn slack(&self, client: u32) -> u64 {
        let drift = self.options.drifts[client as usize];
        let timeout = self.options.session_timeouts[client as usize];
        if drift < 0 { timeout * u64::from(drift.unsigned_abs()) / 1_000_000 + 1 } else { 0 }
    }
}

impl Observer for SharedChecker {
    fn sent(&mut self, seen: &Seen, frame: &Sent<'_>) {
        self.at(seen.at).sent(seen, frame);
    }

    fn dialed(&mut self, at: u64, client: u32) {
        self.at(at).dials(client);
    }

    fn heard(&mut self, at: u64, link: LinkId) {
        self.at(at).hears_on(link);
    }

    fn wrote(&mut self, at: u64, client: u32, ends_frame: bool) {
        self.at(at).wrote(client, ends_frame);
    }

    fn received(&mut self, seen: &Seen, frame: &Received) {
        self.at(seen.at).received(seen, frame);
    }

    fn left(&mut self, at: u64, client: u32, link: LinkId) {
        self.at(at).left(at, client, link);
    }

    fn expires(&mut self, at: u64, session: SessionId) {
        self.at(at).doubt(session, Doubt::Expired, u64::MAX);
    }

    fn damaged(&mut self, at: u64, session: SessionId) {
        self.at(at).doubt(session, Doubt::Damaged, u64::MAX);
    }

    fn stepped(&mut self, at: u64, ensemble: &Ensemble) {
        let mut checker = self.at(at);
        for session in checker.learn(ensemble.history()) {
            checker.count("sessions ended by the servers");
            checker.session_ended(session);
        }
        checker.check_crowds();
    }
}
