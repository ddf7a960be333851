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

use super::{Args, name};
use crate::sim::commit;

/// Searches for every mistake once.
pub(super) fn all(args: &Args) -> Result<ExitCode, String> {
    let found = for_each(args, &args.bugs, |bug| {
        let verdict = search(args, *bug)?;
        if !args.json {
            println!("{}", line(&verdict));
        }
        Ok(verdict)
    })?;
    let bad = |(bug, verdict): &(&Option<Bug>, &Value)| noticed(verdict) == bug.is_none();
    let wrong = args.bugs.iter().zip(&found).filter(bad).count();
    let planted = args.bugs.iter().flatten().count();
    let missed = args.bugs.iter().zip(&found).filter(|it| it.0.is_some() && bad(it)).count();
    if args.json {
        let object = json!({
            "commit": commit(),
            "planted": planted,
            "noticed": planted - missed,
            "minutes": args.minutes,
            "first_seed": args.seed,
            "core_seconds": args.core_seconds,
            "without": args.without,
            "bugs": found,
        });
        println!("{object}");
    } else {
        println!("{} of {planted} noticed, at commit {}", planted - missed, commit());
    }
    Ok(ExitCode::from(u8::from(wrong > 0)))
}

pub(super) fn noticed(verdict: &Value) -> bool {
    verdict["noticed"] == true
}

/// Does something for each mistake, for several at a time. What comes of it is in the order of mistakes.
pub(super) fn for_each<T: Send>(
    args: &Args,
    bugs: &[Option<Bug>],
    act: impl Fn(&Option<Bug>) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.min(bugs.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(bug) = bugs.get(number) else { return };
                    let outcome = act(bug);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((number, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Searches for one mistake, in a process of its own.
pub(super) fn search(args: &Args, bug: Option<Bug>) -> Result<Value, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    command.args(["bank", "--here", "--bug", &name(bug)]);
    command.args(["--core-seconds", &args.core_seconds.to_string()]);
    command.args(["--minutes", &args.minutes.to_string(), "--seed", &args.seed.to_string()]);
    for class in &args.without {
        command.args(["--without-fault", class]);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    // A process that goes down with its mistake has noticed it, in its way.
    let died = || {
        json!({
            "bug": name(bug),
            "noticed": true,
            "seeds": 0,
            "core_seconds": null,
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
    let is_noticed = noticed(verdict);
    let made = format!("made {} times", verdict["made"]);
    let first: Vec<String> = text("first").split_whitespace().map(str::to_owned).collect();
    let what = format!("{} {}: {}", text("by"), verdict["seed"], first.join(" "));
    format!(
        "{:<24} {:<8} {:>5} seeds {:>6.1} s  {:<12} {}",
        text("bug"),
        if is_noticed { "noticed" } else { "-" },
        verdict["seeds"],
        verdict["core_seconds"].as_f64().unwrap_or_default(),
        rules.join(" "),
        if is_noticed { what } else { made },
    )
}
