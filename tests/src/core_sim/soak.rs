//! Many runs; and when one fails, the least that makes it fail.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use zk_testkit::sim::Schedule;

use super::{
    plan::Plan,
    report::Report,
    run::{Failure, run},
};
use crate::shrink::fewer;

/// A run that failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// The shortest plan that was found to fail.
    pub plan: Plan,
    /// How it fails.
    pub failure: Failure,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, failure } = self;
        for line in &failure.trace {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "plan: {plan:?}")?;
        write!(f, "{}", plan.schedule)?;
        for (delivery, incident) in &plan.by_delivery {
            writeln!(f, "before delivery {delivery}: {incident}")?;
        }
        for violation in &failure.violations {
            writeln!(f, "violation: {violation}")?;
        }
        write!(f, "to see it again: zk-sim core replay {}", plan.seed)
    }
}

/// Runs a plan; a panic is a failure like any other.
///
/// # Errors
/// [`Failure`] if a promise is broken.
pub fn attempt(plan: &Plan) -> Result<Report, Failure> {
    catch_unwind(AssertUnwindSafe(|| run(plan))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.into()));
        let violations = vec![format!("panic: {}", text.unwrap_or_default())];
        Err(Failure { violations, trace: Vec::new() })
    })
}

/// Leaves out faults as long as the run still fails.
#[must_use]
pub fn shrink(plan: &Plan, failure: Failure) -> Found {
    let mut found = Found { plan: plan.clone(), failure };
    let mut still = |plan: Plan| {
        let outcome = attempt(&plan).map_err(|failure| found = Found { plan, failure });
        outcome.is_err()
    };
    let (mut schedule, mut by_delivery) = (plan.schedule.0.clone(), plan.by_delivery.clone());
    fewer(&mut schedule, |left| still(Plan { schedule: Schedule(left.to_vec()), ..plan.clone() }));
    fewer(&mut by_delivery, |left| {
        let schedule = Schedule(schedule.clone());
        still(Plan { schedule, by_delivery: left.to_vec(), ..plan.clone() })
    });
    found
}

/// Runs seed after seed until so many things have happened.
///
/// # Errors
/// [`Found`] for the first run that fails, shrunk.
pub fn soak(first_seed: u64, events: u64) -> Result<Report, Box<Found>> {
    let mut report = Report::default();
    for seed in first_seed.. {
        if report.events >= events {
            break;
        }
        let plan = Plan::of_seed(seed);
        match attempt(&plan) {
            Ok(run) => report.add(&run),
            Err(failure) => return Err(Box::new(shrink(&plan, failure))),
        }
    }
    Ok(report)
}
