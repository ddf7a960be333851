//! `zk-trial`: trials of the locks and of the client on real servers. See the guide to them.

mod args;

use std::{error::Error, process::ExitCode};

use clap::Parser as _;
use zk_tests::trial::{Report, client, cohort, fencing, handoff, rolling, severed, waiters};

use self::args::{Cli, Command};

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
        Command::Waiters(options) => waiters::run(options).await?,
        Command::Handoff(options) => handoff::run(&options).await?,
        Command::Cohort(options) => cohort::run(&options).await?,
        Command::Fencing(options) => fencing::run(&options).await?,
        Command::Client(options) => client::run(options).await?,
        Command::Rolling(options) => rolling::run(options).await?,
        Command::Severed(options) => severed::run(options).await?,
        Command::Member(member) => {
            cohort::member::run(member).await?;
            return Ok(None);
        }
        Command::Holder(holder) => {
            fencing::holder::run(holder).await?;
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
