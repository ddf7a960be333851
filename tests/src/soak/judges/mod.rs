//! Two judges of histories that have nothing in common but their rules: ours, and porcupine, which was written by others.
//!
//! | module | concern |
//! |---|---|
//! | `porcupine` | the other one, as a program in Go |
//! | `invent` | histories that can have happened |
//! | `lie` | what makes them wrong for certain |

mod invent;
mod lie;
pub(super) mod porcupine;

use std::error::Error;

use clap::Args;

use self::{
    invent::{Inventor, Kind},
    lie::Lie,
    porcupine::{Opinion, Porcupine},
};
use super::Report;
use crate::linear::{Operation, Verdict, judge};

/// How many complaints are printed.
const SHOWN_MAX: usize = 10;

/// How many operations an invented history has, at least and at most.
const LENS: (u64, u64) = (10, 60);

/// How many histories are judged.
#[derive(Args, Clone, Copy, Debug)]
pub struct Options {
    /// Histories in all.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub histories: usize,
    /// Those of them that are made wrong on purpose.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub wrong: usize,
    /// What they are invented by.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// What our judge says.
pub(super) fn ours(history: &[Operation]) -> Opinion {
    match judge(history) {
        Verdict::Linearizable => Opinion::Linearizable,
        Verdict::Not { .. } => Opinion::Not,
        Verdict::Undecided => Opinion::Undecided,
    }
}

/// Runs the test.
///
/// # Errors
/// There is no Go, or the program in it failed.
pub async fn run(options: Options) -> Result<Report, Box<dyn Error>> {
    let porcupine = Porcupine::build().await?;
    let mut report = Report::new("judges");
    let (mut histories, mut lies) = (Vec::new(), Vec::new());
    for number in 0..options.histories {
        // Spread evenly.
        let is_wrong = number * options.wrong / options.histories
            != (number + 1) * options.wrong / options.histories;
        let kind = Kind::ALL[number % Kind::ALL.len()];
        let mut inventor = Inventor::new(options.seed, number as u64, kind);
        let lie = is_wrong.then(|| Lie::nth(kind, lies.iter().flatten().count()));
        histories.push(inventor.invent(LENS, lie));
        lies.push(lie);
    }
    let theirs = porcupine.judge(&histories).await?;
    let (mut agreed, mut judged_wrong) = (0, 0);
    for (number, (history, theirs)) in histories.iter().zip(theirs).enumerate() {
        let (ours, lie) = (ours(history), lies[number]);
        let truth = if lie.is_some() { Opinion::Not } else { Opinion::Linearizable };
        agreed += usize::from(ours == theirs);
        judged_wrong += usize::from((ours, theirs) == (Opinion::Not, Opinion::Not));
        report.expect((ours, theirs) == (truth, truth), || {
            let what = lie.map_or_else(|| "right".to_owned(), |lie| format!("wrong, {lie:?}"));
            format!("history {number} is {what}: {ours:?} say we, {theirs:?} says porcupine")
        });
    }
    report.shorten(SHOWN_MAX);
    report.figure("histories", histories.len());
    report.figure("operations in them", histories.iter().map(Vec::len).sum::<usize>());
    report.figure("made wrong on purpose", lies.iter().flatten().count());
    report.figure("found wrong by both", judged_wrong);
    report.figure("on which both agree", agreed);
    Ok(report)
}
