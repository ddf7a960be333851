//! Holders that are stopped in the middle of an update: what is lost with and without a token check.
//!
//! A counter is read and written back under a lock, by processes whose sessions last for two seconds. Every now
//! and then one of them is stopped (SIGSTOP) for five seconds just between the two: its session ends, others
//! have the lock, and then it goes on and writes what it has been about to write.
//!
//! | module | concern |
//! |---|---|
//! | `holder` | the process that updates the counter |
//! | `store` | the counter, and which holders are stopped |

pub mod holder;
mod store;

use std::{
    env,
    error::Error,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use clap::Args;
use tokio::time::timeout;
use zk_testkit::real::{Release, Server};

use self::{holder::Care, store::Store};
use super::{Report, at_least, report::tenths};

/// How long servers keep the session of a holder that is not heard of.
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a holder is stopped.
const PAUSE: Duration = Duration::from_secs(5);

/// From one stop to the next at least: a waiter gets the lock two seconds after a stop.
const PAUSE_EVERY: Duration = Duration::from_secs(4);

/// Without an end by then, a contender is stuck.
const PATIENCE: Duration = Duration::from_secs(1800);

/// What a trial is to be like.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Updates without any check; 0 to leave this out.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub unfenced: u64,
    /// Updates in the scope of the guard; 0 to leave this out.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub scoped: u64,
    /// Updates with a check of tokens; 0 to leave this out.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub fenced: u64,
    /// How many processes.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least(3))]
    pub holders: usize,
    /// The program that is a holder when its argument is `holder`.
    #[arg(skip = env::current_exe().unwrap_or_default())]
    pub program: PathBuf,
    /// The server.
    #[arg(skip = Release::V3_9)]
    pub release: Release,
}

/// Runs the trial.
///
/// # Errors
/// What kept it from being made.
pub async fn run(options: &Options) -> Result<Report, Box<dyn Error>> {
    let server = Server::start(options.release).await?;
    let mut report = Report::new("fencing");
    report.figure("processes", options.holders);
    report.figure("sessions last for, s", SESSION_TIMEOUT.as_secs());
    report.figure("holders are stopped for, s", PAUSE.as_secs());
    let experiments = [
        ("no check", options.unfenced, Care::None, false),
        ("scope", options.scoped, Care::Scope, false),
        ("token check", options.fenced, Care::None, true),
    ];
    for (name, updates, care, fenced) in experiments {
        if updates == 0 {
            continue;
        }
        let begun = Instant::now();
        let store = Store::open(fenced, updates, options.holders).await?;
        let path = format!("/fencing/{care}-{fenced}");
        let holders: Result<Vec<_>, _> = (0..options.holders)
            .map(|_| Holder::start(options, &server, &store, &path, care))
            .collect();
        let finished = timeout(PATIENCE, store.finished()).await;
        drop(holders?);
        let book = store.close();
        report.figure(format!("{name}: seconds"), tenths(begun.elapsed().as_secs_f64()));
        report.figure(format!("{name}: holders stopped"), book.stopped);
        report.figure(format!("{name}: updates accepted"), book.accepted);
        report.figure(format!("{name}: requests refused"), book.refused);
        report.figure(format!("{name}: updates lost"), book.lost());
        report.figure(format!("{name}: updates lost, %"), book.lost_percent());
        report.expect(finished.is_ok(), || format!("{name}: not done after {PATIENCE:?}"));
        report.expect(book.stopped > 0, || format!("{name}: no holder was stopped"));
        report.expect(!fenced || book.lost() == 0, || format!("{name}: updates were lost"));
        report.expect(!fenced || book.refused > 0, || format!("{name}: no holder was refused"));
    }
    Ok(report)
}

/// A process, which goes with this.
struct Holder(Child);

impl Holder {
    fn start(
        options: &Options,
        server: &Server,
        store: &Store,
        path: &str,
        care: Care,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(&options.program);
        command.args(["holder", "--servers", &server.connect_string(), "--path", path]);
        command.args(["--store", &store.addr().to_string(), "--care", &care.to_string()]);
        command.stdin(Stdio::null()).spawn().map(Self)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // Stopped or not. Both fail only for a process that has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
