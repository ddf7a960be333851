//! One mutant, one verdict, each in a process of its own.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    Args,
    build::Built,
    mutant::{Judge, Mutant},
};

/// A test that takes longer hangs.
const TEST_MAX: Duration = Duration::from_secs(120);

pub(crate) fn is_killed(verdict: &Value) -> bool {
    verdict["killed"] == true
}

/// How the product is called among mutants.
const PRODUCT: &str = "product";

/// How a mutant's name is written, and the product's.
pub(crate) fn name(subject: Option<&Mutant>) -> &str {
    subject.map_or(PRODUCT, |mutant| &mutant.name)
}

/// Has a mutant judged, or searches the product.
pub(crate) fn verdict(
    args: &Args,
    built: &Built,
    subject: Option<&Mutant>,
) -> Result<Value, String> {
    match subject {
        Some(mutant) if mutant.judge != Judge::Simulator => test(built, mutant),
        subject => search(args, built, subject.map(|mutant| &*mutant.name)),
    }
}

/// Runs seeds of the simulator.
pub(crate) fn search(args: &Args, built: &Built, subject: Option<&str>) -> Result<Value, String> {
    let mut command = built.command(&Judge::Simulator, subject);
    command.args(["search", "--core-seconds", &args.core_seconds.to_string()]);
    command.args(["--minutes", &args.minutes.to_string(), "--seed", &args.seed.to_string()]);
    for class in &args.without {
        command.args(["--without-fault", class]);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let verdict = text.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
    // A process that goes down with its mutant has noticed it, in its way.
    let died = || {
        json!({
            "killed": true,
            "by": "zk-sim",
            "rules": ["R3"],
            "first": format!("the process died: {}", output.status),
        })
    };
    let mut verdict = match verdict {
        Some(verdict) => verdict,
        // Clap's number for options that it does not understand.
        None if subject.is_some() && output.status.code() != Some(2) => died(),
        None => return Err(format!("no verdict: {}", String::from_utf8_lossy(&output.stderr))),
    };
    verdict["mutant"] = subject.unwrap_or(PRODUCT).into();
    Ok(verdict)
}

/// Runs tests, which have to pass without the mutant and fail with it.
fn test(built: &Built, mutant: &Mutant) -> Result<Value, String> {
    let Judge::Test { filter, target, .. } = &mutant.judge else { unreachable!("a test") };
    let begun = Instant::now();
    let run = |subject| {
        let mut command = built.command(&mutant.judge, subject);
        run(command.arg(filter), TEST_MAX).map_err(|error| error.to_string())
    };
    let sound = run(None)?.ok_or_else(|| format!("{filter} hangs without {}", mutant.name))?;
    let said = String::from_utf8_lossy(&sound.stdout);
    if !sound.status.success() || said.contains(" 0 passed") {
        return Err(format!("{}: {filter} does not pass without it: {said}", mutant.name));
    }
    let output = run(Some(&mutant.name))?;
    let said = output.as_ref().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let failed = said
        .as_deref()
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    let killed = output.as_ref().is_none_or(|output| !output.status.success());
    let first =
        if output.is_none() { "hangs".to_owned() } else { failed.collect::<Vec<_>>().join(", ") };
    Ok(json!({
        "mutant": mutant.name,
        "killed": killed,
        "by": target,
        "first": first,
        "seconds": begun.elapsed().as_secs_f64(),
    }))
}

/// Runs a command to its end; `None` if it has none in this time.
pub(crate) fn run(command: &mut Command, time_max: Duration) -> std::io::Result<Option<Output>> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut stdout = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = stdout.as_mut().map(|stdout| std::io::Read::read_to_end(stdout, &mut text));
        read.transpose().map(|_| text)
    });
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > time_max {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::park_timeout(Duration::from_millis(20));
    };
    let stdout = reader.join().expect("the reader does not panic")?;
    Ok(Some(Output { status, stdout, stderr: Vec::new() }))
}

pub(crate) fn line(verdict: &Value) -> String {
    let text = |key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| verdict[key].as_f64();
    let rules: Vec<&str> =
        verdict["rules"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let seed = verdict["seed"].as_u64().map(|seed| format!(" {seed}")).unwrap_or_default();
    let first: Vec<String> = text("first").split_whitespace().map(str::to_owned).collect();
    format!(
        "{:<24} {:<8} {:>5} seeds {:>6.1} s  {:<12} {}",
        text("mutant"),
        if is_killed(verdict) { "killed" } else { "survives" },
        verdict["seeds"].as_u64().unwrap_or_default(),
        number("core_seconds").or_else(|| number("seconds")).unwrap_or_default(),
        rules.join(" "),
        match verdict["calls"].as_u64() {
            Some(calls) if !is_killed(verdict) => format!("called {calls} times"),
            _ => format!("{}{seed}: {}", text("by"), first.join(" ")),
        },
    )
}
