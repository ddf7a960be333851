//! `zk-sim`: the simulator's command. See the guide to the simulator.

mod args;
mod locks;
mod scale;
mod sessions;

use std::{
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use clap::Parser as _;
use zk_tests::sim::{Options, Report, SEEDS_FOR_ALL, Totals, commit, mutants, run, shrink};

use self::args::{Cli, Command, Seeds};

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run { seeds, show } => run_all(&seeds, show),
        Command::Hash { seeds } => {
            each(&seeds, |report| println!("{} {:016x}", report.options.seed, report.hash));
            ExitCode::SUCCESS
        }
        Command::Replay { seed, minutes, shrink, trace } => {
            replay(&Options::new(seed, minutes.minutes), shrink, trace)
        }
        Command::Search(arguments) => {
            println!("{}", mutants::search(&arguments));
            ExitCode::SUCCESS
        }
        Command::Core(command) => sessions::run(&command),
        Command::Locks(command) => locks::run(&command),
        Command::Scale { most, write } => scale::run(most, write),
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
fn each(args: &Seeds, mut done: impl FnMut(&Report) + Send) {
    let next = AtomicU64::new(0);
    let waiting = Mutex::new((0, std::collections::BTreeMap::new(), &mut done));
    std::thread::scope(|scope| {
        for _ in 0..args.jobs() {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= args.seeds {
                        return;
                    }
                    let seed = args.seed.wrapping_add(number);
                    let report = run(&Options::new(seed, args.minutes.minutes), false);
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

fn run_all(args: &Seeds, shown_max: u64) -> ExitCode {
    let begun = Instant::now();
    let mut totals = Totals::default();
    let commit = commit();
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
    let speed = totals.hours() * 3600.0 / seconds / args.jobs() as f64;
    print!("{}{}", totals.table(), coverage.text());
    println!("{seconds:>12.1}  seconds with {} jobs", args.jobs());
    println!("{speed:>12.0}  times real time and job");
    println!("at commit {commit}, seeds {} to {}", args.seed, args.seed + args.seeds - 1);
    ExitCode::from(u8::from(totals.failed > 0 || !is_enough))
}
