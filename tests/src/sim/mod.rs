//! The real client and the real recipes against the in-process ensemble, in virtual time, with faults.
//!
//! | module | concern |
//! |---|---|
//! | `options` | what a seed stands for |
//! | `patience` | when something that is waited for is given up |
//! | `alone` | a member that is alone at the end |
//! | `recipe` | what is fought over, and where |
//! | `world` | one run: warm-up, chaos, heal, converge, close |
//! | `life` | a client from its first connection to its last |
//! | `rest` | what a client leaves when its work is done |
//! | `workload` | what clients do, one file for each kind |
//! | `check` | what must hold, one file for each property |
//! | `coverage` | what must have happened |
//! | `lines` | how much is logged |
//! | `report` | what comes out of a run, and of many |
//! | `shrink` | fewer faults for the same failure |
//! | `mutants` | the search for a seed that tells a mutant from the product |

mod alone;
mod check;
mod coverage;
mod life;
mod lines;
pub mod mutants;
mod options;
mod patience;
mod recipe;
mod report;
mod rest;
mod shrink;
mod workload;
mod world;

pub use self::{
    check::Violation,
    coverage::{Coverage, SEEDS_FOR_ALL},
    options::Options,
    recipe::Recipe,
    report::{Counts, Report, Totals},
    shrink::shrink,
    world::run,
};

use std::time::Duration;

/// Lets so many milliseconds of virtual time pass.
async fn pass(millis: u64) {
    let until = tokio::time::Instant::now() + Duration::from_millis(millis);
    tokio::time::sleep_until(until).await;
}

/// Which sources this was built from, as far as git knows where it is run.
#[must_use]
pub fn commit() -> String {
    let git = std::process::Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let text = git.ok().filter(|git| git.status.success()).map(|git| git.stdout);
    let text = text.and_then(|text| String::from_utf8(text).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
