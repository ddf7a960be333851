//! What a run has shown: how much of what was checked and met.

use std::fmt;

use zk_proto::session::{CloseReason, Outcome, State};
use zk_testkit::sim::{Fault, Fired};

use super::fault::is_borne;
use crate::sim::Counts;

/// What has to be met, besides faults.
const COUNTED: [&str; 11] = [
    "answered",
    "connected",
    "disconnected",
    "expired",
    "expired by servers",
    "gaps",
    "given up",
    "not sent",
    "reads checked",
    "unknown",
    "watch events",
];

/// Counts an outcome.
pub(crate) const fn of_outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Answered(_) => "answered",
        Outcome::NotSent(_) => "not sent",
        Outcome::Unknown(_) => "unknown",
    }
}

/// Counts a state.
pub(crate) const fn of_state(state: &State) -> &'static str {
    match state {
        State::Connected(_) => "connected",
        State::Disconnected(_) => "disconnected",
        State::Over(CloseReason::Expired) => "expired",
        State::Over(_) => "over",
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
    /// What was checked, and what became of requests and sessions.
    pub counts: Counts,
    /// How often which fault has hit a client.
    pub fired: Fired,
    /// Of all that happened, in order: the same for the same plans.
    pub hash: u64,
}

impl Report {
    pub(crate) fn met(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// How often something was met.
    #[must_use]
    pub fn count(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// Adds another run to these.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.events += other.events;
        self.millis += other.millis;
        for (what, count) in &other.counts {
            *self.counts.entry(what).or_default() += count;
        }
        for (fault, count) in &other.fired {
            *self.fired.entry(*fault).or_default() += count;
        }
        self.hash = (self.hash ^ other.hash).wrapping_mul(0x0100_0000_01B3);
    }

    /// What should have been met and was not.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let mut missing = COUNTED.to_vec();
        missing.retain(|what| self.count(what) == 0);
        let faults = Fault::SCHEDULED.iter().filter(|&&fault| is_borne(fault));
        missing.extend(faults.filter(|fault| !self.fired.contains_key(fault)).map(|it| it.name()));
        missing
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, events, millis, counts, fired, hash } = self;
        let seconds = millis / 1000;
        writeln!(
            f,
            "{runs} runs, {events} events, {seconds} simulated seconds, trace {hash:016x}"
        )?;
        for (what, count) in counts {
            writeln!(f, "{count:>12}  {what}")?;
        }
        for (fault, count) in fired {
            writeln!(f, "{count:>12}  {}", fault.name())?;
        }
        Ok(())
    }
}
