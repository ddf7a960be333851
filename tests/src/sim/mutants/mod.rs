//! The search for a seed that kills the mutant that this process is: its runs violate what the product's do not.
//!
//! `cargo mutation` builds the mutants of `tests/mutants/patches`, and starts a process for each. The product is searched
//! in the same way, and survives.

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
use zk_testkit::sim::Fault;

use self::noticed::Noticed;

mod noticed;
mod switch;

/// A run that takes this many seconds is not getting anywhere in virtual time either.
const STUCK: f64 = 20.0;

/// Runs of sessions alone for each run of clients, which takes as long.
const PLANS: u64 = 3;

/// Sessions alone run for one seed in so many while they call nothing that is mutated: it may be called by clients only,
/// or by sessions in a state that few runs reach.
const SELDOM: u64 = 4;

/// Runs seeds until something is violated that the product keeps to, or the time is over. Prints one object.
///
/// In an ordinary build it searches the product itself. `cargo mutation` does the same with mutants.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Processor time for the search.
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    core_seconds: f64,
    /// Simulated minutes of each seed.
    #[arg(long, value_name = "M", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// The first seed.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// A class of faults to leave out.
    #[arg(long = "without-fault", value_name = "CLASS", value_parser = class)]
    without: Vec<&'static str>,
}

/// A class of faults that can be left out.
fn class(text: &str) -> Result<&'static str, String> {
    let found = Fault::ALL.iter().map(|fault| fault.name()).find(|class| *class == text);
    found.ok_or_else(|| format!("no class of faults {text}"))
}

/// Seconds of computing that this process has had, however long that took.
fn core_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// A search that is under way.
struct Search {
    begun: f64,
    seeds: AtomicU64,
}

/// Runs `zk-sim search`.
///
/// Each seed stands for a run of clients, and for runs of sessions alone where those call what is mutated.
#[must_use]
pub fn search(args: &Arguments) -> Value {
    // A panic is reported as a violation; its own output is in the way here.
    std::panic::set_hook(Box::new(|_| {}));
    let search = Arc::new(Search { begun: core_seconds(), seeds: AtomicU64::new(0) });
    search.clone().watch(args.clone());
    let mut called_in_sessions = 0;
    loop {
        let tried = search.seeds.fetch_add(1, Ordering::Relaxed);
        if search.core_seconds() > args.core_seconds {
            return search.verdict(None);
        }
        let seed = args.seed + tried;
        if switch::name().is_none() || called_in_sessions > 0 || tried % SELDOM == 0 {
            let before = switch::calls();
            let mut seeds = PLANS * seed..PLANS * (seed + 1);
            let noticed = seeds.find_map(|seed| Noticed::by_sessions(args, seed));
            called_in_sessions += switch::calls() - before;
            if noticed.is_some() {
                return search.verdict(noticed);
            }
        }
        let noticed = Noticed::by_clients(args, seed);
        if noticed.is_some() {
            return search.verdict(noticed);
        }
    }
}

impl Search {
    fn core_seconds(&self) -> f64 {
        core_seconds() - self.begun
    }

    fn verdict(&self, noticed: Option<Noticed>) -> Value {
        let killed = noticed.is_some();
        let Noticed { by, seed, rules, first, classes } = noticed.unwrap_or_default();
        json!({
            "mutant": switch::name(),
            "killed": killed,
            "seeds": self.seeds.load(Ordering::Relaxed),
            "core_seconds": self.core_seconds(),
            "by": by,
            "seed": seed,
            "rules": rules,
            "first": first,
            "classes": classes,
            "calls": switch::calls(),
        })
    }

    /// Ends the process with a verdict if a run does not come to its end.
    fn watch(self: Arc<Self>, args: Arguments) {
        thread::spawn(move || {
            let (mut last, mut since) = (0, core_seconds());
            loop {
                thread::park_timeout(Duration::from_millis(500));
                let tried = self.seeds.load(Ordering::Relaxed);
                if tried != last {
                    (last, since) = (tried, core_seconds());
                } else if core_seconds() - since > STUCK {
                    let seed = args.seed + tried.saturating_sub(1);
                    println!("{}", self.verdict(Some(Noticed::by_not_ending(&args, seed))));
                    std::process::exit(0);
                }
            }
        });
    }
}

/// What the same run violates without the mutant, which has nothing to do with it then.
fn without_mutant<T>(run: impl FnOnce() -> BTreeSet<T>) -> BTreeSet<T> {
    if switch::name().is_none() {
        return BTreeSet::new();
    }
    switch::enable(false);
    let rules = run();
    switch::enable(true);
    rules
}
