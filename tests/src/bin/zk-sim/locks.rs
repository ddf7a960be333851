//! `zk-sim locks`: contenders in all orders.

use std::{process::ExitCode, time::Instant};

use zk_tests::interleavings::{Scenario, explore};

use crate::args::{Locks, jobs};

pub(crate) fn run(command: &Locks) -> ExitCode {
    let Locks::Exhaust { faults, scenario, jobs: asked } = command;
    let scenarios = if scenario.is_empty() { &Scenario::ALL[..] } else { scenario };
    println!("{:<20}{:>10}{:>10}{:>10}{:>10}", "scenario", "states", "steps", "runs", "seconds");
    for &scenario in scenarios {
        let begin = Instant::now();
        match explore(scenario, *faults, jobs(*asked)) {
            Ok(counts) => {
                let seconds = begin.elapsed().as_secs_f64();
                let (states, steps, runs) = (counts.states, counts.steps, counts.runs);
                println!("{:<20}{states:>10}{steps:>10}{runs:>10}{seconds:>10.1}", scenario.name());
            }
            Err(found) => {
                println!("{found}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
