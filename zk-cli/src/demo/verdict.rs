//! What the evidence amounts to.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use super::resource::{Record, Visit};
use crate::exit::Exit;

/// All that the demo has found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// How many acquisitions there should have been.
    pub(crate) expected: usize,
    /// What the resource has seen.
    pub(crate) record: Record,
    /// Contenders that have failed otherwise, and how.
    pub(crate) failures: Vec<String>,
    /// Children left under the path when all had released and no session was closed.
    pub(crate) orphans_released: usize,
    /// Children left under the path when all sessions were closed.
    pub(crate) orphans_closed: usize,
    /// Requests by operation, as the proxy has counted them.
    pub(crate) requests: BTreeMap<&'static str, u64>,
}

/// Conclusions, and the numbers that they are drawn from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// Whether nothing was violated.
    pub(crate) passed: bool,
    /// What was, in words.
    pub(crate) violations: Vec<String>,
    pub(crate) acquisitions: usize,
    pub(crate) expected_acquisitions: usize,
    pub(crate) overlaps: usize,
    pub(crate) stale_tokens: usize,
    /// Whether both of the following hold.
    pub(crate) in_order: bool,
    pub(crate) tokens_increasing: bool,
    pub(crate) granted_as_queued: bool,
    /// The larger one of the following.
    pub(crate) orphans: usize,
    pub(crate) orphans_released: usize,
    pub(crate) orphans_closed: usize,
    pub(crate) requests_per_acquisition: f64,
    pub(crate) requests: u64,
    pub(crate) requests_by_operation: BTreeMap<&'static str, u64>,
    /// From one leaving the resource to the next one being in it.
    pub(crate) hand_over_median_ms: f64,
    pub(crate) hand_over_max_ms: f64,
    /// From the start signal to the last leave.
    pub(crate) elapsed_ms: f64,
}

impl Verdict {
    pub(crate) fn of(evidence: &Evidence) -> Self {
        let Evidence { expected, record, failures, requests, .. } = evidence;
        let visits = &record.visits;
        let acquisitions = visits.len();
        let grows = |key: fn(&Visit) -> i64| visits.is_sorted_by(|a, b| key(a) < key(b));
        let tokens_increasing = grows(|visit| visit.visitor.token);
        let granted_as_queued = grows(|visit| visit.visitor.sequence.into());
        let orphans = evidence.orphans_released.max(evidence.orphans_closed);
        let request_count: u64 = requests.values().sum();
        let hand_overs = hand_overs(visits);
        let elapsed = visits.iter().filter_map(|visit| visit.left).max().unwrap_or_default();

        let mut violations = failures.clone();
        let mut demand = |holds: bool, otherwise: String| {
            if !holds {
                violations.push(otherwise);
            }
        };
        demand(acquisitions == *expected, format!("{acquisitions} acquisitions of {expected}"));
        let unfinished = visits.iter().filter(|visit| visit.left.is_none()).count();
        demand(unfinished == 0, format!("{unfinished} have entered and not left"));
        for overlap in &record.overlaps {
            let (inside, intruder) = (overlap.inside.contender, overlap.intruder.contender);
            demand(false, format!("contender {intruder} got in while {inside} was inside"));
        }
        for stale in &record.refused {
            demand(false, stale.to_string());
        }
        demand(tokens_increasing, "tokens do not grow from grant to grant".to_owned());
        demand(granted_as_queued, "grants are not in the order of the queue".to_owned());
        demand(orphans == 0, format!("{orphans} nodes left behind"));

        Self {
            passed: violations.is_empty(),
            violations,
            acquisitions,
            expected_acquisitions: *expected,
            overlaps: record.overlaps.len(),
            stale_tokens: record.refused.len(),
            in_order: tokens_increasing && granted_as_queued,
            tokens_increasing,
            granted_as_queued,
            orphans,
            orphans_released: evidence.orphans_released,
            orphans_closed: evidence.orphans_closed,
            // Of nothing, there is no average; zero can be printed and parsed.
            requests_per_acquisition: round(request_count as f64 / acquisitions.max(1) as f64),
            requests: request_count,
            requests_by_operation: requests.clone(),
            hand_over_median_ms: hand_overs.get(hand_overs.len() / 2).map_or(0.0, millis),
            hand_over_max_ms: hand_overs.last().map_or(0.0, millis),
            elapsed_ms: millis(&elapsed),
        }
    }

    /// How the program is to end.
    pub(crate) fn exit(&self) -> Exit {
        if self.passed { Exit::Done } else { Exit::No }
    }

    /// For people, one finding a line.
    pub(crate) fn text(&self) -> String {
        let mark = |good| if good { "ok" } else { "VIOLATED" };
        let yes = |good| if good { "yes" } else { "no" };
        let requests: Vec<String> =
            self.requests_by_operation.iter().map(|(op, count)| format!("{op} {count}")).collect();
        let complete = self.acquisitions == self.expected_acquisitions;
        let mut lines = vec![
            finding(
                "acquisitions",
                format!("{} of {}", self.acquisitions, self.expected_acquisitions),
                mark(complete),
            ),
            finding("overlaps in the critical section", self.overlaps, mark(self.overlaps == 0)),
            finding(
                "stale tokens at the resource",
                self.stale_tokens,
                mark(self.stale_tokens == 0),
            ),
            finding(
                "tokens strictly increasing",
                yes(self.tokens_increasing),
                mark(self.tokens_increasing),
            ),
            finding(
                "granted in the queue's order",
                yes(self.granted_as_queued),
                mark(self.granted_as_queued),
            ),
            finding(
                "nodes left after the releases",
                self.orphans_released,
                mark(self.orphans_released == 0),
            ),
            finding(
                "nodes left after the sessions",
                self.orphans_closed,
                mark(self.orphans_closed == 0),
            ),
            finding("requests per acquisition", self.requests_per_acquisition, "counted"),
            format!("    {}", requests.join(", ")),
            finding(
                "hand-over, median and longest",
                format!("{:.1} ms, {:.1} ms", self.hand_over_median_ms, self.hand_over_max_ms),
                "",
            ),
        ];
        lines.extend(self.violations.iter().map(|violation| format!("  - {violation}")));
        lines.push(if self.passed { "PASSED".to_owned() } else { "FAILED".to_owned() });
        lines.join("\n") + "\n"
    }
}

fn finding(what: &str, value: impl ToString, mark: &str) -> String {
    format!("  {what:<34}{:<24}{mark}", value.to_string()).trim_end().to_owned()
}

/// Times between a leave and the next enter, shortest first.
fn hand_overs(visits: &[Visit]) -> Vec<Duration> {
    let mut hand_overs: Vec<Duration> =
        visits.windows(2).filter_map(|pair| pair[1].entered.checked_sub(pair[0].left?)).collect();
    hand_overs.sort();
    hand_overs
}

fn millis(time: &Duration) -> f64 {
    round(time.as_secs_f64() * 1e3)
}

/// Three decimals: more are not needed, and JSON would print them all.
fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::resource::{Resource, Visitor};

    fn visitor(contender: usize, token: i64, sequence: i32) -> Visitor {
        Visitor { contender, token, sequence, asked: Duration::ZERO }
    }

    /// What the resource sees of these, one after the other.
    fn record(visitors: &[Visitor]) -> Record {
        let resource = Resource::default();
        for (visitor, millis) in visitors.iter().zip(0..) {
            if resource.enter(*visitor, Duration::from_millis(10 * millis)).is_ok() {
                resource.leave(*visitor, Duration::from_millis(10 * millis + 6));
            }
        }
        resource.record()
    }

    fn good() -> Evidence {
        Evidence {
            expected: 3,
            record: record(&[visitor(1, 10, 0), visitor(2, 20, 1), visitor(1, 30, 5)]),
            requests: BTreeMap::from([("create2", 3), ("getData", 4)]),
            ..Evidence::default()
        }
    }

    #[track_caller]
    fn fails(evidence: &Evidence, why: &str) {
        let verdict = Verdict::of(evidence);
        assert_eq!((verdict.passed, verdict.exit().code()), (false, 1));
        assert!(verdict.violations.iter().any(|found| found.contains(why)), "{verdict:?}");
        assert!(verdict.text().ends_with("FAILED\n"), "{}", verdict.text());
    }

    #[test]
    fn run_without_violations_passes() {
        let verdict = Verdict::of(&good());
        assert!(verdict.passed && verdict.in_order, "{verdict:?}");
        assert_eq!(verdict.exit().code(), 0);
        assert_eq!((verdict.acquisitions, verdict.requests), (3, 7));
        assert_eq!(verdict.requests_per_acquisition, 2.333);
        assert_eq!((verdict.hand_over_median_ms, verdict.elapsed_ms), (4.0, 26.0));
        assert!(verdict.text().ends_with("PASSED\n"), "{}", verdict.text());
    }

    #[test]
    fn a_missing_acquisition_fails() {
        fails(&Evidence { expected: 4, ..good() }, "3 acquisitions of 4");
    }

    #[test]
    fn an_overlap_fails() {
        let resource = Resource::default();
        resource.enter(visitor(1, 10, 0), Duration::ZERO).unwrap();
        resource.enter(visitor(2, 20, 1), Duration::ZERO).unwrap();
        resource.leave(visitor(1, 10, 0), Duration::ZERO);
        resource.leave(visitor(2, 20, 1), Duration::ZERO);
        let evidence = Evidence { expected: 2, record: resource.record(), ..good() };
        fails(&evidence, "contender 2 got in while 1 was inside");
        assert_eq!(Verdict::of(&evidence).overlaps, 1);
    }

    #[test]
    fn a_stale_token_fails() {
        let record = record(&[visitor(1, 20, 0), visitor(2, 10, 1)]);
        fails(&Evidence { expected: 1, record, ..good() }, "token 10 after 20");
    }

    #[test]
    fn a_token_that_comes_twice_fails() {
        let record = record(&[visitor(1, 10, 0), visitor(2, 10, 1), visitor(3, 11, 2)]);
        let evidence = Evidence { record, ..good() };
        fails(&evidence, "tokens do not grow");
        assert!(!Verdict::of(&evidence).in_order);
    }

    #[test]
    fn a_grant_out_of_the_queues_order_fails() {
        let record = record(&[visitor(1, 10, 0), visitor(2, 20, 2), visitor(3, 30, 1)]);
        let evidence = Evidence { record, ..good() };
        fails(&evidence, "order of the queue");
        assert!(!Verdict::of(&evidence).in_order);
    }

    #[test]
    fn nodes_left_behind_fail_at_either_look() {
        fails(&Evidence { orphans_released: 2, ..good() }, "2 nodes left behind");
        fails(&Evidence { orphans_closed: 1, ..good() }, "1 nodes left behind");
    }

    #[test]
    fn failed_or_stuck_contender_fails_the_run() {
        let failures = vec!["contender 2, round 1: not acquired in time".to_owned()];
        fails(&Evidence { failures, ..good() }, "contender 2");
        let mut evidence = good();
        evidence.record.visits[2].left = None;
        fails(&evidence, "1 have entered and not left");
    }
}
