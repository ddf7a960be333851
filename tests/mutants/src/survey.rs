//! A sample of what cargo-mutants would change in an area, and which of it the area's tests notice.

use std::{
    collections::{BTreeMap, BTreeSet, hash_map::DefaultHasher},
    hash::{Hash as _, Hasher as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    area::Area,
    build::{self, Built, Profile},
    copy, equivalent,
    generated::{self, Change, Merged},
    judge::run,
    mutant::Judge,
};

/// How much longer than without a change a test may take before it is said to hang, and how long at least.
const SLOWER: u32 = 10;
const TIME_MIN: Duration = Duration::from_secs(60);

/// So much longer than anything takes without a change.
const SOUND_MAX: Duration = Duration::from_secs(3600);

/// So many in a hundred have to be noticed.
const NOTICED_MIN: usize = 90;

/// Draws a sample, builds it, and runs the area's tests for each.
pub(crate) fn survey(
    root: &Path,
    area: &Area,
    some: Option<usize>,
    seed: u64,
) -> Result<ExitCode, String> {
    let reasons = equivalent::read(root)?;
    let changes = sample(generated::list(root, area)?, some, seed);
    let (files, left_out) = viable(root, area, &changes)?;
    let judges = area.judges();
    let built = Built::new(root, &files, &judges.iter().cloned().collect(), Profile::Dev)?;
    let limits = sound(&built, &judges)?;
    let (mut tried, mut noticed, mut equivalents) = (0, 0, 0);
    for (number, change) in changes.iter().enumerate() {
        if left_out.contains(&number) {
            continue;
        }
        tried += 1;
        let by = judges
            .iter()
            .zip(&limits)
            .find_map(|(judge, limit)| notices(&built, judge, &change.name, *limit).transpose());
        match (by.transpose()?, reasons.get(&change.key())) {
            (Some(by), _) => {
                noticed += 1;
                println!("noticed     {}: {by}", change.name);
            }
            (None, Some(reason)) => {
                equivalents += 1;
                println!("equivalent  {}: {reason}", change.name);
            }
            (None, None) => println!("survives    {}", change.name),
        }
    }
    let counted = tried - equivalents;
    println!(
        "{}: {noticed} of {counted} noticed, {equivalents} equivalent, {} without a verdict",
        area.name,
        changes.len() - tried,
    );
    Ok(ExitCode::from(u8::from(noticed * 100 < counted * NOTICED_MIN)))
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
    let package = area.files.first().and_then(|file| file.split('/').next()).unwrap_or_default();
    let mut cargo = Command::new(env!("CARGO"));
    // With its tests, which ask for more features than it has by itself.
    cargo.args(["check", "--quiet", "--locked", "--tests", "--package", package]);
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
