//! `zk-soak`: soak tests of the locks and of the client on real servers. See the guide to them.

mod args;

use std::{error::Error, process::ExitCode};

use clap::Parser as _;
use zk_tests::soak::{Report, client, rolling, severed};

use self::args::{Cli, Command};

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { command, json } = Cli::parse();
    match execute(command).await {
        Ok(report) => {
            if json {
                println!("{}", report.json());
            } else {
                print!("{report}");
            }
            ExitCode::from(u8::from(!report.violations().is_empty()))
        }
        Err(error) => {
            eprintln!("zk-soak: {error}");
            ExitCode::from(2)
        }
    }
}

async fn execute(command: Command) -> Result<Report, Box<dyn Error>> {
    Ok(match command {
        Command::Client(options) => client::run(options).await?,
        Command::Rolling(options) => rolling::run(options).await?,
        Command::Severed(options) => severed::run(options).await?,
    })
}
