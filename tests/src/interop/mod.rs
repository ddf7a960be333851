//! Processes of Curator, kazoo and `zk-locks` on the same locks, with everything going wrong.
//!
//! | module | concern |
//! |---|---|
//! | `claim` | the holder, and what it holds the lock for |
//! | `request`, `lines` | what contenders say to the resource, and how |
//! | `checker` | which contenders are inside, and what counts as a violation |
//! | `counts` | what has happened, and what should not have |
//! | `resource` | what the lock protects: a checker over loopback, which asks the servers for the truth |
//! | `contender` | a process of ours |
//! | `foreign` | the others: how they are fetched |
//! | `fetch`, `go` | fetching and building once |
//! | `process` | starting, stopping and killing any of them |
//! | `scenario` | which recipe, whose processes, and what has to have been seen |
//! | `stage` | processes behind proxies, and what is done to them |
//! | `run` | all of it together |
//! | `report` | what came of it |

mod checker;
mod claim;
mod contender;
mod counts;
mod fetch;
mod foreign;
pub(crate) mod go;
mod lines;
mod process;
mod report;
mod request;
mod resource;
mod run;
mod scenario;
mod stage;

pub use self::{
    claim::{Claim, Mode, Party},
    contender::{Contend, contend},
    counts::{Counts, Violation, Who},
    foreign::Tools,
    process::Process,
    report::{Demands, Report},
    resource::{Pause, Resource},
    run::{Error, Options, run},
    scenario::Scenario,
};
