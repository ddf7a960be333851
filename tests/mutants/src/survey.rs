//! A sample of what cargo-mutants would change in an area, and which of it the area's tests notice, or the simulator.

use std::{
    collections::{BTreeMap, BTreeSet, hash_map::DefaultHasher},
    hash::{Hash as _, Hasher as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    Args,
    area::Area,
    build::{self, Built, Profile},
    copy, equivalent,
    generated::{self, Change, Merged},
    judge::{self, run},
    mutant::Judge,
};

/// How much longer than without a change a test may take before it is said to hang, and how long at least.
const SLOWER: u32 = 10;
const TIME_MIN: Duration = Duration::from_secs(60);

/// So much longer than anything takes without a change.
const SOUND_MAX: Duration = Duration::from_secs(3600);

/// So many in a hundred have to be noticed.
const NOTICED_MIN: usize = 90;

/// Draws a sample, builds it, and has it judged.
pub(crate) fn survey(args: &Args, root: &Path, area: &Area) -> Result<ExitCode, String> {
    let reasons = equivalent::read(root)?;
    let changes = sample(generated::list(root, area)?, args.some, args.seed);
    let (files, left_out) = viable(root, area, &changes)?;
    let compiles = changes.iter().enumerate().filter(|(number, _)| !left_out.contains(number));
    let judged: Vec<&Change> = compiles.map(|(_, change)| change).collect();
    let tell = |change: &Change, verdict: Verdict| {
        let verdict = match verdict {
            Verdict::Survives(_) if reasons.contains_key(&change.key()) => Verdict::Equivalent,
            verdict => verdict,
        };
        match &verdict {
            Verdict::Noticed(by) => println!("noticed     {}: {by}", change.name),
            Verdict::Survives(how) => println!("survives    {}{how}", change.name),
            Verdict::Equivalent => {
                println!("equivalent  {}: {}", change.name, reasons[&change.key()]);
            }
        }
        verdict
    };
    let verdicts = if args.simulator {
        let judge = simulator(args, root, &files)?;
        crate::for_each(args, &judged, |change| Ok(tell(change, judge(change)?)))?
    } else {
        let judge = tests(root, area, &files)?;
        judged
            .iter()
            .map(|change| Ok(tell(change, judge(change)?)))
            .collect::<Result<_, String>>()?
    };
    let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|&verdict| is(verdict)).count();
    let noticed = count(|verdict| matches!(verdict, Verdict::Noticed(_)));
    let equivalents = count(|verdict| matches!(verdict, Verdict::Equivalent));
    let counted = judged.len() - equivalents;
    println!(
        "{}: {noticed} of {counted} noticed, {equivalents} equivalent, {} without a verdict",
        area.name,
        left_out.len(),
    );
    let is_enough = args.simulator || noticed * 100 >= counted * NOTICED_MIN;
    Ok(ExitCode::from(u8::from(!is_enough)))
}

/// What comes of a change.
enum Verdict {
    /// By what.
    Noticed(String),
    /// What there is to be said of that, if anything.
    Survives(String),
    /// It is listed, with the reason.
    Equivalent,
}

/// Has seeds of the simulator run with a change.
fn simulator<'a>(
    args: &'a Args,
    root: &Path,
    files: &BTreeMap<String, String>,
) -> Result<impl Fn(&Change) -> Result<Verdict, String> + Sync + use<'a>, String> {
    let judges = BTreeSet::from([Judge::Simulator]);
    let built = Built::new(root, files, &judges, Profile::Release)?;
    let product = judge::search(args, &built, None)?;
    if judge::is_killed(&product) {
        return Err(format!("the product does not pass: {product}"));
    }
    Ok(move |change: &Change| {
        let verdict = judge::search(args, &built, Some(&change.name))?;
        Ok(if judge::is_killed(&verdict) {
            let first = verdict["first"].as_str().unwrap_or_default();
            Verdict::Noticed(format!("{} {first}", verdict["seed"]))
        } else {
            Verdict::Survives(format!(", called {} times", verdict["calls"]))
        })
    })
}

/// Runs the area's tests with a change.
fn tests(
    root: &Path,
    area: &Area,
    files: &BTreeMap<String, String>,
) -> Result<impl Fn(&Change) -> Result<Verdict, String> + use<>, String> {
    let judges = area.judges();
    let built = Built::new(root, files, &judges.iter().cloned().collect(), Profile::Dev)?;
    let limits = sound(&built, &judges)?;
    Ok(move |change: &Change| {
        let by = judges
            .iter()
            .zip(&limits)
            .find_map(|(judge, limit)| notices(&built, judge, &change.name, *limit).transpose());
        Ok(by.transpose()?.map_or_else(|| Verdict::Survives(String::new()), Verdict::Noticed))
    })
}

fn sample(mut changes: Vec<Change>, some: Option<usize>, seed: u64) -> Vec<Change> {
    changes.sort_by_cached_key(|change| {
        let mut hasher = DefaultHasher::new();
        (seed, &change.name).hash(&mut hasher);
        hasher.finish()
    });
    changes.truncate(some.unwrap_or(usize::MAX));
    changes.sort_by(|one, other| one.name.cmp(&other.name));
    changes
}

/// The sources with all changes that compile, and the numbers of the others.
fn viable(
    root: &Path,
    area: &Area,
    changes: &[Change],
) -> Result<(BTreeMap<String, String>, BTreeSet<usize>), String> {
    let names: Vec<&str> = changes.iter().map(|change| &*change.name).collect();
    let mut left_out = BTreeSet::new();
    loop {
        let (merged, unmerged) = Merged::new(root, changes, &left_out)?;
        left_out.extend(unmerged);
        let files = copy::switched(root, merged.files.clone(), &names)?;
        copy::refresh(root, &build::source(root), &files).map_err(|error| error.to_string())?;
        let objections = objections(root, area)?;
        if objections.is_empty() {
            return Ok((files, left_out));
        }
        let suspects = objections.iter().flat_map(|(file, line)| merged.suspects(file, *line));
        let before = left_out.len();
        left_out.extend(suspects.collect::<Vec<_>>());
        if left_out.len() == before {
            return Err(format!("the copy does not compile: {objections:?}"));
        }
    }
}

/// Where the compiler objects to the copy.
fn objections(root: &Path, area: &Area) -> Result<Vec<(String, usize)>, String> {
    let mut own = vec!["--tests"];
    own.extend(area.packages().into_iter().flat_map(|package| ["--package", package]));
    let found = objections_to(root, &own)?;
    if !found.is_empty() {
        return Ok(found);
    }
    // Has more of their features than they have by themselves.
    objections_to(root, &["--package", "zk-tests", "--lib"])
}

fn objections_to(root: &Path, what: &[&str]) -> Result<Vec<(String, usize)>, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--quiet", "--locked"]).args(what);
    cargo.args(["--message-format", "json"]);
    cargo.arg("--target-dir").arg(root.join("target/mutation/build"));
    cargo.current_dir(build::source(root));
    let output = cargo.stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors = messages.filter(|it| it["message"]["level"] == "error");
    let place = |span: &Value| {
        let line = usize::try_from(span["line_start"].as_u64()?).ok()?;
        Some((span["file_name"].as_str()?.to_owned(), line))
    };
    let places = errors.flat_map(|it| {
        let spans = it["message"]["spans"].as_array().cloned().unwrap_or_default();
        spans.iter().filter_map(place).collect::<Vec<_>>()
    });
    let places: Vec<_> = places.collect();
    if places.is_empty() && !output.status.success() {
        return Err("the copy does not compile".to_owned());
    }
    Ok(places)
}

/// How long each test may take: the tests pass without a change.
fn sound(built: &Built, judges: &[Judge]) -> Result<Vec<Duration>, String> {
    let limit = |judge: &Judge| {
        let begun = Instant::now();
        match notices(built, judge, "", SOUND_MAX)? {
            Some(by) => Err(format!("the product does not pass: {by}")),
            None => Ok(TIME_MIN.max(begun.elapsed() * SLOWER)),
        }
    };
    judges.iter().map(limit).collect()
}

/// Which tests notice a change; the product has no name.
fn notices(
    built: &Built,
    judge: &Judge,
    name: &str,
    time_max: Duration,
) -> Result<Option<String>, String> {
    let Judge::Test { target, filter, .. } = judge else { unreachable!("an area has tests") };
    let mut command = built.command(judge, Some(name).filter(|name| !name.is_empty()));
    let output = run(command.arg(filter), time_max).map_err(|error| error.to_string())?;
    let Some(output) = output else { return Ok(Some(format!("{target} hangs"))) };
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = said.lines().filter_map(|line| line.strip_suffix(" ... FAILED"));
    let failed: Vec<&str> = failed.filter_map(|line| line.strip_prefix("test ")).collect();
    match (output.status.success(), failed.split_first()) {
        (true, _) if said.contains(" 0 passed") => Err(format!("{target} has no test {filter}")),
        (true, _) => Ok(None),
        (false, Some((first, others))) => Ok(Some(match others.len() {
            0 => format!("{target} {first}"),
            others => format!("{target} {first} and {others} more"),
        })),
        (false, None) => Ok(Some(format!("{target} ends with {}", output.status))),
    }
}
