//! Fewer faults for the same failure.

use zk_testkit::sim::Schedule;

use super::{Options, Report, run};
use crate::shrink::fewer;

/// Runs that are spent on it at most.
const RUNS_MAX: usize = 200;

/// Takes incidents out of the schedule for as long as some rule of the first failure is still violated.
/// Returns the last run that failed.
#[must_use]
pub fn shrink(failure: &Report) -> Report {
    let rules: Vec<&str> = failure.rules().collect();
    let mut best = failure.clone();
    let mut incidents = best.options.schedule.0.clone();
    let mut runs = 0;
    fewer(&mut incidents, |left| {
        runs += 1;
        if runs > RUNS_MAX {
            return false;
        }
        let schedule = Schedule(left.to_vec());
        let report = run(&Options { schedule, ..failure.options.clone() }, false);
        let fails = report.rules().any(|rule| rules.contains(&rule));
        if fails {
            best = report;
        }
        fails
    });
    best
}
