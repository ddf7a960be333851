//! Mistakes to be made on purpose are not there to be made.

/// A constant, so it can decide what is compiled; any name, since there is nothing behind it.
#[cfg(not(zk_bank))]
const PLANTED: bool = zk_proto::planted!(AnyName);

#[cfg(not(zk_bank))]
#[test]
fn an_ordinary_build_makes_no_mistakes_on_purpose() {
    const { assert!(!PLANTED) }
}

#[cfg(zk_bank)]
#[test]
fn a_mistake_is_made_only_by_a_process_that_is_told_to_make_it_and_then_no_other() {
    use zk_proto::planted::{Bug, is, made, plant};

    assert!(Bug::ALL.iter().all(|&bug| !is(bug)));
    for &bug in Bug::ALL {
        plant(Some(bug));
        assert!(Bug::ALL.iter().all(|&other| is(other) == (other == bug)));
        assert_eq!(made(), 1);
    }
    plant(None);
    assert!(Bug::ALL.iter().all(|&bug| !is(bug)));
}
