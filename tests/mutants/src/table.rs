//! Which mutants survive when a class of faults is left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use serde_json::{Value, json};

use crate::{
    Args,
    build::Built,
    commit, for_each,
    judge::{is_killed, name, search},
    mutant::{Judge, Mutant},
};

/// What the simulator says of a run that was given up.
const UNENDING: &str = "a run does not end";

/// A mutant that took this long to kill may take so many times as long without some faults.
const PATIENCE: f64 = 4.0;

/// But at least so many core-seconds.
const PATIENCE_MIN: f64 = 10.0;

/// What is needed to kill a mutant.
struct Needs {
    /// Whether it is killed at all.
    is_killed: bool,
    /// Classes without which it survives.
    classes: BTreeSet<String>,
    core_seconds: f64,
    searches: u64,
}

/// Leaves each class of faults out in turn.
pub(crate) fn table(
    args: &Args,
    built: &Built,
    subjects: &[Option<&Mutant>],
) -> Result<ExitCode, String> {
    let mutants = subjects.iter().copied().flatten();
    let mutants: Vec<&Mutant> = mutants.filter(|it| it.judge == Judge::Simulator).collect();
    let found = for_each(args, &mutants, |mutant| {
        let needs = needs(args, built, mutant)?;
        eprintln!("{:<24} {:>6.1} s  {:?}", mutant.name, needs.core_seconds, needs.classes);
        Ok(needs)
    })?;
    let mut rows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut never = Vec::new();
    for (mutant, needs) in mutants.iter().zip(&found) {
        if !needs.is_killed {
            never.push(name(Some(mutant)));
        }
        for class in &needs.classes {
            rows.entry(class).or_default().push(name(Some(mutant)));
        }
    }
    let core_seconds: f64 = found.iter().map(|needs| needs.core_seconds).sum();
    let searches: u64 = found.iter().map(|needs| needs.searches).sum();
    if args.json {
        let object = json!({
            "commit": commit(),
            "core_seconds": core_seconds,
            "searches": searches,
            "survive_with_all": never,
            "survive_without": rows,
        });
        println!("{object}");
    } else {
        println!("{:<6} {}", "none", list(&never));
        for (class, survivors) in &rows {
            println!("{class:<6} {}", list(survivors));
        }
        let commit = commit();
        println!("{searches} searches, {core_seconds:.0} core-seconds, at commit {commit}");
    }
    Ok(ExitCode::SUCCESS)
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

/// A run that has killed the mutant is the same without a class of faults that is not in it. So a search
/// without a class is only made if that class is in all runs that have killed the mutant so far.
fn needs(args: &Args, built: &Built, mutant: &Mutant) -> Result<Needs, String> {
    let name = Some(&*mutant.name);
    let first = search(args, built, name)?;
    let mut needs = Needs {
        is_killed: is_killed(&first),
        classes: BTreeSet::new(),
        core_seconds: spent(&first),
        searches: 1,
    };
    if !needs.is_killed {
        return Ok(needs);
    }
    let core_seconds = (PATIENCE * spent(&first)).max(PATIENCE_MIN).min(args.core_seconds);
    // Those before have not killed it with all faults.
    let seed = args.seed + first["seeds"].as_u64().unwrap_or(1).max(1) - 1;
    let mut search_without = |classes: &BTreeSet<String>| {
        let without = args.without.iter().chain(classes).cloned().collect();
        let again = search(&Args { core_seconds, seed, without, ..args.clone() }, built, name)?;
        needs.core_seconds += spent(&again);
        needs.searches += 1;
        Ok::<Value, String>(again)
    };
    let all = present(&first);
    // Each search of a run that does not end takes its time; so all at once first.
    if first["first"] == UNENDING && is_killed(&search_without(&all)?) {
        return Ok(needs);
    }
    let mut suspects = all.clone();
    let mut needed = BTreeSet::new();
    for class in all {
        if !suspects.contains(&class) {
            continue;
        }
        let again = search_without(&BTreeSet::from([class.clone()]))?;
        if is_killed(&again) {
            let present = present(&again);
            suspects.retain(|class| present.contains(class));
        } else {
            needed.insert(class);
        }
    }
    needs.classes = needed;
    Ok(needs)
}

fn spent(verdict: &Value) -> f64 {
    verdict["core_seconds"].as_f64().unwrap_or_default()
}

/// Classes of faults in the run that has killed a mutant.
fn present(verdict: &Value) -> BTreeSet<String> {
    let classes = verdict["classes"].as_array().into_iter().flatten();
    classes.filter_map(Value::as_str).map(str::to_owned).collect()
}
