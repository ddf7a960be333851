//! All of it together.

use std::{
    fmt, io,
    time::{Duration, Instant},
};

use zk_testkit::real::Ensemble;

use super::{
    claim::Party,
    counts::Counts,
    foreign::Tools,
    report::{Demands, Report},
    scenario::Scenario,
    stage::Stage,
};
use crate::faults::Fault;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which recipe.
    pub scenario: Scenario,
    /// Whose processes.
    pub parties: Vec<Party>,
    /// How long at least.
    pub time: Duration,
    /// How much longer at most, if something has not been seen yet, or not often enough.
    pub extra_time: Duration,
    /// What is asked of it.
    pub demands: Demands,
    /// What faults are made up from.
    pub seed: u64,
    /// Whether anything goes wrong.
    pub faults: bool,
    /// The only thing that does, if not any.
    pub only: Option<Fault>,
    /// Processes of each party.
    pub processes: usize,
    /// Contenders in each process.
    pub tasks: usize,
    /// How long a visit takes, beside two requests to the resource.
    pub hold: Duration,
    /// How long sessions live without a sign of life. A fault comes whenever it and a quarter have gone by.
    pub session: Duration,
}

impl Options {
    /// So long, with faults, and with what the scenario usually has.
    #[must_use]
    pub fn new(scenario: Scenario, time: Duration) -> Self {
        let sharing = matches!(scenario, Scenario::ReadWrite | Scenario::Semaphore);
        Self {
            scenario,
            parties: scenario.parties().to_vec(),
            time,
            extra_time: Duration::ZERO,
            demands: Demands::NONE,
            seed: 1,
            faults: true,
            only: None,
            processes: 2,
            tasks: if sharing { 2 } else { 1 },
            hold: Duration::from_millis(if sharing { 5 } else { 0 }),
            session: Duration::from_secs(3),
        }
    }
}

/// Why there is no report.
#[derive(Debug)]
pub enum Error {
    /// The operating system refused something.
    Io(io::Error),
    /// The servers could not be started, or started again.
    Servers(zk_testkit::real::Error),
    /// A party has never had the lock.
    Absent {
        /// The party.
        party: Party,
        /// The end of what its processes have written.
        last_words: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Servers(error) => error.fmt(f),
            Self::Absent { party, last_words } => {
                write!(f, "{party} has not had the lock in the beginning; it says\n{last_words}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<zk_testkit::real::Error> for Error {
    fn from(error: zk_testkit::real::Error) -> Self {
        Self::Servers(error)
    }
}

/// Runs a scenario on an ensemble.
///
/// # Errors
/// [`Error`], if it could not be run. What went wrong while it ran is in the report.
pub async fn run(options: &Options, ensemble: &Ensemble, tools: &Tools) -> Result<Report, Error> {
    let mut stage = Stage::set(options, ensemble, tools).await?;
    stage.warm_up().await?;
    stage.resource.begin_counting().await;
    let begun = Instant::now();
    stage.contend().await?;
    let (time, pause) = (begun.elapsed(), stage.resource.longest_pause().await);
    let counts = stage.resource.counts().await;
    let mut stuck = stage.end().await?;
    stuck.append(&mut stage.crashed);
    // Violations of the last moments are in the later counts.
    let Counts { violations, told, .. } = stage.resource.counts().await;
    Ok(Report {
        options: options.clone(),
        version: ensemble.version().to_string(),
        time,
        longest_pause: pause.time,
        before_pause: stage.before(pause),
        outage_during_pause: stage.outage_during(pause),
        counts: Counts { violations, told, ..counts },
        faults: stage.fault_counts(),
        stuck,
        left_behind: stage.left_behind,
    })
}
