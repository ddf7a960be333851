//! Commands on locks and elections.

#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::{ffi::OsString, time::Duration};

use clap::Args as ClapArgs;
#[cfg(unix)]
use zk_client::Lease;
use zk_client::path::ZkPath;

use super::{CommonArgs, ConnectArgs};
#[cfg(target_os = "linux")]
use crate::lock::processes::Group;
use crate::{duration, naming::NamingArgs};

/// Run a command while holding a lock
///
/// Waits for the exclusive lock on PATH, runs COMMAND, releases the lock when that ends, and exits as COMMAND did. Locks
/// are granted in the order of asking, and shared with Curator's InterProcessMutex, InterProcessReadWriteLock and
/// InterProcessSemaphoreV2; with other libraries by --mode: `zk help names`.
///
/// COMMAND has ZK_LOCK_TOKEN and ZK_LOCK_PATH in its environment, and is ended if the lock is lost: `zk help jobs`. On a
/// terminal, standard error says behind whom it waits.
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
pub(crate) struct LockArgs {
    /// The lock's path; created if missing
    pub(crate) path: ZkPath,

    /// What to run, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    /// Give up after this long, connecting included, and leave the queue, as `zk help jobs` says
    #[arg(long, value_name = "D", value_parser = duration::seconds, conflicts_with = "try_once")]
    pub(crate) timeout: Option<Duration>,

    /// Give up at once if the lock is not free
    #[arg(long = "try")]
    pub(crate) try_once: bool,

    /// Take the read lock, together with other readers
    #[arg(long, group = "side")]
    pub(crate) shared: bool,

    /// Take the write lock, alone
    #[arg(long, group = "side")]
    pub(crate) write: bool,

    /// Take one of N permits
    #[arg(long, value_name = "N", conflicts_with_all = ["side", "mode", "names"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) semaphore: Option<u32>,

    #[command(flatten)]
    pub(crate) naming: NamingArgs,

    /// For `zk holders` to show [default: host and pid]
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,

    #[command(flatten)]
    pub(crate) job: JobArgs,

    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// How COMMAND ends with the lock that it runs under.
#[cfg(unix)]
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct JobArgs {
    /// End COMMAND if others request the lock (`zk revoke`)
    #[arg(long)]
    pub(crate) revocable: bool,

    /// Time for COMMAND between SIGTERM and SIGKILL
    #[arg(long, value_name = "D", value_parser = duration::seconds, default_value = "5s")]
    pub(crate) grace: Duration,

    /// End COMMAND this long before another client can get the lock, if servers do not answer: at most a quarter of the
    /// session timeout
    #[arg(long, value_name = "D", value_parser = duration::seconds, default_value = "0s", hide_short_help = true)]
    pub(crate) margin: Duration,

    /// What renews the lock: what the leader confirms, or any answer of a server over the connection
    #[arg(long, value_enum, value_name = "BY", default_value_t)]
    #[arg(hide_possible_values = true, hide_short_help = true, hide_long_help = true)]
    pub(crate) lease: LeaseBy,
}

/// What the lease of a lock is renewed by.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LeaseBy {
    #[default]
    Leader,
    Connection,
}

#[cfg(unix)]
impl From<LeaseBy> for Lease {
    fn from(by: LeaseBy) -> Self {
        match by {
            LeaseBy::Leader => Self::default(),
            LeaseBy::Connection => Self::Connection,
        }
    }
}

/// End the command of another process when that has been killed
#[cfg(unix)]
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct GuardArgs {
    /// Milliseconds between SIGTERM and SIGKILL
    pub(crate) grace: u64,
}

/// Become the command of another process
#[cfg(target_os = "linux")]
#[derive(Debug, ClapArgs)]
pub(crate) struct LaunchArgs {
    /// What is to be ended with that process: the command's `group` or its `process`
    pub(crate) group: Group,

    /// That process
    pub(crate) parent: u32,

    /// The input of the guardian
    pub(crate) guardian: PathBuf,

    /// What to become
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Run a command while being the leader, or follow who leads
///
/// Joins the election on PATH as a candidate, waits to be elected, runs COMMAND, and resigns when that ends; then exits
/// as COMMAND did. Meanwhile it prints the leader to standard error. All who use Curator's LeaderLatch on the same path
/// take part; see --mode and `zk help names` for other libraries.
///
/// COMMAND has ZK_LOCK_TOKEN and ZK_LOCK_PATH in its environment, and is ended if leadership is lost: see `zk help jobs`.
///
/// Without COMMAND it is no candidate: it prints a line whenever another candidate leads, or the leader changes its data,
/// until a signal ends it, or a line has no reader.
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
pub(crate) struct ElectArgs {
    /// The election's path; created if missing
    pub(crate) path: ZkPath,

    /// What to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    /// What others see of this candidate [default: host and process]
    #[arg(long, value_name = "TEXT", requires = "command")]
    pub(crate) data: Option<String>,

    #[command(flatten)]
    pub(crate) naming: NamingArgs,

    /// Print changes as lines of JSON
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) job: JobArgs,

    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// A contender in the queue of a lock.
#[derive(Debug, ClapArgs)]
pub(crate) struct ContenderArgs {
    /// The lock's path
    pub(crate) path: ZkPath,
    /// The contender: its token, as `zk holders` shows it
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) token: i64,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Show who holds a lock, and who waits for it
///
/// One line for each, the holder first: of exclusive and read/write locks, elections, semaphores (their permits first),
/// cohorts (one line for each process), durable locks, and locks that are a single node; whichever library they use. Ages are the
/// difference of two clocks: this machine's now, and the leader's when the node was created.
///
/// With -R all locks below PATH are listed, except for those that are a single node.
#[derive(Debug, ClapArgs)]
pub(crate) struct HoldersArgs {
    /// Show all locks below PATH
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Keep running, and print them again after each change
    #[arg(long)]
    pub(crate) watch: bool,
    /// The lock's path, or with -R the node below which locks are
    pub(crate) path: ZkPath,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}
