//! What can be asked of the command.

use std::{io, net::SocketAddr, time::Duration};

use clap::{Args, Parser, Subcommand};
use zk_locks::Lease;
use zk_testkit::real::Release;
use zk_tests::trial::{client, cohort, fencing, handoff, rolling, severed, waiters};

/// Trials of the locks and of the client on real servers: see docs/trials.md.
#[derive(Debug, Parser)]
#[command(name = "zk-trial")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// One object instead of a table.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Each exits with 1 if anything happened that should not.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Thousands in one queue: order, notifications, memory, listings.
    Waiters(Waiters),
    /// How often a lock changes hands without a request in between, with and without look-ahead.
    Handoff(Handoff),
    /// Many tasks in several processes: what passing the lock on costs, and how long others wait.
    Cohort(Cohort),
    /// One of those processes.
    #[command(hide = true)]
    Member(Member),
    /// Holders that are stopped in the middle of an update: what is lost with and without a token check.
    Fencing(Fencing),
    /// One of those holders.
    #[command(hide = true)]
    Holder(Holder),
    /// Every recipe at once, while the members of an ensemble are killed one after the other.
    Rolling(Rolling),
    /// Holders on a member that is cut off from its leader, which gives their locks away.
    Severed(Severed),
    /// Reads, writes and watches of the client, while the members of an ensemble are killed and stopped.
    Client(Client),
}

/// So many waiters are judged by the memory that they take: of fewer, what sessions keep counts for more.
const JUDGED_FROM: usize = 3000;

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Waiters {
    /// How many wait.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    waiters: usize,
    /// Over how many sessions, in turn.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    sessions: usize,
    /// Whether each also watches the one behind whom its predecessor waits.
    #[arg(long)]
    look_ahead: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "at least 1".to_owned())
}

impl From<Waiters> for waiters::Options {
    fn from(args: Waiters) -> Self {
        let Waiters { waiters, sessions, look_ahead } = args;
        Self {
            waiters,
            sessions,
            look_ahead,
            judge_memory: waiters >= JUDGED_FROM,
            release: Release::V3_9,
        }
    }
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Severed {
    /// How many hold a lock each, in each round.
    #[arg(long, value_name = "N", default_value_t = 40)]
    holders: usize,
    /// How often the member is cut off.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Whether every answer counts, as by `Lease::Connection`: they believe for too long then.
    #[arg(long)]
    by_connection: bool,
}

impl From<Severed> for severed::Options {
    fn from(args: Severed) -> Self {
        let Severed { holders, rounds, by_connection } = args;
        Self {
            holders,
            rounds,
            // As most servers have it.
            tick: Duration::from_secs(2),
            sync_limit: 5,
            session_timeout: Duration::from_secs(6),
            lease: if by_connection { Lease::Connection } else { Lease::default() },
            release: Release::V3_9,
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Handoff {
    /// How many contend, one trial after the other.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2, 16, 64])]
    contenders: Vec<usize>,
    /// Acquisitions of all together.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    acquisitions: usize,
    /// For how long each holds the lock, in milliseconds; 0 for not at all.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    hold: u64,
}

impl From<Handoff> for handoff::Options {
    fn from(args: Handoff) -> Self {
        let Handoff { contenders, acquisitions, hold } = args;
        let hold = Duration::from_millis(hold);
        Self { contenders, acquisitions, hold, release: Release::V3_9 }
    }
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Cohort {
    /// How many processes.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..))]
    processes: u16,
    /// Tasks of each.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    tasks: u16,
    /// How often the lock is taken, by all together.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    visits: usize,
    /// For how long each holds the lock, in milliseconds; 0 for not at all.
    #[arg(long, value_name = "MS", default_value_t = 1)]
    hold: u64,
}

impl Cohort {
    pub(crate) fn options(self) -> io::Result<cohort::Options> {
        let Self { processes, tasks, visits, hold } = self;
        Ok(cohort::Options {
            processes: processes.into(),
            tasks: tasks.into(),
            visits,
            hold: Duration::from_millis(hold),
            judge_times: true,
            program: std::env::current_exe()?,
            release: Release::V3_9,
        })
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Member {
    #[arg(long)]
    servers: String,
    #[arg(long)]
    path: String,
    #[arg(long)]
    hall: SocketAddr,
    #[arg(long)]
    number: usize,
    #[arg(long)]
    tasks: usize,
    #[arg(long)]
    hold: u64,
}

impl From<Member> for cohort::member::Member {
    fn from(args: Member) -> Self {
        let Member { servers, path, hall, number, tasks, hold } = args;
        Self { servers, path, hall, number, tasks, hold: Duration::from_millis(hold) }
    }
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Fencing {
    /// Updates without any check; 0 to leave this out.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    unfenced: u64,
    /// Updates in the scope of the guard; 0 to leave this out.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    scoped: u64,
    /// Updates with a check of tokens; 0 to leave this out.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    fenced: u64,
    /// How many processes.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(3..))]
    holders: u16,
}

impl Fencing {
    pub(crate) fn options(self) -> io::Result<fencing::Options> {
        let Self { unfenced, scoped, fenced, holders } = self;
        let program = std::env::current_exe()?;
        let (holders, release) = (holders.into(), Release::V3_9);
        Ok(fencing::Options { unfenced, scoped, fenced, holders, program, release })
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Holder {
    #[arg(long)]
    pub(crate) servers: String,
    #[arg(long)]
    pub(crate) path: String,
    #[arg(long)]
    pub(crate) store: SocketAddr,
    #[arg(long)]
    pub(crate) care: fencing::holder::Care,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Rolling {
    /// For how long members are killed at least, in seconds.
    #[arg(long, value_name = "S", default_value_t = 1200)]
    seconds: u64,
    /// How many are killed at least.
    #[arg(long, value_name = "N", default_value_t = 0)]
    kills: usize,
    /// From one kill to the next at least, in seconds.
    #[arg(long, value_name = "S", default_value_t = 4)]
    every: u64,
    /// Sessions for each recipe.
    #[arg(long, value_name = "N", default_value_t = 4)]
    sessions: usize,
}

impl From<Rolling> for rolling::Options {
    fn from(args: Rolling) -> Self {
        Self {
            time: Duration::from_secs(args.seconds),
            kills: args.kills,
            every: Duration::from_secs(args.every),
            sessions: args.sessions,
            release: Release::V3_9,
        }
    }
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Client {
    /// For how long members are killed and stopped at least, in seconds.
    #[arg(long, value_name = "S", default_value_t = 600)]
    seconds: u64,
    /// How many tasks, four of each session.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    tasks: usize,
    /// From one fault to the next at least, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// How long each task waits between two turns at least, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 10)]
    pause: u64,
}

impl From<Client> for client::Options {
    fn from(args: Client) -> Self {
        Self {
            time: Duration::from_secs(args.seconds),
            every: Duration::from_millis(args.every),
            tasks: args.tasks,
            pause: Duration::from_millis(args.pause),
            release: Release::V3_9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guides_say_is_understood() {
        zk_tests::cli::understands::<Cli>(&[
            "rolling --seconds 120 --kills 20",
            "client --seconds 600 --tasks 64",
            "rolling --seconds 1200 --every 4 --sessions 4 --json",
        ]);
    }
}
