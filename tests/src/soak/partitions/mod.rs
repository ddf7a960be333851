//! Every recipe and a client's reads and writes, on members that a real network joins, and a network that breaks.
//!
//! | module | concern |
//! |---|---|
//! | `enclosure` | namespaces of the run's own, which end with it |
//! | `network`, `cuts` | a bridge between members and clients, and ways to divide them |
//! | `members`, `disk`, `clock` | the ensemble: its namespaces, disks that can be full, clocks that can be wrong |
//! | `fault`, `inflict` | what goes wrong, how often, and how |
//! | `run` | one fault after the other, and the time until locks are granted again |
//! | `vantage` | threads that see the network from elsewhere |
//! | `processes` | those of Curator, kazoo, go-zookeeper and ours that contend for the same locks |
//! | `keeper` | clients that hold a lock for long |
//! | `record`, `historian` | what clients ask and are answered |

mod clock;
mod cuts;
mod disk;
mod enclosure;
mod fault;
mod historian;
mod inflict;
mod keeper;
mod members;
mod network;
mod processes;
mod record;
mod run;
mod vantage;

use std::{error::Error, process::ExitCode, time::Duration};

use clap::Args;

pub use self::{fault::Fault, run::run};
use zk_testkit::real::{Locator, Release};

use super::{at_least, in_millis, in_seconds, judges::porcupine::Porcupine};

/// The servers.
const RELEASE: Release = Release::V3_9;

/// What a soak test is to be like.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// For how long faults happen at least, in seconds.
    #[arg(long = "seconds", value_name = "S", default_value = "3600", value_parser = in_seconds)]
    pub time: Duration,
    /// How many faults there are at least.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub faults: usize,
    /// From one fault to the next at least, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "1000", value_parser = in_millis)]
    pub every: Duration,
    /// Members of the ensemble.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least(3))]
    pub members: usize,
    /// Sessions for each recipe.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least(1))]
    pub sessions: usize,
    /// Clients whose reads and writes are judged.
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub historians: usize,
    /// Between two turns of a task, and how long it has a lock, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "20", value_parser = in_millis)]
    pub pause: Duration,
    /// How long sessions last without a sign of life, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "6000", value_parser = in_millis)]
    pub session: Duration,
    /// Without processes of Curator, kazoo, go-zookeeper and ours, and without a second judge: for a quick look.
    #[arg(long)]
    pub no_others: bool,
    /// The only faults, if not all.
    #[arg(long, value_name = "FAULT", value_delimiter = ',')]
    pub only: Vec<Fault>,
    /// What faults are drawn by.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Runs this command again in namespaces of its own, unless it is in there already.
///
/// # Errors
/// Namespaces cannot be had here.
pub async fn enclose(options: &Options) -> Result<Option<ExitCode>, Box<dyn Error>> {
    if enclosure::is_inside() {
        return Ok(None);
    }
    enclosure::check()?;
    // There is no network in there to fetch anything over.
    Locator::from_env().locate(RELEASE)?;
    if !options.no_others {
        processes::tools().await?;
        Porcupine::build().await?;
    }
    enclosure::run_inside().map(Some)
}
