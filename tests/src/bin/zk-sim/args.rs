//! What can be asked of the command.

use clap::{Args, Parser, Subcommand};
use zk_tests::interleavings::Scenario;

/// The simulator's command: see docs/simulation.md.
#[derive(Debug, Parser)]
#[command(name = "zk-sim")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs many seeds.
    ///
    /// Exits with 1 if anything is violated, or if in 500 seeds or more something never happened that
    /// should have: each class of faults hits clients ten times, each way to fail is met. Failures are printed
    /// in full, with the faults that are enough for them.
    Run {
        #[command(flatten)]
        seeds: Seeds,
        /// So many failures are printed in full.
        #[arg(long, value_name = "N", default_value_t = 3)]
        show: u64,
    },
    /// Runs one seed again, with all its events.
    Replay {
        seed: u64,
        #[command(flatten)]
        minutes: Minutes,
        /// Looks for the faults that are enough for its failure.
        #[arg(long)]
        shrink: bool,
        /// Prints all that happens.
        #[arg(long)]
        trace: bool,
    },
    /// Prints each seed and the hash of its events, to be compared with another process's.
    Hash {
        #[command(flatten)]
        seeds: Seeds,
    },
    Search(zk_tests::sim::mutants::Arguments),
    /// Sessions against an ensemble, without a runtime: see docs/simulation.md.
    ///
    /// Exits with 1 if a promise is broken.
    #[command(subcommand)]
    Core(Core),
    /// Contenders for locks, with all orders in which a server can take their requests: see docs/simulation.md.
    ///
    /// Exits with 1 if a promise is broken.
    #[command(subcommand)]
    Locks(Locks),
    /// Counts what locks, sessions and caches cost as they become more, and prints docs/scale.md with that.
    Scale {
        /// Rows of up to so many.
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        most: usize,
        /// Writes the page instead of printing it.
        #[arg(long)]
        write: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Core {
    /// Runs seeds until so much has happened.
    Events {
        events: u64,
        /// The first seed.
        #[arg(default_value_t = 0)]
        seed: u64,
    },
    /// Runs all schedules of so many faults before each of so many deliveries.
    Exhaust { faults: usize, depth: u64 },
    /// Runs one seed again; what fails is made shorter.
    Replay { seed: u64 },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Locks {
    /// Goes through all states that contenders can reach, with every schedule of so many faults.
    Exhaust {
        /// So many faults at most.
        #[arg(long, value_name = "N", default_value_t = 1)]
        faults: usize,
        /// Who contends [default: each scenario in turn].
        #[arg(long, value_name = "NAME", value_parser = scenario)]
        scenario: Vec<Scenario>,
        /// So many runs at once [default: one for each processor].
        #[arg(long, value_name = "J", value_parser = clap::value_parser!(u64).range(1..))]
        jobs: Option<u64>,
    },
}

fn scenario(name: &str) -> Result<Scenario, String> {
    let found = Scenario::ALL.into_iter().find(|scenario| scenario.name() == name);
    let names = || Scenario::ALL.map(Scenario::name).join(", ");
    found.ok_or_else(|| format!("no scenario {name}: there are {}", names()))
}

/// How many runs at once.
pub(crate) fn jobs(asked: Option<u64>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(all, |jobs| usize::try_from(jobs).unwrap_or(usize::MAX))
}

/// Which seeds, and how.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Seeds {
    /// So many seeds.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) minutes: Minutes,
    /// The first of them.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// So many at once [default: one for each processor].
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Minutes {
    /// Simulated minutes of each seed.
    #[arg(long, value_name = "M", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) minutes: u64,
}

impl Seeds {
    pub(crate) fn jobs(&self) -> usize {
        jobs(self.jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guides_say_is_understood() {
        zk_tests::cli::understands::<Cli>(&[
            "run --seeds 1000 --minutes 10",
            "run --seeds 60000 --minutes 10 --seed 1000000 --show 1 --jobs 2",
            "replay 42 --minutes 10 --trace --shrink",
            "hash --seeds 100 --minutes 2 --jobs 1",
            "search --core-seconds 60 --minutes 5 --seed 7 --without-fault isolate",
            "core events 10000000",
            "core events 10000000 7",
            "core exhaust 2 12",
            "core replay 36",
            "scale --write",
            "scale --most 100",
            "locks exhaust --faults 2",
            "locks exhaust --faults 1 --scenario three --scenario semaphore --jobs 2",
        ]);
    }
}
