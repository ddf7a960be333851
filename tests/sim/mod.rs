//! The simulator, as far as a debug build has time for it; `.ci/run` runs more of it in release.

mod closing;

use zk_testkit::sim::{Fault, Incident, Schedule, Target};
use zk_tests::sim::{Options, Recipe, run};

/// Seeds that have found something, and what that was. Each ran for ten simulated minutes.
const REGRESSIONS: [(u64, &str); 2] = [
    (81, "a reply that never came kept its caller waiting for ever, and a lock's queue behind it"),
    (
        2081,
        "two nodes got one sequence number from an ensemble whose follower was ahead of its leader",
    ),
];

#[track_caller]
fn assert_clean(options: &Options) {
    let report = run(options, false);
    assert!(report.violations.is_empty(), "{}", report.failure("this one"));
    assert!(report.count("acquisitions") > 0, "nobody has got a lock: nothing was checked");
}

#[test]
fn what_was_found_once_is_not_found_again() {
    for (seed, found) in REGRESSIONS {
        let report = run(&Options::with_recipes(seed, 10, Vec::new()), false);
        assert!(report.violations.is_empty(), "{found}\n{}", report.failure("this one"));
    }
}

/// Seeds from this one on with so few clients that a debug build is through with them in a second or two.
fn small(from: u64) -> impl Iterator<Item = u64> {
    (from..).filter(|seed| Options::new(*seed, 1).clients <= 4)
}

/// Each recipe by itself, whatever seeds have chosen.
#[test]
fn every_recipe_runs_without_violations() {
    for (seed, recipe) in small(9_100).zip(Recipe::OTHERS) {
        let options = Options::with_recipes(seed, 1, vec![recipe]);
        let options = Options { calm: false, ..options };
        let report = run(&options, false);
        assert!(report.violations.is_empty(), "{recipe:?}\n{}", report.failure("this one"));
    }
}

#[test]
fn a_few_seeds_violate_nothing() {
    for seed in small(9_000).take(6) {
        assert_clean(&Options::new(seed, 2));
    }
}

#[test]
fn runs_of_a_seed_are_reproducible() {
    for seed in small(0).take(4) {
        let options = Options::new(seed, 1);
        let (one, other) = (run(&options, false), run(&options, false));
        assert_eq!((one.hash, one.events), (other.hash, other.events), "seed {seed}");
        assert!(one.events > 0);
    }
}

#[test]
fn different_seeds_give_different_runs() {
    let runs = small(0).take(4).map(|seed| run(&Options::new(seed, 1), false));
    let mut hashes: Vec<u64> = runs.map(|report| report.hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 4);
}

/// Faults that hit all clients, one class after the other, so that none is only ever scheduled.
#[test]
fn every_fault_class_hits_a_client() {
    let base = Options { clients: 3, members: 3, ..Options::new(4, 1) };
    let count = base.clients as usize;
    let base = Options { session_timeouts: vec![6_000; count], drifts: vec![0; count], ..base };
    for &fault in Fault::SCHEDULED {
        let incidents = (0..25).map(|number| {
            let at = 8_000 + 2_000 * number;
            let target = match fault {
                Fault::Kill | Fault::Pause | Fault::Lag | Fault::CutOff => {
                    Target::Member((number % 3) as usize)
                }
                _ => Target::Client((number % 3) as u32),
            };
            let amount = if fault == Fault::Lag { 300 } else { 1_000 + number };
            Incident { at, fault, target, lasts: 1_500, amount }
        });
        let mut incidents: Vec<Incident> = incidents.collect();
        // A connected client does not dial: most faults of dialing need lost connections.
        let resets = (0..25).map(|number| {
            let (at, target) = (8_500 + 2_000 * number, Target::Client((number % 3) as u32));
            Incident { at, fault: Fault::Reset, target, lasts: 0, amount: 0 }
        });
        incidents.extend(resets);
        incidents.sort_by_key(|incident| incident.at);
        let options = Options { schedule: Schedule(incidents), ..base.clone() };
        let report = run(&options, false);
        assert!(report.fired.contains_key(&fault), "{fault:?} has hit nobody");
        assert!(report.violations.is_empty(), "{fault:?}\n{}", report.failure("this one"));
    }
}
