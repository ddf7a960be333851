//! The search for one mistake, in a process of its own.

use std::{
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

use super::{Args, made, name, noticed::Noticed, plant};

/// A run that takes this many seconds is not getting anywhere in virtual time either.
const STUCK: f64 = 20.0;

/// Runs of sessions alone for each run of clients, which takes as long.
const PLANS: u64 = 3;

/// Seeds in whose runs of sessions alone a mistake was never made before it is taken to be made elsewhere.
const RUNS_WITHOUT: u64 = 4;

/// Seconds of computing that this process has had, however long that took.
fn core_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// A search that is under way.
struct Search {
    bug: Option<Bug>,
    begun: f64,
    seeds: AtomicU64,
}

/// Runs seeds until the mistake is noticed or the time is over. One object to read for the parent.
///
/// Each seed stands for a run of clients and one of sessions alone, for as long as that makes the mistake.
pub(super) fn search(args: &Args, bug: Option<Bug>) -> Value {
    plant(bug);
    // A panic is told as a violation; what it says is in the way here.
    std::panic::set_hook(Box::new(|_| {}));
    let search = Arc::new(Search { bug, begun: core_seconds(), seeds: AtomicU64::new(0) });
    search.clone().watch(args.clone());
    let mut made_in_sessions = 0;
    loop {
        let tried = search.seeds.fetch_add(1, Ordering::Relaxed);
        if search.core_seconds() > args.core_seconds {
            return search.verdict(None);
        }
        let seed = args.seed + tried;
        if bug.is_none() || made_in_sessions > 0 || tried < RUNS_WITHOUT {
            let before = made();
            let mut seeds = PLANS * seed..PLANS * (seed + 1);
            let noticed = seeds.find_map(|seed| Noticed::by_sessions(args, bug, seed));
            made_in_sessions += made().saturating_sub(before);
            if noticed.is_some() {
                return search.verdict(noticed);
            }
        }
        let noticed = Noticed::by_clients(args, bug, seed);
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
        let is_noticed = noticed.is_some();
        let Noticed { by, seed, rules, first, classes } = noticed.unwrap_or_default();
        json!({
            "bug": name(self.bug),
            "noticed": is_noticed,
            "seeds": self.seeds.load(Ordering::Relaxed),
            "core_seconds": self.core_seconds(),
            "by": by,
            "seed": seed,
            "rules": rules,
            "first": first,
            "classes": classes,
            "made": made(),
        })
    }

    /// Ends the process with a verdict if a run does not come to its end.
    fn watch(self: Arc<Self>, args: Args) {
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
