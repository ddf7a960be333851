//! What all tasks share: counts, complaints, and how far the test has come.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Interval, MissedTickBehavior, interval},
};
use zk_client::{ReadError, SessionEnd, Stats};

use super::{super::Report, layout::First, model::Model, stream::Span};

/// How many complaints are printed.
const SHOWN_MAX: usize = 20;

/// How far the test has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Members are killed and stopped.
    Running,
    /// All members serve; writers come to their end.
    Ending,
    /// All writers have stopped: a watcher has seen everything, or never will.
    Quiet,
}

/// Why a task does not go on.
#[derive(Debug)]
pub(super) enum Stop {
    /// With this session: it has expired.
    SessionOver,
    /// At all, since this must not happen.
    Broken(String),
}

/// What all tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) servers: String,
    pub(super) first: First,
    pause: Duration,
    phase: watch::Sender<Phase>,
    models: watch::Sender<Vec<Model>>,
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    counts: BTreeMap<&'static str, u64>,
    reads: Vec<Duration>,
    writes: Vec<Duration>,
    spans: Vec<Span>,
    violations: Vec<String>,
}

/// What is counted, in the order of its telling.
pub(super) mod count {
    pub(in super::super) const SET: &str = "writes applied: sets";
    pub(in super::super) const CREATE: &str = "writes applied: creates";
    pub(in super::super) const SEQUENTIAL: &str = "writes applied: sequential creates";
    pub(in super::super) const DELETE: &str = "writes applied: deletes";
    pub(in super::super) const MULTI: &str = "writes applied: multis";
    pub(in super::super) const READ: &str = "reads";
    pub(in super::super) const CONFLICT: &str = "writes refused: another was first";
    pub(in super::super) const NOT_APPLIED: &str = "writes not applied, as the client said";
    pub(in super::super) const DOUBT: &str = "writes in doubt";
    pub(in super::super) const DOUBT_APPLIED: &str = "of them: applied";
    pub(in super::super) const DOUBT_NOT_APPLIED: &str = "of them: not applied";
    pub(in super::super) const DOUBT_LATER: &str =
        "of them: found out after the end of the session";
    pub(in super::super) const ARMED: &str = "watches armed, for one event";
    pub(in super::super) const FIRED: &str = "of them: fired";
    pub(in super::super) const UNTOUCHED: &str = "of them: on what did not change any more";
    pub(in super::super) const WATCHES_OVER: &str = "of them: gone with their session";
    pub(in super::super) const EVENTS: &str = "events of streams";
    pub(in super::super) const MISSED: &str = "events of streams that other watches had missed";
    pub(in super::super) const GAPS: &str = "gaps that streams told of";
    pub(in super::super) const CACHED: &str = "events of caches";
    pub(in super::super) const CACHES_BEHIND: &str = "times that a cache's reader was too slow";
    pub(in super::super) const SESSIONS: &str = "sessions";
    pub(in super::super) const EXPIRED: &str = "of them: expired";
    pub(in super::super) const CONNECTIONS: &str = "connections";
    pub(in super::super) const REPLIES: &str =
        "replies whose transaction was compared with the one before";

    pub(super) const ALL: [&str; 25] = [
        SET,
        CREATE,
        SEQUENTIAL,
        DELETE,
        MULTI,
        READ,
        CONFLICT,
        NOT_APPLIED,
        DOUBT,
        DOUBT_APPLIED,
        DOUBT_NOT_APPLIED,
        DOUBT_LATER,
        ARMED,
        FIRED,
        UNTOUCHED,
        WATCHES_OVER,
        EVENTS,
        MISSED,
        GAPS,
        CACHED,
        CACHES_BEHIND,
        SESSIONS,
        EXPIRED,
        CONNECTIONS,
        REPLIES,
    ];
}

impl Shared {
    pub(super) fn new(servers: String, pause: Duration, first: First) -> Self {
        Self {
            servers,
            first,
            pause,
            phase: watch::Sender::new(Phase::Running),
            models: watch::Sender::new(Vec::new()),
            tally: Mutex::default(),
        }
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits until the test has come that far.
    pub(super) async fn reached(&self, phase: Phase) {
        // It fails without a sender, which lives as long as this.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    /// What keeps a task from asking all the time.
    pub(super) fn pace(&self) -> Interval {
        let mut pace = interval(self.pause.max(Duration::from_millis(1)));
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pace
    }

    /// A writer has come to its end.
    pub(super) fn deposit(&self, model: Model) {
        self.models.send_modify(|models| models.push(model));
    }

    /// Waits for so many writers.
    pub(super) async fn all_accounts(&self, writers: usize) {
        let _ = self.models.subscribe().wait_for(|models| models.len() == writers).await;
    }

    pub(super) fn models(&self) -> watch::Ref<'_, Vec<Model>> {
        self.models.borrow()
    }

    pub(super) fn count(&self, what: &'static str) {
        self.add(what, 1);
    }

    pub(super) fn add(&self, what: &'static str, number: u64) {
        *self.tally().counts.entry(what).or_default() += number;
    }

    /// A read was answered.
    pub(super) fn read(&self, took: Duration) {
        self.count(count::READ);
        self.tally().reads.push(took);
    }

    /// A write was answered, by which it was applied.
    pub(super) fn wrote(&self, what: &'static str, took: Duration) {
        self.count(what);
        self.tally().writes.push(took);
    }

    pub(super) fn followed(&self, spans: Vec<Span>) {
        self.tally().spans.extend(spans);
    }

    pub(super) fn take_spans(&self) -> Vec<Span> {
        std::mem::take(&mut self.tally().spans)
    }

    /// A session has come to its end.
    pub(super) fn session_over(&self, stats: &Stats) {
        self.count(count::SESSIONS);
        self.add(count::CONNECTIONS, stats.connects);
    }

    /// Something that must not happen.
    pub(super) fn violation(&self, what: String) {
        self.tally().violations.push(what);
    }

    pub(super) fn tell(&self, report: &mut Report) {
        let mut tally = self.tally();
        let answered = tally.reads.len() + tally.writes.len();
        report.figure("operations answered, with success", answered);
        for what in count::ALL {
            report.figure(what, tally.counts.get(what).copied().unwrap_or_default());
        }
        report.spread("a read with the wait for a server", std::mem::take(&mut tally.reads));
        report.spread("a write with the wait for a server", std::mem::take(&mut tally.writes));
        report.figure("complaints", tally.violations.len());
        for what in tally.violations.iter().take(SHOWN_MAX) {
            report.violation(what);
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stop {
    /// What to make of an error: sessions end by expiry only, and nothing else may go wrong.
    pub(super) fn by(end: Option<SessionEnd>, what: &str, error: &dyn std::fmt::Debug) -> Self {
        match end {
            Some(SessionEnd::Expired) => Self::SessionOver,
            _ => Self::Broken(format!("{what}: {error:?}")),
        }
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Self::by(error.session_end(), "read", &error)
    }
}
