//! Processes of Curator, kazoo and `zk-locks` on the same locks, with everything going wrong.
//!
//! | module | concern |
//! |---|---|
//! | `claim` | the holder, and what it holds the lock for |
//! | `request` | what contenders say to the register |
//! | `ledger` | which contenders are inside, and what counts as a violation |
//! | `counts` | what has happened, and what should not have |
//! | `register` | the ledger over loopback, and the servers that it asks for the truth |
//! | `contender` | a process of ours |
//! | `foreign` | the others: how they are fetched |
//! | `process` | starting, stopping and killing any of them |
//! | `scenario` | which recipe, whose processes, and what has to have been seen |
//! | `stage` | processes behind proxies, and what is done to them |
//! | `run` | all of it together |
//! | `report` | what came of it |

mod claim;
mod contender;
mod counts;
mod foreign;
mod ledger;
mod process;
mod register;
mod report;
mod request;
mod run;
mod scenario;
mod stage;

pub use self::{
    claim::{Claim, Mode, Party},
    contender::{Contend, contend},
    counts::{Counts, Violation, Who},
    foreign::Tools,
    process::Process,
    register::{Pause, Register},
    report::{Demands, Report},
    run::{Error, Options, run},
    scenario::Scenario,
};
