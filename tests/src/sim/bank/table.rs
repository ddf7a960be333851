//! Which mistakes are missed when a class of faults is left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use serde_json::{Value, json};
use zk_proto::planted::Bug;

use super::{
    Args, classes, name,
    noticed::UNENDING,
    parent::{for_each, noticed, search},
};
use crate::sim::commit;

/// A mistake that took this long to notice may take so many times as long without some faults.
const PATIENCE: f64 = 4.0;

/// But at least so many core-seconds.
const PATIENCE_MIN: f64 = 10.0;

/// What is needed to notice a mistake.
struct Needs {
    /// Whether it is noticed at all.
    is_noticed: bool,
    /// Classes without which it is missed.
    classes: Vec<&'static str>,
    core_seconds: f64,
    searches: u64,
}

/// Leaves each class of faults out in turn.
pub(super) fn table(args: &Args) -> Result<ExitCode, String> {
    let bugs: Vec<Option<Bug>> = args.bugs.iter().copied().filter(Option::is_some).collect();
    let found = for_each(args, &bugs, |bug| {
        let needs = needs(args, *bug)?;
        eprintln!("{:<24} {:>6.1} s  {:?}", name(*bug), needs.core_seconds, needs.classes);
        Ok(needs)
    })?;
    let mut rows: BTreeMap<&str, Vec<String>> =
        classes().into_iter().map(|class| (class, Vec::new())).collect();
    let mut never = Vec::new();
    for (bug, needs) in bugs.iter().zip(&found) {
        if !needs.is_noticed {
            never.push(name(*bug));
        }
        for class in &needs.classes {
            rows.entry(class).or_default().push(name(*bug));
        }
    }
    let core_seconds: f64 = found.iter().map(|needs| needs.core_seconds).sum();
    let searches: u64 = found.iter().map(|needs| needs.searches).sum();
    if args.json {
        let object = json!({
            "commit": commit(),
            "core_seconds": core_seconds,
            "searches": searches,
            "missed_with_all": never,
            "missed_without": rows,
        });
        println!("{object}");
    } else {
        println!("{:<6} {}", "none", list(&never));
        for (class, missed) in &rows {
            println!("{class:<6} {}", list(missed));
        }
        let commit = commit();
        println!("{searches} searches, {core_seconds:.0} core-seconds, at commit {commit}");
    }
    Ok(ExitCode::SUCCESS)
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

/// A run that has noticed the mistake is the same without a class of faults that is not in it. So a search
/// without a class is only made if that class is in all runs that have noticed the mistake so far.
fn needs(args: &Args, bug: Option<Bug>) -> Result<Needs, String> {
    let first = search(args, bug)?;
    let mut needs = Needs {
        is_noticed: noticed(&first),
        classes: Vec::new(),
        core_seconds: spent(&first),
        searches: 1,
    };
    if !needs.is_noticed {
        return Ok(needs);
    }
    let budget = (PATIENCE * spent(&first)).max(PATIENCE_MIN).min(args.core_seconds);
    let mut suspects = present(&first);
    // Those before have not noticed it with all faults.
    let from = args.seed + first["seeds"].as_u64().unwrap_or(1).max(1) - 1;
    if first["first"] == UNENDING {
        // Each search takes its time; so all at once first.
        let without = suspects.iter().filter_map(|class| super::class(class).ok());
        let without = args.without.iter().copied().chain(without).collect();
        let again =
            search(&Args { core_seconds: budget, seed: from, without, ..args.clone() }, bug)?;
        needs.core_seconds += spent(&again);
        needs.searches += 1;
        if noticed(&again) {
            return Ok(needs);
        }
    }
    for class in classes() {
        if !suspects.contains(class) || args.without.contains(class) {
            continue;
        }
        let mut without = Args { core_seconds: budget, seed: from, ..args.clone() };
        without.without.insert(class);
        let again = search(&without, bug)?;
        needs.core_seconds += spent(&again);
        needs.searches += 1;
        if noticed(&again) {
            let present = present(&again);
            suspects.retain(|class| present.contains(class));
        } else {
            needs.classes.push(class);
        }
    }
    Ok(needs)
}

fn spent(verdict: &Value) -> f64 {
    verdict["core_seconds"].as_f64().unwrap_or_default()
}

/// Classes of faults in the run that has noticed a mistake.
fn present(verdict: &Value) -> BTreeSet<String> {
    let classes = verdict["classes"].as_array().into_iter().flatten();
    classes.filter_map(Value::as_str).map(str::to_owned).collect()
}
