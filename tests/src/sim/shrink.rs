//! Fewer faults for the same failure: delta debugging over the schedule.

use zk_testkit::sim::{Incident, Schedule};

use super::{Options, Report, run};

/// Runs that are spent on it at most.
const RUNS_MAX: usize = 200;

/// Takes incidents out of the schedule for as long as some rule of the first failure is still violated.
/// Returns the last run that failed.
#[must_use]
pub fn shrink(failure: &Report) -> Report {
    let rules: Vec<&str> = failure.rules().collect();
    let mut best = failure.clone();
    let mut parts = 2;
    let mut runs = 0;
    loop {
        let incidents = best.options.schedule.0.clone();
        if incidents.is_empty() || runs >= RUNS_MAX {
            return best;
        }
        let size = incidents.len().div_ceil(parts);
        let mut smaller = None;
        for start in (0..incidents.len()).step_by(size) {
            runs += 1;
            let options = without(&best.options, &incidents, start, size);
            let report = run(&options, false);
            if report.rules().any(|rule| rules.contains(&rule)) {
                smaller = Some(report);
                break;
            }
            if runs >= RUNS_MAX {
                break;
            }
        }
        match smaller {
            Some(report) => {
                best = report;
                parts = parts.saturating_sub(1).max(2);
            }
            None if size <= 1 => return best,
            None => parts = (parts * 2).min(incidents.len()),
        }
    }
}

fn without(options: &Options, incidents: &[Incident], start: usize, len: usize) -> Options {
    let end = (start + len).min(incidents.len());
    let kept = [&incidents[..start], &incidents[end..]].concat();
    Options { schedule: Schedule(kept), ..options.clone() }
}
