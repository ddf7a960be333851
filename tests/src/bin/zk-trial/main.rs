//! `zk-trial`: trials of the locks and of the client on real servers. See the guide to them.

mod args;

use std::{error::Error, process::ExitCode};

use clap::Parser as _;
use zk_tests::trial::{Report, client, cohort, fencing, handoff, rolling, severed, waiters};

use self::args::{Cli, Command, Holder};

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { command, json } = Cli::parse();
    match execute(command).await {
        Ok(Some(report)) => tell(&report, json),
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("zk-trial: {error}");
            ExitCode::from(2)
        }
    }
}

async fn execute(command: Command) -> Result<Option<Report>, Box<dyn Error>> {
    Ok(Some(match command {
        Command::Waiters(args) => waiters::run(args.into()).await?,
        Command::Handoff(args) => handoff::run(&args.into()).await?,
        Command::Cohort(args) => cohort::run(&args.options()?).await?,
        Command::Member(args) => {
            cohort::member::run(args.into()).await?;
            return Ok(None);
        }
        Command::Fencing(args) => fencing::run(&args.options()?).await?,
        Command::Client(args) => client::run(args.into()).await?,
        Command::Rolling(args) => rolling::run(args.into()).await?,
        Command::Severed(args) => severed::run(args.into()).await?,
        Command::Holder(Holder { servers, path, store, care }) => {
            fencing::holder::run(&servers, &path, store, care).await?;
            return Ok(None);
        }
    }))
}

fn tell(report: &Report, json: bool) -> ExitCode {
    if json {
        println!("{}", report.json());
    } else {
        print!("{report}");
    }
    ExitCode::from(u8::from(!report.violations().is_empty()))
}
