//! `zk-soak`: soak tests of the locks and of the client on real servers. See the guide to them.

mod args;

use std::{error::Error, process::ExitCode};

use clap::Parser as _;
use zk_tests::{
    interop::contend,
    soak::{Report, client, judges, partitions, rolling, severed},
};

use self::args::{Cli, Command};

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { command, json } = Cli::parse();
    let enclosed = match &command {
        Command::Contend(told) => {
            let contended = contend(told.clone()).await.map(|()| Some(ExitCode::SUCCESS));
            contended.map_err(Into::into)
        }
        Command::Partitions(options) => partitions::enclose(options).await,
        _ => Ok(None),
    };
    match enclosed {
        Ok(None) => {}
        Ok(Some(code)) => return code,
        Err(error) => return failed(&*error),
    }
    match execute(command).await {
        Ok(report) => {
            if json {
                println!("{}", report.json());
            } else {
                print!("{report}");
            }
            ExitCode::from(u8::from(!report.violations().is_empty()))
        }
        Err(error) => failed(&*error),
    }
}

fn failed(error: &dyn Error) -> ExitCode {
    eprintln!("zk-soak: {error}");
    ExitCode::from(2)
}

async fn execute(command: Command) -> Result<Report, Box<dyn Error>> {
    Ok(match command {
        Command::Client(options) => client::run(options).await?,
        Command::Contend(_) => unreachable!("it has ended"),
        Command::Judges(options) => judges::run(options).await?,
        Command::Partitions(options) => partitions::run(options).await?,
        Command::Rolling(options) => rolling::run(options).await?,
        Command::Severed(options) => severed::run(options).await?,
    })
}
