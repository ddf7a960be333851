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

pub(crate) const USAGE: &str = "\
usage: zk-sim bank [--bug NAME]... [--some N] [--core-seconds S] [--minutes M] [--seed S] [--jobs J]
                   [--without-fault CLASS]... [--table] [--json]

Plants one mistake after the other and runs seeds until it is noticed; exits with 1 if one is not
noticed within S core-seconds (60), or if something is violated although nothing is planted.

--some N           N mistakes only, others with each commit
--without-fault C  with faults of class C left out
--table            leaves each class of faults out in turn, and tells which mistakes are missed then
";

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

fn parse(mut args: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut parsed = Args {
        bugs: Vec::new(),
        core_seconds: 60.0,
        minutes: 5,
        seed: 1,
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        without: BTreeSet::new(),
        table: false,
        json: false,
        here: false,
    };
    let mut some = None;
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{option} what?"));
        let number = |text: String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        match &*option {
            "--bug" => parsed.bugs.push(bug(&value()?)?),
            "--some" => some = Some(number(value()?)?),
            "--core-seconds" => {
                let text = value()?;
                parsed.core_seconds = text.parse().map_err(|error| format!("{text}: {error}"))?;
            }
            "--minutes" => parsed.minutes = number(value()?)?.max(1),
            "--seed" => parsed.seed = number(value()?)?,
            "--jobs" => parsed.jobs = number(value()?)?.max(1) as usize,
            "--without-fault" => drop(parsed.without.insert(class(&value()?)?)),
            "--table" => parsed.table = true,
            "--json" => parsed.json = true,
            "--here" => parsed.here = true,
            _ => return Err(format!("no option {option} there")),
        }
    }
    if parsed.bugs.is_empty() {
        parsed.bugs = chosen(some);
    }
    Ok(parsed)
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
/// What is wrong with the arguments, or with the processes that were started.
pub fn command(args: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    let args = parse(args).map_err(|error| format!("{error}\n{USAGE}"))?;
    if args.here {
        for &bug in &args.bugs {
            println!("{}", child::search(&args, bug));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.table { table::table(&args) } else { parent::all(&args) }
}
