//! What comes out of a run, and of many.

use std::{collections::BTreeMap, fmt::Write as _};

use zk_testkit::sim::{Event, Fired, Schedule};

use super::{Coverage, Options, check::Violation};

/// What was counted in a run: names and numbers.
pub type Counts = BTreeMap<&'static str, u64>;

/// What came out of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What it was.
    pub options: Options,
    /// Hash of all that happened.
    pub hash: u64,
    /// How many things happened.
    pub events: u64,
    /// Virtual milliseconds from beginning to end.
    pub simulated: u64,
    /// What was counted.
    pub counts: Counts,
    /// How often which fault has hit a client.
    pub fired: Fired,
    /// What must not happen and has.
    pub violations: Vec<Violation>,
    /// The last things that happened.
    pub last: Vec<Event>,
}

impl Report {
    /// A counter.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or_default()
    }

    /// The rules that were violated.
    pub fn rules(&self) -> impl Iterator<Item = &'static str> {
        self.violations.iter().map(|violation| violation.rule)
    }

    /// All that is needed to understand a failure and to see it again.
    #[must_use]
    pub fn failure(&self, commit: &str) -> String {
        let mut text = String::new();
        let Options { seed, duration, .. } = self.options;
        for violation in self.violations.iter().take(10) {
            let _ = writeln!(text, "{violation}");
        }
        if self.violations.len() > 10 {
            let _ = writeln!(text, "and {} more", self.violations.len() - 10);
        }
        let incidents = self.options.schedule.0.len();
        let options = Options { schedule: Schedule::default(), ..self.options.clone() };
        let _ = writeln!(text, "at commit {commit}, with {incidents} incidents: {options:?}");
        let _ = writeln!(text, "the last events:");
        for event in &self.last {
            let _ = writeln!(text, "{event}");
        }
        let minutes = duration / 60_000;
        let _ = writeln!(text, "again: zk-sim replay {seed} --minutes {minutes} --trace");
        text
    }
}

/// What came out of many runs.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// How many.
    pub runs: u64,
    /// How many of them had violations.
    pub failed: u64,
    /// Violations in all of them.
    pub violations: u64,
    /// Virtual milliseconds.
    pub simulated: u64,
    /// Things that happened.
    pub events: u64,
    /// What was counted.
    pub counts: Counts,
    /// How often which fault has hit a client.
    pub fired: Fired,
}

impl Totals {
    /// Adds a run.
    pub fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.failed += u64::from(!report.violations.is_empty());
        self.violations += report.violations.len() as u64;
        self.simulated += report.simulated;
        self.events += report.events;
        for (name, count) in &report.counts {
            *self.counts.entry(name).or_default() += count;
        }
        for (fault, count) in &report.fired {
            *self.fired.entry(*fault).or_default() += count;
        }
    }

    /// What has happened, and what has not.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        Coverage::of(&self.fired, &self.counts, self.simulated)
    }

    /// Virtual hours.
    #[must_use]
    pub fn hours(&self) -> f64 {
        self.simulated as f64 / 3_600_000.0
    }

    /// A table to read.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        for (fault, count) in &self.fired {
            let _ = writeln!(text, "{count:>12}  {}", fault.name());
        }
        text.push('\n');
        for (name, count) in &self.counts {
            let _ = writeln!(text, "{count:>12}  {name}");
        }
        let _ = writeln!(text, "{:>12}  runs, {} of them failed", self.runs, self.failed);
        let _ = writeln!(text, "{:>12.1}  simulated hours", self.hours());
        let _ = writeln!(text, "{:>12}  violations", self.violations);
        text
    }
}
