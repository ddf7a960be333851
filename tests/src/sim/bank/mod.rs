//! The bank of mistakes: each is planted, and the simulator has to notice it.
//!
//! One process makes one mistake, so each is searched for in a process of its own. See
//! `zk-proto/src/planted.rs` for the mistakes and CONTRIBUTING.md for how to build them in.

use std::{collections::BTreeSet, process::ExitCode};

use zk_proto::planted::{Bug, made, plant};
use zk_testkit::sim::Fault;

use crate::core_sim;

mod child;
mod noticed;
mod parent;
mod table;

/// Plants one mistake after the other and runs seeds until it is noticed.
///
/// Exits with 1 if one is not noticed in time, or if something is violated although nothing is planted.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// A mistake to plant [default: all, and none].
    #[arg(long = "bug", value_name = "NAME", value_parser = bug)]
    bugs: Vec<Option<Bug>>,
    /// So many mistakes only, others with each commit.
    #[arg(long, value_name = "N", conflicts_with = "bugs")]
    some: Option<u64>,
    /// Processor time for each mistake.
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    core_seconds: f64,
    /// Simulated minutes of each seed.
    #[arg(long, value_name = "M", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// The first seed.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// So many at once [default: one for each processor].
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
    /// A class of faults to leave out.
    #[arg(long = "without-fault", value_name = "CLASS", value_parser = class)]
    without: Vec<&'static str>,
    /// Leaves each class of faults out in turn, and tells which mistakes are missed then.
    #[arg(long)]
    table: bool,
    /// One object instead of tables.
    #[arg(long)]
    json: bool,
    /// Searches here instead of in processes of their own.
    #[arg(long, hide = true)]
    here: bool,
}

/// What a bank run is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    pub(crate) bugs: Vec<Option<Bug>>,
    pub(crate) core_seconds: f64,
    pub(crate) minutes: u64,
    pub(crate) seed: u64,
    pub(crate) jobs: usize,
    pub(crate) without: BTreeSet<&'static str>,
    pub(crate) table: bool,
    pub(crate) json: bool,
    /// Search here instead of in processes of their own.
    pub(crate) here: bool,
}

/// How a mistake's name is written; nothing planted is `Nothing`.
pub(crate) fn name(bug: Option<Bug>) -> String {
    bug.map_or_else(|| "Nothing".to_owned(), |bug| format!("{bug:?}"))
}

fn bug(text: &str) -> Result<Option<Bug>, String> {
    let all = [None].into_iter().chain(Bug::ALL.iter().copied().map(Some));
    all.into_iter().find(|bug| name(*bug) == text).ok_or_else(|| format!("no mistake {text}"))
}

/// The classes of faults that can be left out.
fn classes() -> BTreeSet<&'static str> {
    let of_clients = Fault::ALL.iter().map(|fault| fault.name());
    let of_sessions = core_sim::Fault::all(1, 1).into_iter().map(core_sim::Fault::class);
    of_clients.chain(of_sessions).collect()
}

fn class(text: &str) -> Result<&'static str, String> {
    let found = classes().into_iter().find(|class| *class == text);
    found.ok_or_else(|| format!("no class of faults {text}"))
}

impl From<Arguments> for Args {
    fn from(arguments: Arguments) -> Self {
        let Arguments { bugs, some, core_seconds, minutes, seed, jobs, without, .. } = arguments;
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            bugs: if bugs.is_empty() { chosen(some) } else { bugs },
            core_seconds,
            minutes,
            seed,
            jobs: jobs.map_or_else(all, |jobs| usize::try_from(jobs).unwrap_or(usize::MAX)),
            without: without.into_iter().collect(),
            table: arguments.table,
            json: arguments.json,
            here: arguments.here,
        }
    }
}

/// All mistakes and none; or so many, which differ from commit to commit.
fn chosen(some: Option<u64>) -> Vec<Option<Bug>> {
    let mut bugs: Vec<Bug> = Bug::ALL.to_vec();
    if let Some(some) = some {
        let hash = super::commit()
            .bytes()
            .fold(7, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
        zk_testkit::sim::Rng::new(hash).shuffle(&mut bugs);
        bugs.truncate(usize::try_from(some).unwrap_or(usize::MAX));
    }
    [None].into_iter().chain(bugs.into_iter().map(Some)).collect()
}

/// Runs `zk-sim bank`.
///
/// # Errors
/// What is wrong with the processes that were started.
pub fn command(arguments: Arguments) -> Result<ExitCode, String> {
    let args = Args::from(arguments);
    if args.here {
        for &bug in &args.bugs {
            println!("{}", child::search(&args, bug));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.table { table::table(&args) } else { parent::all(&args) }
}
