//! Commands on locks and elections.

use std::{ffi::OsString, time::Duration};

use clap::Args as ClapArgs;
use zk_client::path::ZkPath;

use super::{CommonArgs, ConnectArgs};
use crate::{duration, naming::NamingArgs};

/// Run a command while holding a lock
///
/// Waits for the exclusive lock on PATH, runs COMMAND, and releases the lock
/// when it ends; then exits as COMMAND did. Locks are granted in the order of
/// asking, and shared with all users of Curator's InterProcessMutex, or of a
/// lock compatible with it, on the same path. With --shared or --write it is a
/// side of a read/write lock (Curator's InterProcessReadWriteLock), with
/// --semaphore one of N permits (Curator's InterProcessSemaphoreV2).
///
/// COMMAND finds in its environment:
///   ZK_LOCK_TOKEN  a number that grows with every grant. Have whatever the lock
///                  protects remember the largest it has seen and refuse smaller
///                  ones: then a holder that was stalled past the end of its
///                  lock can do no harm.
///   ZK_LOCK_PATH   the path of the lock's node.
///
/// Should the lock be lost meanwhile (session expired, servers out of reach for
/// the session timeout, node deleted by another client), COMMAND gets a SIGTERM, and a
/// SIGKILL if it has not ended after the grace period. With --margin, that
/// happens before another process can have the lock.
///
/// INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to COMMAND. Before it runs,
/// they end the wait, and nothing stays behind in the queue. (A signal that was
/// being ignored when zk started stays ignored.)
///
/// COMMAND runs in a process group of its own, and all of that is signalled.
/// Only if zk itself is in the foreground of a terminal does COMMAND stay in
/// zk's group, so that Ctrl-C, Ctrl-Z and reading from the terminal work as
/// without zk. Then only COMMAND's first process is signalled when the lock is
/// lost; and INT and QUIT are not passed on: the terminal sends them to both.
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
#[command(verbatim_doc_comment)]
pub(crate) struct LockArgs {
    /// The lock's path; made if missing
    pub(crate) path: ZkPath,

    /// What to run, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    /// Give up after this long, waiting for a session included
    #[arg(long, value_name = "D", value_parser = duration::seconds, conflicts_with = "try_once")]
    pub(crate) timeout: Option<Duration>,

    /// Give up at once if the lock is held or waited for
    #[arg(long = "try")]
    pub(crate) try_once: bool,

    /// Hold it together with all others who only read, and without any writer
    #[arg(long, group = "side")]
    pub(crate) shared: bool,

    /// Hold the read/write lock alone
    #[arg(long, group = "side")]
    pub(crate) write: bool,

    /// Hold one of N permits
    #[arg(long, value_name = "N", conflicts_with_all = ["side", "mode", "names"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) semaphore: Option<u32>,

    #[command(flatten)]
    pub(crate) naming: NamingArgs,

    /// What `zk holders` shows to others [default: host and process]
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
    /// End COMMAND, as for a lost lock, if the lock is requested back (zk revoke, or Curator's Revoker)
    #[arg(long)]
    pub(crate) revocable: bool,

    /// How long COMMAND has between SIGTERM and SIGKILL when the lock is lost
    #[arg(long, value_name = "D", value_parser = duration::seconds, default_value = "5s")]
    pub(crate) grace: Duration,

    /// End COMMAND this long before the lock can be granted to another, if servers are not heard of: at most
    /// a quarter of the session timeout
    #[arg(long, value_name = "D", value_parser = duration::seconds, default_value = "0s")]
    pub(crate) margin: Duration,
}

/// Run a command while being the leader, or follow who leads
///
/// Stands for the election on PATH, waits until it has stood for longest, runs
/// COMMAND, and resigns when that ends; then exits as COMMAND did. While it waits,
/// the leader is printed to standard error. Candidates are those of Curator's LeaderLatch
/// on the same path (of kazoo's Election with --mode kazoo).
///
/// Environment, signals and losses are as for `zk lock`.
///
/// Without COMMAND it does not stand: it prints a line whenever another one
/// leads, or the leader says something else, until a signal ends it.
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
#[command(verbatim_doc_comment)]
pub(crate) struct ElectArgs {
    /// The election's path; made if missing
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

/// One in the queue of a lock.
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
/// One line for each, the holder first: of exclusive and read/write locks,
/// cohorts (one line for each process), elections, semaphores (their permits
/// first), and locks that are a single node; whatever implementation they use. Ages are the difference of two clocks: this machine's, and the
/// leader's when the node was made.
#[derive(Debug, ClapArgs)]
pub(crate) struct HoldersArgs {
    /// The lock's path
    pub(crate) path: ZkPath,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}
