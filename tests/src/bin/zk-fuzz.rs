//! `zk-fuzz`: tries what must hold for any input on changed copies of the saved inputs. See `fuzz/README.md`.

use std::{
    fmt::Write as _,
    panic,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use clap::Parser;
use zk_tests::fuzz::{Mutator, TARGETS, Target};

/// Changes saved inputs at random and tries what must hold for any of them, in every target or in some.
///
/// Exits with 1 if anything does not hold, or takes too long; the input is printed in hexadecimal.
#[derive(Debug, Parser)]
#[command(name = "zk-fuzz")]
struct Cli {
    /// The targets [default: all].
    #[arg(value_parser = target)]
    targets: Vec<&'static Target>,
    /// So many executions of each target that decodes.
    #[arg(long, default_value_t = 10_000_000)]
    executions: u64,
    /// So many of each that keeps a state.
    #[arg(long, default_value_t = 1_000_000)]
    stateful: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Longest input, in bytes.
    #[arg(long, default_value_t = 256)]
    len_max: usize,
    /// So many at a time [default: one for each processor].
    #[arg(long)]
    jobs: Option<u64>,
    /// Where the saved inputs are.
    #[arg(long, default_value = "fuzz/saved")]
    saved: PathBuf,
}

/// Longest time for one input.
const EXECUTION_MAX: Duration = Duration::from_millis(100);

fn target(name: &str) -> Result<&'static Target, String> {
    Target::named(name).ok_or_else(|| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        format!("the targets are {}", names.join(", "))
    })
}

fn main() -> ExitCode {
    let mut cli = Cli::parse();
    if cli.targets.is_empty() {
        cli.targets = TARGETS.iter().collect();
    }
    let processors = thread::available_parallelism().map_or(1, |it| it.get() as u64);
    let jobs = cli.jobs.unwrap_or(processors).max(1);
    println!("{:<16} {:>12} {:>9} {:>12}", "target", "executions", "seconds", "a second");
    for target in &cli.targets {
        let executions = if target.is_stateful { cli.stateful } else { cli.executions };
        let began = Instant::now();
        let outcomes = thread::scope(|scope| {
            let one = |job| {
                let share = executions / jobs + u64::from(job < executions % jobs);
                let seed = cli.seed.wrapping_mul(jobs).wrapping_add(job);
                scope.spawn({
                    let cli = &cli;
                    move || attack(target, share, &cli.saved, seed, cli.len_max)
                })
            };
            let jobs: Vec<_> = (0..jobs).map(one).collect();
            jobs.into_iter().try_for_each(|job| {
                job.join().unwrap_or_else(|_| Err("a job has failed".to_owned()))
            })
        });
        if let Err(why) = outcomes {
            eprintln!("zk-fuzz: {}: {why}", target.name);
            return ExitCode::FAILURE;
        }
        let seconds = began.elapsed().as_secs_f64();
        let rate = executions as f64 / seconds;
        println!("{:<16} {executions:>12} {seconds:>9.1} {rate:>12.0}", target.name);
    }
    ExitCode::SUCCESS
}

/// Tries so many inputs. Fails with the first that breaks a promise.
fn attack(
    target: &Target,
    executions: u64,
    saved: &Path,
    seed: u64,
    len_max: usize,
) -> Result<(), String> {
    let mut mutator = Mutator::new(target, saved, seed, len_max)
        .map_err(|error| format!("{}: {error}", saved.display()))?;
    for _ in 0..executions {
        let input = mutator.next_input();
        let began = Instant::now();
        let outcome = panic::catch_unwind(|| (target.run)(input));
        let took = began.elapsed();
        if outcome.is_err() {
            return Err(format!("a promise is broken by {}", hex(input)));
        }
        if took > EXECUTION_MAX && took_too_long_again(target, input) {
            return Err(format!("{took:?} are taken by {}", hex(input)));
        }
    }
    Ok(())
}

/// A run that the system suspends takes long once, and not each of several times.
fn took_too_long_again(target: &Target, input: &[u8]) -> bool {
    (0..5).all(|_| {
        let began = Instant::now();
        (target.run)(input);
        began.elapsed() > EXECUTION_MAX
    })
}

fn hex(input: &[u8]) -> String {
    input.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
