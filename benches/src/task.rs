//! What is to be measured: the command line that every client's program has.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

/// Most operations; at the slowest rate, the last of them begins at a time that the system's clock can tell.
const OPERATIONS_MAX: u64 = 1_000_000_000_000;
/// Longest time.
const SECONDS_MAX: u64 = 1_000_000;

/// So many seconds, or parts of them.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).ok();
    time.filter(|time| *time <= Duration::from_secs(SECONDS_MAX))
        .ok_or_else(|| format!("not from 0 to {SECONDS_MAX} seconds"))
}

/// So many in a second; less than one is possible.
fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.001..=1e9).contains(&rate) { Ok(rate) } else { Err("not from 0.001 to 1e9".to_owned()) }
}

/// What is to be measured, on which server.
#[derive(Args, Clone, Debug)]
pub struct Task {
    /// What is to be done.
    pub workload: Workload,
    /// The server, as `host:port`.
    #[arg(long)]
    pub server: String,
    /// Talk TLS to it, and trust the authority in this file, in PEM.
    #[arg(long)]
    pub tls: Option<PathBuf>,
    /// How many requests are under way at all times; contenders of a hand-off; sessions that idle or come back; watches;
    /// waiters; tasks of cohorts and of many locks; nodes of a cache.
    #[arg(long, default_value_t = 1)]
    pub in_flight: usize,
    /// Over how many sessions waiters and tasks of many locks are spread, or how many cohorts there are.
    #[arg(long, default_value_t = 1)]
    pub sessions: usize,
    /// How many locks the tasks of many locks share among them; at least one for each.
    #[arg(long, default_value_t = 1)]
    pub locks: usize,
    /// How many children a node has that is listed, none by default; and each node of a cache, all of which are children
    /// of one by default.
    #[arg(long)]
    pub children: Option<usize>,
    /// Reads in a second, where they begin at a fixed rate.
    #[arg(long, default_value = "1000", value_parser = rate)]
    pub rate: f64,
    /// Bytes of data that are read or written.
    #[arg(long, default_value_t = 128)]
    pub payload: usize,
    /// How long to measure, unless it is so many operations.
    #[arg(long, default_value = "3", value_parser = seconds)]
    pub seconds: Duration,
    /// How long to do the same before that.
    #[arg(long, default_value = "1", value_parser = seconds)]
    pub warm_up: Duration,
    /// How many operations to measure, for what is counted from outside, instead of a time.
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=OPERATIONS_MAX))]
    pub operations: Option<u64>,
    /// How requests are kept under way.
    #[arg(long, value_enum, default_value_t = Style::Ring)]
    pub style: Style,
    /// Threads of the runtime; with one, everything is done on the program's own.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Whether locks are released without waiting for the answer.
    #[arg(long)]
    pub unawaited: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Read a node.
    Get,
    /// Write a node.
    Set,
    /// List a node's children.
    List,
    /// Nine reads, one write.
    Mixed,
    /// Create a node, delete it: one operation.
    CreateDelete,
    /// Write sixteen nodes in one request.
    Multi,
    /// Read a node at a fixed rate, however long that takes.
    Steady,
    /// Connect, read a node: one operation. Leaving is not measured.
    Connect,
    /// Have sessions that do nothing.
    Idle,
    /// Acquire an uncontended lock, release it: one operation.
    Lock,
    /// Tasks, each with locks of its own, take one of them after the other: a lock that was acquired and released is one operation.
    ManyLocks,
    /// Contenders, each with a session of its own, pass a lock on: a grant is one operation.
    HandOff,
    /// Write so many watched nodes from elsewhere: hearing of one is an operation.
    FanOut,
    /// Lose a connection with so many watches that fire once, and a hundredth of that of others: restoring one is an operation.
    Reconnect,
    /// So many sessions lose their connection at once, while the instant server is down: having one again is an operation.
    Storm,
    /// So many wait for one lock, and pass it on through the whole line: a grant is one operation.
    Waiters,
    /// Tasks take a lock in turn, those of a session on one node: having had it once is one operation.
    Cohort,
    /// Follow so many nodes: having one is an operation. Beside as many gets, and then some changes, one at a time.
    Cache,
}

impl Workload {
    /// Whether it is nothing but requests, so many at a time on one connection.
    pub(crate) const fn is_plain_requests(self) -> bool {
        use Workload::{CreateDelete, Get, List, Mixed, Multi, Set};
        matches!(self, Get | List | Set | Mixed | CreateDelete | Multi)
    }

    /// Whether only our client has what it takes.
    pub(crate) const fn is_ours_alone(self) -> bool {
        matches!(
            self,
            Self::FanOut
                | Self::Reconnect
                | Self::Storm
                | Self::Waiters
                | Self::Cohort
                | Self::Cache
        )
    }
}

/// How requests are kept under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// One task has them all, and waits for the oldest.
    Ring,
    /// As many tasks, each with one.
    Tasks,
}

impl Task {
    /// The name that this has in a report.
    pub(crate) fn name(&self) -> String {
        let value = self.workload.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_bounded() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["-1", "1e7", "nan", "inf", "1 s", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert_eq!(rate("0.5"), Ok(0.5));
        for text in ["0", "-1", "1e-300", "nan", "inf", ""] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
