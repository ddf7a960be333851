//! `zk elect`: runs a command while being the leader, or follows who leads.

use std::{convert::Infallible, time::Duration};

use rustix::{process::Signal, system::uname};
use serde::Serialize;
use tokio::time::sleep;
use zk_client::Client;
use zk_locks::{Contender, Election, Follow, Leadership};

use crate::{
    args::ElectArgs,
    connection::close,
    exit::{Exit, Failure},
    lock::{
        hold::{Terms, closed},
        signals::{FOR_THE_COMMAND, Signals},
    },
    render::{self, complain, printable},
};

/// Before it is asked again who leads, where that may not be read.
const ASK_AGAIN: Duration = Duration::from_secs(5);

pub(crate) async fn run(args: ElectArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::default();
    signals.catch(FOR_THE_COMMAND)?;
    let layout = args.naming.of_election()?;
    let mut connect = args.connect.clone();
    connect.lease = args.job.lease.into();
    let client = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Exit::Signal(signal.as_raw())),
        client = connect.connect() => client?,
    };
    let election = Election::builder(&client, &args.path).layout(layout).build();
    if args.command.is_empty() {
        let result = follow(&args, &election, &mut signals).await;
        close(&client).await;
        return result;
    }
    let result = lead(&args, &client, &election, &mut signals).await;
    closed(&client, &args.path, &mut signals).await;
    result
}

/// A change of leaders, for programs.
#[derive(Debug, Serialize)]
struct Change<'a> {
    path: &'a str,
    leader: Option<Told>,
}

#[derive(Debug, Serialize)]
struct Told {
    node: String,
    token: i64,
    /// Hexadecimal, as servers print it.
    session: String,
    data: String,
}

impl From<Contender> for Told {
    fn from(leader: Contender) -> Self {
        Self {
            token: leader.token.get(),
            session: leader.session.to_string(),
            data: leader.description().into_owned(),
            node: leader.name,
        }
    }
}

/// Prints a line for each change, until a signal, or one that has no reader.
async fn follow(
    args: &ElectArgs,
    election: &Election,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let path: &str = &args.path;
    let mut leaders = election.follow();
    loop {
        let leader = tokio::select! {
            biased;
            signal = signals.next() => return Ok(Exit::Signal(signal.as_raw())),
            leader = leaders.next() => leader.map_err(Failure::read(path))?.map(Told::from),
        };
        let line = match args.json {
            true => render::json_line(&Change { path, leader })?,
            false => (text(path, leader.as_ref()) + "\n").into_bytes(),
        };
        if !render::is_read(&line)? {
            return Ok(Exit::Done);
        }
    }
}

fn text(path: &str, leader: Option<&Told>) -> String {
    match leader {
        Some(Told { node, token, session, data }) => {
            let data = printable(data);
            format!("{path}: {data} leads, token {token}, session {session}, {}", printable(node))
        }
        None => format!("{path}: no leader"),
    }
}

enum Stood {
    Elected(Box<Leadership>),
    /// By a signal.
    Interrupted(Signal),
}

/// Stands, and runs the command once elected.
async fn lead(
    args: &ElectArgs,
    client: &Client,
    election: &Election,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let ElectArgs { path, command, job, .. } = args;
    let terms = Terms { path, command, job };
    terms.check(&client.session())?;
    let data = args.data.clone().unwrap_or_else(host_and_process);
    let stood = tokio::select! {
        biased;
        // With the future goes the candidacy.
        signal = signals.next() => Stood::Interrupted(signal),
        elected = election.campaign(data.as_bytes()) => {
            Stood::Elected(Box::new(elected.map_err(Failure::acquire(path))?))
        }
        never = tell(path, election.follow()) => match never {},
    };
    match stood {
        Stood::Elected(leadership) => terms.hold(client, &leadership, signals).await,
        Stood::Interrupted(signal) => Ok(Exit::Signal(signal.as_raw())),
    }
}

fn host_and_process() -> String {
    format!("{} pid {}", uname().nodename().to_string_lossy(), std::process::id())
}

/// Tells people who leads, until the candidacy has ended, which does not depend on it.
async fn tell(path: &str, mut leaders: Follow<Option<Contender>>) -> Infallible {
    let mut is_shown = true;
    loop {
        match leaders.next().await {
            Ok(leader) => {
                is_shown = true;
                complain(&text(path, leader.map(Told::from).as_ref()));
            }
            Err(error) => {
                if std::mem::take(&mut is_shown) {
                    let failure = Failure::read(path)(error);
                    complain(&failure.retold(|why| format!("{why}: who leads is not shown")));
                }
                sleep(ASK_AGAIN).await;
            }
        }
    }
}
