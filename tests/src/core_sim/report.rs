//! What a run has shown: what was checked, what was met, and the last things that happened.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

use zk_proto::{
    Time,
    session::{CloseReason, Outcome, State},
};
use zk_testkit::sim::Fault;

use super::{book::Checked, fault::KINDS, schedule::Happening};
use crate::sim::Counts;

/// Events of a trace that are remembered.
const TRACE_LEN: usize = 200;

/// Where the session of the client that a fault struck stood: not connected, connected, over.
pub(crate) const STATES: [&str; 3] = ["apart", "connected", "over"];

/// What has to be met, besides faults.
const COUNTED: [&str; 7] = [
    "connected",
    "disconnected",
    "expired",
    "expired by servers",
    "answered",
    "not sent",
    "unknown",
];

/// What was met.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Coverage {
    /// Faults that have fired and what they struck, by the state of the session that they struck.
    pub fired: BTreeMap<(Fault, &'static str), [u64; STATES.len()]>,
    /// What became of requests and sessions, by the names in `COUNTED`.
    pub counts: Counts,
    pub(crate) has_cut_off: bool,
}

impl Coverage {
    /// How often something was met.
    #[must_use]
    pub fn count(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }

    pub(crate) fn met(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(crate) fn outcome(&mut self, outcome: &Outcome) {
        self.met(match outcome {
            Outcome::Answered(_) => "answered",
            Outcome::NotSent(_) => "not sent",
            Outcome::Unknown(_) => "unknown",
        });
    }

    pub(crate) fn state(&mut self, state: &State) {
        match state {
            State::Connected(_) => self.met("connected"),
            State::Disconnected(_) => self.met("disconnected"),
            State::Over(CloseReason::Expired) => self.met("expired"),
            _ => {}
        }
    }

    fn add(&mut self, other: &Self) {
        for (kind, counts) in &other.fired {
            let sums = self.fired.entry(*kind).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        for (what, count) in &other.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }
}

/// What has happened last, and a number that all of it goes into.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    last: VecDeque<(Time, &'static str, usize)>,
    pub(crate) hash: u64,
    pub(crate) events: u64,
}

impl Trace {
    pub(crate) fn note(&mut self, now: Time, happening: &Happening) {
        let (name, number) = happening.gist();
        let bytes = match happening {
            Happening::Up { bytes, .. } | Happening::Down { bytes, .. } => bytes.len() as u64,
            _ => 0,
        };
        let nanos = u64::try_from(now.since_epoch().as_nanos()).unwrap_or(u64::MAX);
        for word in [nanos, name.len() as u64, number as u64, bytes] {
            // FNV-1a, a word at a time.
            self.hash = (self.hash ^ word).wrapping_mul(0x0100_0000_01B3).rotate_left(29);
        }
        self.events += 1;
        if self.last.len() == TRACE_LEN {
            self.last.pop_front();
        }
        self.last.push_back((now, name, number));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.last.iter().map(|(at, name, number)| format!("{at} {name} {number}")).collect()
    }
}

/// What one run, or many, have shown.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Runs.
    pub runs: u64,
    /// Things that happened.
    pub events: u64,
    /// Simulated time in milliseconds.
    pub millis: u64,
    /// Outcomes, events and reads that were checked.
    pub checked: Checked,
    /// What was met.
    pub coverage: Coverage,
    /// Of all that happened, in order: the same for the same plans.
    pub hash: u64,
}

impl Report {
    /// Adds another run to these.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.events += other.events;
        self.millis += other.millis;
        self.checked += other.checked;
        self.coverage.add(&other.coverage);
        self.hash = (self.hash ^ other.hash).wrapping_mul(0x0100_0000_01B3);
    }

    /// What should have been met and was not.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let Checked { events, gaps, reads, .. } = self.checked;
        let mut counts = vec![("watch events", events), ("gaps", gaps), ("reads", reads)];
        counts.extend(COUNTED.map(|what| (what, self.coverage.count(what))));
        if self.coverage.fired.len() < KINDS {
            counts.push(("a kind of fault", 0));
        }
        counts.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, events, millis, checked, coverage, hash } = self;
        let seconds = millis / 1000;
        writeln!(
            f,
            "{runs} runs, {events} events, {seconds} simulated seconds, trace {hash:016x}"
        )?;
        writeln!(f, "checked: {checked:?}")?;
        writeln!(f, "met: {:?}", coverage.counts)?;
        writeln!(f, "{:<24}{:>12}{:>12}{:>12}", "fault", STATES[0], STATES[1], STATES[2])?;
        for ((fault, of), [apart, connected, over]) in &coverage.fired {
            let kind = format!("{} {of}", fault.name());
            writeln!(f, "{kind:<24}{apart:>12}{connected:>12}{over:>12}")?;
        }
        Ok(())
    }
}
