//! A1: a run in which nothing goes wrong shows nothing. What has to have happened in a run of many seeds.

use std::fmt::Write as _;

use zk_testkit::sim::{Fault, Fired};

use super::{
    Counts,
    check::{EXEMPT_GRANTS, GRANTED},
};

/// Seeds from which on a run has to have met everything.
pub const SEEDS_FOR_ALL: u64 = 500;

/// How often each class of faults has to have hit a client by then.
const HITS_MIN: u64 = 10;

/// Virtual milliseconds from on which clients have to have gone through everything: ten minutes for each.
const LONG: u64 = SEEDS_FOR_ALL * 600_000;

/// What clients have to have gone through by then, and how often: each way in which something can fail.
const MUST_HAPPEN: [(&str, u64); 44] = [
    ("acquires dropped", 1),
    ("acquires ended with their session", 1),
    ("acquires timed out", 1),
    ("caches moved to another session", 100),
    ("calls that timed out or failed", 100),
    ("clients of a member that is alone at the end", 10),
    ("closes not confirmed", 1),
    ("connects dropped", 1),
    ("connects failed", 1),
    ("contenders evicted", 1),
    ("crashes", 1),
    ("creates in doubt", 1),
    ("creates not applied", 1),
    ("credentials refused", 1),
    ("events checked", 1),
    ("fenced writes refused", 1),
    ("groups followed", 100),
    ("guards lost while held", 1),
    ("histories of 200 operations checked", 500),
    ("latches that have lost the lead", 1),
    ("leaders told of", 100),
    ("looks at caches that follow", 10_000),
    ("looks at clients at rest", 1_000),
    ("looks at what is held", 10_000),
    ("meddled locks asked back", 1),
    ("meddled locks lost", 1),
    ("paths watched again", 1_000),
    ("persistent nodes back in another session", 1),
    ("own nodes checked", 1_000),
    ("paths made anew", 100),
    ("reads beside streams", 10_000),
    ("reads tried again", 10),
    ("reconnects", 1),
    ("releases not confirmed", 1),
    ("releases of durable locks", 100),
    ("requests that cost their connections", 10),
    ("semaphores resized", 100),
    ("servers changed", 100),
    ("sessions handed over", 1),
    ("sessions lost", 1),
    ("sessions resumed by a minority", 50),
    ("simple locks taken away", 1),
    ("upgrades refused", 1),
    ("watches ended with their session", 1),
];

/// What clients have to have been granted by then, each so many times.
const GRANTS: [&str; 25] = [
    "granted: barriers passed",
    "granted: cohort locks",
    "granted: counted permits",
    "granted: double barriers entered",
    "granted: double barriers left",
    "granted: downgrades",
    "granted: herd locks",
    "granted: leads by campaigns",
    "granted: leads by latches",
    "granted: locks",
    "granted: locks beside a herd",
    "granted: locks beside cohorts",
    "granted: locks beside multi-locks",
    "granted: locks by tickets",
    "granted: locks to read",
    "granted: locks to write",
    "granted: locks within a cohort",
    "granted: memberships",
    "granted: multi-locks",
    "granted: permits",
    "granted: persistent nodes",
    "granted: semaphore mutexes",
    "granted: several permits",
    "granted: simple locks",
    "granted: upgrades",
];

/// How often each of them.
const GRANTS_MIN: u64 = 1_000;

/// Of how many grants the rules may not hold for one, since its client was misled.
const EXEMPT: u64 = 100;

/// What a run of many seeds has met, and what not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Classes of faults that have hit clients less often than they should have, and how often.
    pub rare: Vec<(&'static str, u64)>,
    /// What has happened less often than it should have, and how often.
    pub missing: Vec<(&'static str, u64)>,
    /// Grants that no rule was held against, and all grants, if those are too many of these.
    pub exempt: Option<(u64, u64)>,
}

impl Coverage {
    pub(super) fn of(fired: &Fired, counts: &Counts, simulated: u64) -> Self {
        let mut coverage = Self::default();
        for &class in Fault::ALL {
            let total = fired.get(&class).copied().unwrap_or_default();
            if total < HITS_MIN {
                coverage.rare.push((class.name(), total));
            }
        }
        for (name, least) in must_happen() {
            let count = counts.get(name).copied().unwrap_or_default();
            if count < least && simulated >= LONG {
                coverage.missing.push((name, count));
            }
        }
        let count = |name| counts.get(name).copied().unwrap_or_default();
        let (exempt, all) = (count(EXEMPT_GRANTS), count(GRANTED));
        coverage.exempt = (EXEMPT * exempt > all).then_some((exempt, all));
        coverage
    }

    /// Whether everything has happened that should have.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.rare.is_empty() && self.missing.is_empty() && self.exempt.is_none()
    }

    /// Lines to read.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (class, hits) in &self.rare {
            let _ = writeln!(text, "fired {hits} times, and should have {HITS_MIN} times: {class}");
        }
        for (name, count) in &self.missing {
            let _ = writeln!(text, "happened only {count} times: {name}");
        }
        if let Some((exempt, all)) = self.exempt {
            let _ = writeln!(text, "{exempt} of {all} grants were exempt from the rules");
        }
        text
    }
}

/// What has to happen, and how often.
fn must_happen() -> impl Iterator<Item = (&'static str, u64)> {
    MUST_HAPPEN.into_iter().chain(GRANTS.map(|grant| (grant, GRANTS_MIN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> (Fired, Counts) {
        let fired = Fault::ALL.iter().map(|class| (*class, HITS_MIN)).collect();
        (fired, must_happen().collect())
    }

    #[test]
    fn rare_fault_class_is_reported() {
        let (mut fired, counts) = full();
        assert!(Coverage::of(&fired, &counts, LONG).is_enough());
        fired.insert(Fault::Reset, HITS_MIN - 1);
        fired.remove(&Fault::Late);
        let coverage = Coverage::of(&fired, &counts, LONG);
        assert!(!coverage.is_enough());
        assert_eq!(coverage.rare, [("reset", HITS_MIN - 1), ("late", 0)]);
    }

    #[test]
    fn too_many_exempt_grants_are_reported() {
        let (fired, mut counts) = full();
        counts.extend([(GRANTED, 1_000), (EXEMPT_GRANTS, 10)]);
        assert!(Coverage::of(&fired, &counts, LONG).is_enough());
        counts.insert(EXEMPT_GRANTS, 11);
        let coverage = Coverage::of(&fired, &counts, LONG);
        assert_eq!(coverage.exempt, Some((11, 1_000)));
        assert!(!coverage.is_enough());
    }

    #[test]
    fn missing_event_in_a_long_run_is_reported() {
        let (fired, mut counts) = full();
        counts.insert("sessions lost", 0);
        counts.remove("crashes");
        counts.insert("granted: permits", GRANTS_MIN - 1);
        let coverage = Coverage::of(&fired, &counts, LONG);
        let missing = [("crashes", 0), ("sessions lost", 0), ("granted: permits", GRANTS_MIN - 1)];
        assert_eq!(coverage.missing, missing);
        assert!(!coverage.is_enough());
        assert!(Coverage::of(&fired, &counts, LONG - 1).is_enough());
    }
}
