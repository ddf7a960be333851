//! `zk-sim`: the simulator's command. See the guide to the simulator.

use std::{
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use zk_tests::sim::{Options, Report, SEEDS_FOR_ALL, Totals, commit, run, shrink};

const USAGE: &str = "\
usage: zk-sim run [--seeds N] [--minutes M] [--seed S] [--jobs J] [--show N] [--json]
       zk-sim replay SEED [--minutes M] [--schedule FILE] [--shrink] [--trace]
       zk-sim hash [--seeds N] [--minutes M] [--seed S] [--jobs J]
       zk-sim bank ..., built by `cargo bank`

run     N seeds from S on, each for M simulated minutes; exits with 1 if anything is violated,
        or if N is at least 1000 and something never happened that should have: each class
        of faults hits clients ten times, each way to fail is met;
        the first failures (3, or --show) are told in full, with the faults that are enough
replay  one seed again, with all its events or with some of its faults only
hash    seed and hash of all events, a line for each, to be compared with another process's
";

/// What is asked for.
enum Command {
    Run { json: bool },
    Replay { seed: u64, schedule: Option<String>, shrink: bool, trace: bool },
    Hash,
}

struct Args {
    command: Command,
    seeds: u64,
    minutes: u64,
    seed: u64,
    jobs: usize,
    /// Failures that are shown in full, with fewer faults for the same.
    shown_max: u64,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let outcome = match args.next_if(|first| first == "bank") {
        Some(_) => bank(args),
        None => parse(args).and_then(execute),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("zk-sim: {error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

#[cfg(zk_bank)]
fn bank(args: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    zk_tests::sim::bank::command(args)
}

#[cfg(not(zk_bank))]
fn bank(_: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    Err("no mistakes are built in: say `cargo bank`".to_owned())
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Args, String> {
    let command = args.next().ok_or("what?")?;
    let mut parsed = Args {
        command: match &*command {
            "run" => Command::Run { json: false },
            "hash" => Command::Hash,
            "replay" => {
                let seed = args.next().ok_or("which seed?")?;
                let seed = seed.parse().map_err(|error| format!("{seed}: {error}"))?;
                Command::Replay { seed, schedule: None, shrink: false, trace: false }
            }
            other => return Err(format!("no command {other}")),
        },
        seeds: 100,
        minutes: 10,
        seed: 1,
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        shown_max: 3,
    };
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{option} what?"));
        let number = |text: String| text.parse().map_err(|error| format!("{text}: {error}"));
        match (&*option, &mut parsed.command) {
            ("--seeds", _) => parsed.seeds = number(value()?)?,
            ("--minutes", _) => parsed.minutes = number(value()?)?.max(1),
            ("--seed", _) => parsed.seed = number(value()?)?,
            ("--jobs", _) => parsed.jobs = number(value()?)?.max(1) as usize,
            ("--show", _) => parsed.shown_max = number(value()?)?,
            ("--json", Command::Run { json }) => *json = true,
            ("--trace", Command::Replay { trace, .. }) => *trace = true,
            ("--shrink", Command::Replay { shrink, .. }) => *shrink = true,
            ("--schedule", Command::Replay { schedule, .. }) => *schedule = Some(value()?),
            _ => return Err(format!("no option {option} there")),
        }
    }
    Ok(parsed)
}

fn execute(args: Args) -> Result<ExitCode, String> {
    match &args.command {
        Command::Run { json } => Ok(run_all(&args, *json)),
        Command::Hash => {
            each(&args, |report| println!("{} {:016x}", report.options.seed, report.hash));
            Ok(ExitCode::SUCCESS)
        }
        Command::Replay { seed, schedule, shrink, trace } => {
            let mut options = Options::new(*seed, args.minutes);
            if let Some(file) = schedule {
                let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
                options.schedule = text.parse()?;
            }
            Ok(replay(&options, *shrink, *trace))
        }
    }
}

fn replay(options: &Options, shrinking: bool, trace: bool) -> ExitCode {
    let mut report = run(options, trace);
    if shrinking && !report.violations.is_empty() {
        let schedule = shrink(&report).options.schedule;
        println!("faults that are enough:\n{schedule}");
        report = run(&Options { schedule, ..options.clone() }, trace);
    }
    if trace || !report.violations.is_empty() {
        print!("{}", report.failure(&commit()));
    }
    let mut totals = Totals::default();
    totals.add(&report);
    print!("{}", totals.table());
    println!("hash {:016x} of {} events", report.hash, report.events);
    ExitCode::from(u8::from(!report.violations.is_empty()))
}

/// Runs each seed, several at a time, and passes on the reports in the order of seeds.
fn each(args: &Args, mut done: impl FnMut(&Report) + Send) {
    let next = AtomicU64::new(0);
    let waiting = Mutex::new((0, std::collections::BTreeMap::new(), &mut done));
    std::thread::scope(|scope| {
        for _ in 0..args.jobs {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= args.seeds {
                        return;
                    }
                    let seed = args.seed.wrapping_add(number);
                    let report = run(&Options::new(seed, args.minutes), false);
                    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                    let (first, reports, done) = &mut *waiting;
                    reports.insert(number, report);
                    while let Some(report) = reports.remove(first) {
                        done(&report);
                        *first += 1;
                    }
                }
            });
        }
    });
}

fn run_all(args: &Args, json: bool) -> ExitCode {
    let begun = Instant::now();
    let mut totals = Totals::default();
    let commit = commit();
    let shown_max = args.shown_max;
    each(args, |report| {
        totals.add(report);
        for violation in report.violations.iter().take(3) {
            eprintln!("seed {}: {violation}", report.options.seed);
        }
        if !report.violations.is_empty() && totals.failed <= shown_max {
            eprint!("{}", report.failure(&commit));
            let smaller = shrink(report);
            eprintln!("faults that are enough:\n{}", smaller.options.schedule);
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    let coverage = totals.coverage();
    let is_enough = args.seeds < SEEDS_FOR_ALL || coverage.is_enough();
    let speed = totals.hours() * 3600.0 / seconds / args.jobs as f64;
    if json {
        let fired: serde_json::Map<String, serde_json::Value> = totals
            .fired
            .0
            .iter()
            .map(|(class, cells)| ((*class).to_owned(), serde_json::json!(cells)))
            .collect();
        let object = serde_json::json!({
            "commit": commit,
            "first_seed": args.seed,
            "seeds": totals.runs,
            "minutes": args.minutes,
            "simulated_hours": totals.hours(),
            "seconds": seconds,
            "speed_per_job": speed,
            "acquisitions": totals.counts.get("acquisitions").copied().unwrap_or_default(),
            "violations": totals.violations,
            "failed_seeds": totals.failed,
            "counts": totals.counts,
            "states": zk_testkit::sim::Doing::ALL.map(zk_testkit::sim::Doing::name),
            "faults_fired": fired,
            "faults_rare": coverage.rare,
            "never_happened": coverage.missing,
            "cells": coverage.cells,
            "cells_empty": coverage.empty,
        });
        println!("{object}");
    } else {
        print!("{}{}", totals.table(), coverage.text());
        println!("{seconds:>12.1}  seconds with {} jobs", args.jobs);
        println!("{speed:>12.0}  times real time and job");
        println!("at commit {commit}, seeds {} to {}", args.seed, args.seed + args.seeds - 1);
    }
    ExitCode::from(u8::from(totals.failed > 0 || !is_enough))
}
