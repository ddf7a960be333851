//! The search for one mistake, in a process of its own.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use zk_proto::planted::Bug;

use super::{Args, made, name, plant};
use crate::sim::{Options, run};

/// A run that takes this many seconds is not getting anywhere in virtual time either.
const STUCK: f64 = 20.0;

/// Seconds of computing that this process has had.
fn core_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Runs seeds until the mistake is noticed or the time is over. One object to read for the parent.
pub(super) fn search(args: &Args, bug: Option<Bug>) -> Value {
    plant(bug);
    // A panic is told as a violation; what it says is in the way here.
    std::panic::set_hook(Box::new(|_| {}));
    let begun = core_seconds();
    let seeds = watched(bug, begun);
    let mut simulated = 0;
    loop {
        let tried = seeds.fetch_add(1, Ordering::Relaxed);
        if core_seconds() - begun > args.core_seconds {
            return verdict(bug, tried, begun, simulated, &BTreeSet::new(), "");
        }
        let mut options = Options::new(args.seed + tried, args.minutes);
        options.schedule.0.retain(|incident| !args.without.contains(&incident.fault));
        let report = run(&options, false);
        simulated += report.simulated;
        let innocent =
            if report.violations.is_empty() { BTreeSet::new() } else { without(bug, &options) };
        let guilty = report.violations.iter().filter(|it| !innocent.contains(it.rule));
        let rules: BTreeSet<&str> = guilty.clone().map(|it| it.rule).collect();
        if let Some(first) = guilty.clone().next() {
            return verdict(bug, tried + 1, begun, simulated, &rules, &first.to_string());
        }
    }
}

/// The rules that this seed violates without the mistake, which has nothing to do with it then.
fn without(bug: Option<Bug>, options: &Options) -> BTreeSet<&'static str> {
    if bug.is_none() {
        return BTreeSet::new();
    }
    plant(None);
    let rules = run(options, false).rules().collect();
    plant(bug);
    rules
}

fn verdict(
    bug: Option<Bug>,
    seeds: u64,
    begun: f64,
    simulated: u64,
    rules: &BTreeSet<&str>,
    what: &str,
) -> Value {
    json!({
        "bug": name(bug),
        "noticed": !rules.is_empty(),
        "seeds": seeds,
        "core_seconds": core_seconds() - begun,
        "simulated_minutes": simulated / 60_000,
        "rules": rules,
        "first": what,
        "made": made(),
    })
}

/// Counts seeds, and ends the process with a verdict if one of them does not come to its end.
fn watched(bug: Option<Bug>, begun: f64) -> Arc<AtomicU64> {
    let seeds = Arc::new(AtomicU64::new(0));
    let watching = seeds.clone();
    thread::spawn(move || {
        let (mut last, mut since) = (0, core_seconds());
        loop {
            thread::park_timeout(Duration::from_millis(500));
            let tried = watching.load(Ordering::Relaxed);
            if tried != last {
                (last, since) = (tried, core_seconds());
            } else if core_seconds() - since > STUCK {
                let rules = BTreeSet::from(["R3"]);
                println!("{}", verdict(bug, tried, begun, 0, &rules, "a run does not end"));
                std::process::exit(0);
            }
        }
    });
    seeds
}
