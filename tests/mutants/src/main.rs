//! `cargo mutation`: builds mutants of the product, and tells which the tests kill.
//!
//! | module | concern |
//! |---|---|
//! | `mutant` | the files in `patches`: what is said of a mutant, and what has to kill it |
//! | `patch` | diffs, and where they change a file |
//! | `schema` | all mutants of a file in one text, behind switches |
//! | `copy` | the workspace with all mutants, below `target` |
//! | `build` | what is built of it: the simulator, and tests |
//! | `judge` | one mutant, one verdict |
//! | `table` | which mutants survive without a class of faults |
//! | `add` | a working tree becomes a patch |
//! | `area` | parts of the product, and the tests that are about each |
//! | `generated` | what cargo-mutants would change in one of them |
//! | `survey` | a sample of that, and which of it the tests notice |
//! | `equivalent` | what no test can notice, and why |

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::Path,
    process::{Command, ExitCode},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use clap::Parser;
use serde_json::{Value, json};

use self::{
    area::Area,
    build::{Built, Profile},
    mutant::{Judge, Mutant},
};

mod add;
mod area;
mod build;
mod copy;
mod equivalent;
mod generated;
mod judge;
mod mutant;
mod patch;
mod schema;
mod survey;
mod table;

/// Builds mutants of the product, and tells which the simulator and the tests kill.
///
/// Exits with 1 if a mutant survives, or if the product does not.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo mutation")]
struct Args {
    /// A mutant, or `product` [default: all, and the product].
    #[arg(long = "mutant", value_name = "NAME")]
    names: Vec<String>,
    /// So many mutants only, others with each commit.
    #[arg(long, value_name = "N", conflicts_with = "names")]
    some: Option<usize>,
    /// Processor time for each search of the simulator.
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    core_seconds: f64,
    /// Simulated minutes of each seed.
    #[arg(long, value_name = "M", default_value_t = 5)]
    minutes: u64,
    /// The first seed.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// So many at once [default: one for each processor].
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
    /// A class of faults to leave out.
    #[arg(long = "without-fault", value_name = "CLASS")]
    without: Vec<String>,
    /// Leaves each class of faults out in turn, and tells which mutants survive then.
    #[arg(long)]
    table: bool,
    /// One object instead of tables.
    #[arg(long)]
    json: bool,
    /// Asks cargo-mutants for what could be wrong in this area, and tells which of that the tests of the area notice; with
    /// `--some N`, a sample that `--seed` draws. Exits with 1 if it is less than nine in ten, without those that are
    /// listed as equivalent.
    #[arg(long, value_name = "AREA", value_parser = Area::named, conflicts_with_all = ["names", "without", "table", "json"])]
    area: Option<&'static Area>,
    /// Has the simulator judge the area in place of its tests, each change for `--core-seconds`, and tells how often it
    /// called what it did not notice. Exits with 0 however many survive, and with 2 if the product does not pass.
    #[arg(long, requires = "area")]
    simulator: bool,
    /// Makes a patch of what differs in the product from the last commit.
    #[arg(long, value_name = "NAME")]
    add: Option<String>,
}

fn main() -> ExitCode {
    match execute(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cargo mutation: {error}");
            ExitCode::from(2)
        }
    }
}

fn execute(args: &Args) -> Result<ExitCode, String> {
    let root = root();
    if let Some(name) = &args.add {
        return add::add(root, name).map(|()| ExitCode::SUCCESS);
    }
    if let Some(area) = args.area {
        return survey::survey(args, root, area);
    }
    let mutants = mutant::all(root)?;
    let subjects = chosen(args, &mutants)?;
    let mutated = copy::mutated(root, &mutants)?;
    let judge = |it: &Option<&Mutant>| it.map_or(Judge::Simulator, |mutant| mutant.judge.clone());
    let judges = subjects.iter().map(judge).collect();
    let built = Built::new(root, &mutated, &judges, Profile::Release)?;
    if args.table {
        return table::table(args, &built, &subjects);
    }
    let verdicts = for_each(args, &subjects, |subject| {
        let verdict = judge::verdict(args, &built, *subject)?;
        if !args.json {
            println!("{}", judge::line(&verdict));
        }
        Ok(verdict)
    })?;
    let is_right = |it: &(&Option<&Mutant>, &Value)| judge::is_killed(it.1) == it.0.is_some();
    let right = subjects.iter().zip(&verdicts).filter(is_right).count();
    let all = subjects.iter().flatten().count();
    let killed = subjects.iter().zip(&verdicts).filter(|it| it.0.is_some() && is_right(it)).count();
    if args.json {
        let object = json!({
            "commit": commit(),
            "all": all,
            "killed": killed,
            "minutes": args.minutes,
            "first_seed": args.seed,
            "core_seconds": args.core_seconds,
            "without": args.without,
            "mutants": verdicts,
        });
        println!("{object}");
    } else {
        println!("{killed} of {all} killed, at commit {}", commit());
    }
    Ok(ExitCode::from(u8::from(right < subjects.len())))
}

fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("the package stands two folders below the workspace's root")
}

/// Those that are asked for; `None` is the product.
fn chosen<'a>(args: &Args, mutants: &'a [Mutant]) -> Result<Vec<Option<&'a Mutant>>, String> {
    if args.names.is_empty() {
        let mut mutants: Vec<&Mutant> = mutants.iter().collect();
        if let Some(some) = args.some {
            let commit = commit();
            mutants.sort_by_cached_key(|mutant| {
                let mut hasher = DefaultHasher::new();
                (&commit, &mutant.name).hash(&mut hasher);
                hasher.finish()
            });
            mutants.truncate(some);
        }
        return Ok([None].into_iter().chain(mutants.into_iter().map(Some)).collect());
    }
    let named = |name: &String| match &**name {
        "product" => Ok(None),
        name => {
            let found = mutants.iter().find(|mutant| mutant.name == name);
            found.map(Some).ok_or_else(|| format!("no mutant {name}"))
        }
    };
    args.names.iter().map(named).collect()
}

/// Does something for each, for several at a time. What comes of it is in their order.
fn for_each<S: Sync, T: Send>(
    args: &Args,
    subjects: &[S],
    act: impl Fn(&S) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(all, |jobs| usize::try_from(jobs).unwrap_or(usize::MAX));
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(subjects.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(subject) = subjects.get(number) else { return };
                    let outcome = act(subject);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((number, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Which sources these are, as far as git knows.
fn commit() -> String {
    let mut git = Command::new("git");
    let git = git.args(["describe", "--always", "--dirty"]).current_dir(root()).output();
    let text = git.ok().filter(|git| git.status.success()).map(|git| git.stdout);
    let text = text.and_then(|text| String::from_utf8(text).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_apply_alone_and_together() {
        let mutants = mutant::all(root()).unwrap();
        assert!(mutants.len() > 70);
        copy::mutated(root(), &mutants).unwrap();
    }

    #[test]
    fn what_the_guides_say_is_understood() {
        for line in [
            "--mutant WakesAll",
            "--without-fault isolate",
            "--table",
            "--some 10 --core-seconds 60",
            "--add Name",
            "--area codec --some 30 --seed 7",
            "--area libraries --simulator --some 90 --seed 7 --core-seconds 20",
        ] {
            Args::try_parse_from([""].into_iter().chain(line.split(' '))).unwrap();
        }
    }
}
