//! `zk-sim core`: sessions against an ensemble, without a runtime.

use std::{process::ExitCode, time::Instant};

use zk_tests::core_sim::{Plan, Report, Scope, attempt, exhaust, shrink, soak};

use crate::args::Core;

pub(crate) fn run(command: &Core) -> ExitCode {
    let begin = Instant::now();
    let outcome = match *command {
        Core::Events { events, seed } => soak(seed, events),
        Core::Exhaust { faults, depth } => exhaust(Scope { faults, depth }),
        Core::Replay { seed } => {
            let plan = Plan::of_seed(seed);
            attempt(&plan).map_err(|failure| Box::new(shrink(&plan, failure)))
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
