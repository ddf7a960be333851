//! The small ones: `zk-sim locks exhaust` goes further.

use super::*;

fn all(scenario: Scenario, faults: usize) -> Counts {
    explore(scenario, faults, 1).unwrap_or_else(|found| panic!("{found}"))
}

/// A search that goes wrong finds next to nothing to do, or the same again and again.
#[test]
fn lock_holds_in_all_orders_and_with_any_fault() {
    let (without, with) = (all(Scenario::Two, 0), all(Scenario::Two, 1));
    assert!(without.states > 40, "{without:?}");
    assert!(with.states > 20 * without.states, "{with:?}");
}

#[test]
fn three_contenders_hold_in_all_orders() {
    for scenario in [Scenario::Three, Scenario::Shared] {
        let counts = all(scenario, 0);
        assert!(counts.states > 400, "{scenario}: {counts:?}");
    }
}

#[test]
fn readers_and_writers_hold_in_all_orders() {
    for scenario in [Scenario::ReadersAndWriter, Scenario::WritersAndReader] {
        let counts = all(scenario, 0);
        assert!(counts.states > 400, "{scenario}: {counts:?}");
    }
}
