//! Sessions against an ensemble, without a runtime: `zk-sim-core events N [SEED]`,
//! `zk-sim-core exhaust FAULTS DEPTH`, `zk-sim-core replay SEED`.
//!
//! Exits 1 if a promise is broken.

use std::{env, process::ExitCode, time::Instant};

use zk_tests::core_sim::{Plan, Report, Scope, attempt, exhaust, shrink, soak};

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let number =
        |at: usize, default: u64| arguments.get(at).map_or(Some(default), |text| text.parse().ok());
    let begin = Instant::now();
    let outcome = match (arguments.first().map(String::as_str), number(1, 0), number(2, 0)) {
        (Some("events"), Some(events), Some(seed)) => soak(seed, events),
        (Some("exhaust"), Some(faults), Some(depth)) => {
            let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
            exhaust(Scope { faults: size(faults), depth: size(depth) })
        }
        (Some("replay"), Some(seed), _) => {
            let plan = Plan::of_seed(seed);
            attempt(&plan).map_err(|failure| Box::new(shrink(&plan, failure)))
        }
        _ => {
            eprintln!("usage: zk-sim-core events N [SEED] | exhaust FAULTS DEPTH | replay SEED");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(report) => {
            print(&report, begin);
            ExitCode::SUCCESS
        }
        Err(found) => {
            println!("{found}");
            ExitCode::FAILURE
        }
    }
}

fn print(report: &Report, begin: Instant) {
    print!("{report}");
    let seconds = begin.elapsed().as_secs_f64().max(f64::EPSILON);
    #[expect(clippy::cast_precision_loss, reason = "these are for people to read")]
    let (events, simulated) = (report.events as f64, report.millis as f64 / 1000.0);
    println!(
        "{seconds:.1} s: {:.0} events per second, {:.0} times real time",
        events / seconds,
        simulated / seconds,
    );
    let missing = report.missing();
    if !missing.is_empty() {
        println!("never met: {}", missing.join(", "));
    }
}
