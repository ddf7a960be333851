//! `zk-interop`: Curator, kazoo and zk-locks on the same locks. See docs/interop.md.

use std::{env, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand, ValueEnum as _};
use zk_testkit::real::{Ensemble, Release};
use zk_tests::{
    faults::Fault,
    interop::{Contend, Demands, Options, Scenario, Tools, contend, run},
};

/// Runs processes of Curator, kazoo and zk-locks on one lock, with kills and broken connections.
///
/// Prints what came of it, and exits with 1 if anything was violated.
#[derive(Debug, Parser)]
#[command(name = "zk-interop", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Minutes for each scenario.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// exclusive, read-write, semaphore or leader; all of them if none is named.
    #[arg(long)]
    scenario: Option<Scenario>,
    /// What faults are made up from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Milliseconds of each visit, instead of what the scenario usually has.
    #[arg(long)]
    hold: Option<u64>,
    /// The only thing that goes wrong.
    #[arg(long)]
    only: Option<Fault>,
    /// Nothing goes wrong on purpose.
    #[arg(long)]
    no_faults: bool,
    /// So many visits at least, in each scenario.
    #[arg(long, default_value_t = 1)]
    visits: u64,
    /// So many percent of them at least by each implementation.
    #[arg(long, default_value_t = 20.0)]
    share: f64,
    /// So many seconds may go by at most until a contender is granted it.
    #[arg(long, default_value_t = 30.0)]
    pause: f64,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A process that contends: what the others are started for as well.
    #[command(hide = true)]
    Contend(Contend),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { command, .. } = &Cli::parse();
    let outcome = match command {
        Some(Command::Contend(told)) => contend(told.clone()).await.map(|()| ExitCode::SUCCESS),
        None => run_all(&Cli::parse()).await,
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("zk-interop: {error}");
        ExitCode::from(2)
    })
}

async fn run_all(cli: &Cli) -> Result<ExitCode, String> {
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let tools = Tools::prepare(own).await?;
    let ensemble = Ensemble::start(Release::V3_9).await.map_err(|error| error.to_string())?;
    let time = Duration::from_secs_f64(60.0 * cli.minutes);
    let pause_max = Duration::from_secs_f64(cli.pause);
    let demands = Demands { entered_min: cli.visits, share_min: cli.share, pause_max };
    let mut failed = false;
    for &scenario in Scenario::value_variants() {
        if cli.scenario.is_some_and(|wanted| wanted != scenario) {
            continue;
        }
        let mut options = Options::new(scenario, time);
        (options.seed, options.faults) = (cli.seed, !cli.no_faults);
        (options.only, options.demands) = (cli.only, demands);
        options.hold = cli.hold.map_or(options.hold, Duration::from_millis);
        let report = run(&options, &ensemble, &tools).await;
        let report = report.map_err(|error| error.to_string())?;
        println!("{report}");
        for failure in report.failures() {
            failed = true;
            println!("FAILED: {failure}");
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}
