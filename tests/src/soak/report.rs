//! What a soak test has found.

use std::{fmt, time::Duration};

use serde_json::{Map, Value, json};

use crate::faults::Struck;

/// Figures by name, in the order of their telling, and everything that should not have happened.
#[derive(Debug)]
pub struct Report {
    test: &'static str,
    figures: Vec<(String, Value)>,
    violations: Vec<String>,
}

impl Report {
    pub(super) const fn new(test: &'static str) -> Self {
        Self { test, figures: Vec::new(), violations: Vec::new() }
    }

    pub(super) fn figure(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.figures.push((name.into(), value.into()));
    }

    /// The figures that describe a distribution of durations, in milliseconds.
    pub(super) fn spread(&mut self, name: &str, mut durations: Vec<Duration>) {
        durations.sort_unstable();
        for (share, rank) in [("p50", 50), ("p99", 99), ("max", 100)] {
            if let Some(duration) = quantile(&durations, rank) {
                self.figure(format!("{name}, {share}, ms"), millis(duration));
            }
        }
    }

    /// What has happened to members.
    pub(super) fn struck(&mut self, struck: &Struck) {
        self.figure("members killed", struck.kills);
        self.figure("of them: leaders", struck.leaders_killed);
        self.figure("members stopped for a while", struck.pauses);
        self.figure("of them: leaders that were stopped", struck.leaders_paused);
        self.figure("changes of the leader", struck.leader_changes);
    }

    pub(super) fn violation(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }

    /// Keeps so many of the violations that there are, and how many there were.
    pub(super) fn shorten(&mut self, most: usize) {
        let more = self.violations.len().saturating_sub(most);
        if more > 0 {
            self.violations.truncate(most);
            self.violations.push(format!("and {more} more"));
        }
    }

    /// Notes a violation unless all is as it should be.
    pub(super) fn expect(&mut self, is_so: bool, otherwise: impl FnOnce() -> String) {
        if !is_so {
            self.violation(otherwise());
        }
    }

    /// Everything that should not have happened.
    #[must_use]
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// A figure that is a whole number.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        self.figures.iter().find(|(figure, _)| figure == name)?.1.as_u64()
    }

    /// The same as one object.
    #[must_use]
    pub fn json(&self) -> Value {
        let figures: Map<String, Value> = self.figures.iter().cloned().collect();
        json!({ "test": self.test, "figures": figures, "violations": self.violations })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.figures {
            match value {
                Value::String(text) => writeln!(f, "{text:>12}  {name}")?,
                value => writeln!(f, "{:>12}  {name}", value.to_string())?,
            }
        }
        for violation in &self.violations {
            writeln!(f, "VIOLATION: {violation}")?;
        }
        Ok(())
    }
}

/// The smallest of sorted durations that so many hundredths of them do not exceed.
fn quantile(sorted: &[Duration], hundredths: usize) -> Option<Duration> {
    let rank = (sorted.len() * hundredths).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// To a tenth.
pub(super) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_durations_that_occurred() {
        let sorted: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        let at = |hundredths| quantile(&sorted, hundredths).unwrap().as_millis();
        assert_eq!([at(50), at(99), at(100)], [100, 198, 200]);
        assert_eq!(quantile(&sorted[..1], 50), Some(sorted[0]));
        assert_eq!(quantile(&[], 50), None);
    }

    #[test]
    fn a_report_says_the_same_in_both_forms() {
        let mut report = Report::new("test");
        report.figure("grants", 7);
        report.expect(true, || unreachable!("all is well"));
        report.expect(false, || "one too many".to_owned());
        assert_eq!(report.to_string(), "           7  grants\nVIOLATION: one too many\n");
        assert_eq!(report.json()["figures"]["grants"], 7);
        assert_eq!(report.json()["violations"][0], "one too many");
        assert_eq!(report.count("grants"), Some(7));
    }
}
