//! All searches, each in a process of its own, and what comes of them.

use std::{
    process::{Command, ExitCode},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use zk_proto::planted::Bug;
use zk_testkit::sim::Fault;

use super::{Args, name};
use crate::sim::commit;

/// One search: for which mistake, and without which faults.
type Search = (Option<Bug>, Vec<Fault>);

/// Searches for every mistake once.
pub(super) fn all(args: &Args) -> Result<ExitCode, String> {
    let without: Vec<Fault> = args.without.iter().copied().collect();
    let searches: Vec<Search> = args.bugs.iter().map(|bug| (*bug, without.clone())).collect();
    let found = run_all(args, &searches, |verdict| {
        if !args.json {
            println!("{}", line(verdict));
        }
    })?;
    let bad = |(search, verdict): &(&Search, &Value)| noticed(verdict) == search.0.is_none();
    let wrong = searches.iter().zip(&found).filter(bad).count();
    let planted = searches.iter().filter(|(bug, _)| bug.is_some()).count();
    let missed = searches.iter().zip(&found).filter(|it| it.0.0.is_some() && bad(it)).count();
    if args.json {
        let object = json!({
            "commit": commit(),
            "planted": planted,
            "noticed": planted - missed,
            "minutes": args.minutes,
            "first_seed": args.seed,
            "core_seconds": args.core_seconds,
            "without": without.iter().map(|fault| fault.name()).collect::<Vec<_>>(),
            "bugs": found,
        });
        println!("{object}");
    } else {
        println!("{} of {planted} noticed, at commit {}", planted - missed, commit());
    }
    Ok(ExitCode::from(u8::from(wrong > 0)))
}

/// Leaves each class of faults out in turn.
pub(super) fn table(args: &Args) -> Result<ExitCode, String> {
    let classes = [None].into_iter().chain(Fault::ALL.iter().copied().map(Some));
    let bugs: Vec<Bug> = args.bugs.iter().copied().flatten().collect();
    let mut rows = Vec::new();
    for class in classes {
        let without: Vec<Fault> = class.into_iter().collect();
        let searches: Vec<Search> = bugs.iter().map(|bug| (Some(*bug), without.clone())).collect();
        let found = run_all(args, &searches, |_| {})?;
        let missed: Vec<String> = searches
            .iter()
            .zip(&found)
            .filter(|(_, verdict)| !noticed(verdict))
            .map(|((bug, _), _)| name(*bug))
            .collect();
        let class = class.map_or("none", Fault::name);
        if !args.json {
            let list = if missed.is_empty() { "-".to_owned() } else { missed.join(", ") };
            println!("{class:<6} {list}");
        }
        rows.push(json!({"without": class, "missed": missed, "bugs": found}));
    }
    if args.json {
        let object = json!({"commit": commit(), "core_seconds": args.core_seconds, "table": rows});
        println!("{object}");
    }
    Ok(ExitCode::SUCCESS)
}

fn noticed(verdict: &Value) -> bool {
    verdict["noticed"] == true
}

/// Runs searches, several at a time. Verdicts come back in the order of the searches.
fn run_all(
    args: &Args,
    searches: &[Search],
    tell: impl Fn(&Value) + Sync,
) -> Result<Vec<Value>, String> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(vec![Value::Null; searches.len()]);
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.min(searches.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(search) = searches.get(number) else { return };
                    match run_one(args, search) {
                        Ok(verdict) => {
                            tell(&verdict);
                            let mut verdicts =
                                verdicts.lock().unwrap_or_else(PoisonError::into_inner);
                            verdicts[number] = verdict;
                        }
                        Err(error) => {
                            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                            return;
                        }
                    }
                }
            });
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(verdicts.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

fn run_one(args: &Args, (bug, without): &Search) -> Result<Value, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    command.args(["bank", "--here", "--bug", &name(*bug)]);
    command.args(["--core-seconds", &args.core_seconds.to_string()]);
    command.args(["--minutes", &args.minutes.to_string(), "--seed", &args.seed.to_string()]);
    for fault in without {
        command.args(["--without-fault", fault.name()]);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    // A process that goes down with its mistake has noticed it, in its way.
    let died = || {
        json!({
            "bug": name(*bug),
            "noticed": true,
            "seeds": 0,
            "core_seconds": 0.0,
            "rules": ["R3"],
            "first": format!("the process died: {}", output.status),
            "made": 0,
        })
    };
    let verdict = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
    match verdict {
        Some(verdict) => Ok(verdict),
        None if bug.is_some() && !output.status.success() => Ok(died()),
        None => Err(format!("no verdict: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn line(verdict: &Value) -> String {
    let text = |key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
    let rules: Vec<&str> =
        verdict["rules"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!(
        "{:<24} {:<8} {:>5} seeds {:>6.1} s  {:<12} {}",
        text("bug"),
        if noticed(verdict) { "noticed" } else { "-" },
        verdict["seeds"],
        verdict["core_seconds"].as_f64().unwrap_or_default(),
        rules.join(" "),
        if noticed(verdict) { text("first") } else { format!("made {} times", verdict["made"]) },
    )
}
