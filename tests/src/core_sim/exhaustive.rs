//! All schedules of a kind, for a small conversation that always begins the same.

use zk_testkit::sim::Incident;

use super::{
    fault::all,
    plan::Plan,
    report::Report,
    soak::{Found, attempt},
};

/// How many milliseconds lasting faults last: longer than the session of [`Plan::small`] lives without its servers.
const LASTS: u64 = 2_700;

/// Which schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// How many faults: none, one or two.
    pub faults: usize,
    /// The first fault comes before one of the first so many deliveries, the second before one of the
    /// so many behind the first.
    pub depth: u64,
}

/// Runs [`Plan::small`] under every schedule in scope: each fault before each delivery,
/// alone or in each ordered pair.
///
/// Time is not enumerated, nor is the order of deliveries: bytes take a millisecond each way.
///
/// # Errors
/// [`Found`] for the first schedule that fails.
pub fn exhaust(scope: Scope) -> Result<Report, Box<Found>> {
    let mut report = Report::default();
    let mut attempt = |faults: Vec<(u64, Incident)>| {
        let plan = Plan::small(faults);
        match attempt(&plan) {
            Ok(run) => report.add(&run),
            Err(failure) => return Err(Box::new(Found { plan, failure })),
        }
        Ok(())
    };
    attempt(Vec::new())?;
    let all = every_fault();
    for first in (0..scope.depth).filter(|_| scope.faults > 0) {
        for fault in &all {
            let fault = (first, *fault);
            attempt(vec![fault])?;
            for second in (first..first + scope.depth).filter(|_| scope.faults > 1) {
                for other in &all {
                    attempt(vec![fault, (second, *other)])?;
                }
            }
        }
    }
    Ok(report)
}

/// All that can go wrong in [`Plan::small`].
pub(crate) fn every_fault() -> Vec<Incident> {
    let Plan { clients, members, timeout, .. } = Plan::small(Vec::new());
    all(clients, members, timeout, LASTS)
}
