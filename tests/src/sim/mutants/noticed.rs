//! One run of a mutant: does it violate what the product does not?

use std::collections::BTreeSet;

use zk_testkit::sim::Incident;

use super::{Arguments, without_mutant};
use crate::{
    core_sim::{self, Plan},
    sim::{Options, run},
};

/// What is said of a run that was given up.
pub(super) const UNENDING: &str = "a run does not end";

/// How a mutant was noticed.
#[derive(Default)]
pub(super) struct Noticed {
    /// By which simulator.
    pub(super) by: &'static str,
    pub(super) seed: u64,
    pub(super) rules: BTreeSet<String>,
    /// What was violated first.
    pub(super) first: String,
    /// Classes of faults that were there; without any other it would have been noticed as well.
    pub(super) classes: BTreeSet<&'static str>,
}

impl Noticed {
    /// A run of clients and locks.
    pub(super) fn by_clients(args: &Arguments, seed: u64) -> Option<Self> {
        let mut options = Options::new(seed, args.minutes);
        options.schedule.0.retain(|incident| !args.without.contains(&incident.fault.name()));
        let report = run(&options, false);
        if report.violations.is_empty() {
            return None;
        }
        let innocent = without_mutant(|| run(&options, false).rules().collect());
        let guilty = report.violations.iter().filter(|it| !innocent.contains(it.rule));
        let rules: BTreeSet<String> = guilty.clone().map(|it| it.rule.to_owned()).collect();
        let first = guilty.map(ToString::to_string).next()?;
        let classes = options.schedule.0.iter().map(|incident| incident.fault.name()).collect();
        Some(Self { by: "zk-sim", seed, rules, first, classes })
    }

    /// One of the runs of a seed has not come to its end.
    pub(super) fn by_not_ending(args: &Arguments, seed: u64) -> Self {
        let rules = BTreeSet::from(["R3".to_owned()]);
        let first = UNENDING.to_owned();
        let schedule = Options::new(seed, args.minutes).schedule.0;
        let mut classes: BTreeSet<_> =
            schedule.iter().map(|incident| incident.fault.name()).collect();
        classes.retain(|class| !args.without.contains(class));
        Self { by: "zk-sim", seed, rules, first, classes }
    }

    /// A run of sessions alone.
    pub(super) fn by_sessions(args: &Arguments, seed: u64) -> Option<Self> {
        let mut plan = Plan::of_seed(seed);
        let stays = |incident: &Incident| !args.without.contains(&incident.fault.name());
        plan.schedule.0.retain(stays);
        plan.by_delivery.retain(|(_, incident)| stays(incident));
        let failure = core_sim::attempt(&plan).err()?;
        let innocent = without_mutant(|| match core_sim::attempt(&plan) {
            Ok(_) => BTreeSet::new(),
            Err(failure) => failure.violations.iter().map(|it| rule(it)).collect(),
        });
        let mut guilty = failure.violations.iter().filter(|it| !innocent.contains(&rule(it)));
        let rules: BTreeSet<String> = guilty.clone().map(|it| rule(it)).collect();
        let first = guilty.next().cloned()?;
        let by_delivery = plan.by_delivery.iter().map(|(_, incident)| incident);
        let faults = plan.schedule.0.iter().chain(by_delivery);
        let classes = faults.map(|incident| incident.fault.name()).collect();
        Some(Self { by: "zk-sim core", seed, rules, first, classes })
    }
}

/// The rule that a text about a violation begins with. What has no rule is a run that cannot go on.
fn rule(violation: &str) -> String {
    let rules = violation.split(':').next().unwrap_or_default();
    let is_rule = |text: &str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|first| first.is_ascii_uppercase())
            && chars.all(|digit| digit.is_ascii_digit())
    };
    let named = !rules.is_empty() && rules.split(", ").all(is_rule);
    if named { rules.replace(", ", " ") } else { "R3".to_owned() }
}
