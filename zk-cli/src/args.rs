//! The command line.

use std::{ffi::OsString, net::IpAddr, time::Duration};

use clap::{ArgGroup, Args as ClapArgs, Parser, Subcommand};
use zk_client::ZkPath;
use zk_testkit::real::Release;

use crate::{duration, exit::Exit, naming::NamingArgs};

/// Where a server is looked for if nobody says anything.
const SERVER_DEFAULT: &str = "127.0.0.1:2181";

/// ZooKeeper, and locks on it, from the shell.
#[derive(Debug, Parser)]
#[command(name = "zk", version, after_help = short_after_help(), after_long_help = long_after_help())]
#[command(max_term_width = 80, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(unix)]
    Lock(LockArgs),
    #[cfg(unix)]
    Elect(ElectArgs),
    Holders(HoldersArgs),
    /// Ask somebody to give a lock back
    ///
    /// Whether it does is up to the holder: `zk lock --revocable` does, and so do Curator's revocable locks
    /// and programs that wait for `Guard::revoked`.
    Revoke(ContenderArgs),
    /// Take somebody's place in the queue of a lock away, or the lock
    ///
    /// For those who cannot give it back. They may go on for a while without knowing: what the lock protects is
    /// safe from them only if it checks tokens. The token sees to it that nobody else is met.
    Break(ContenderArgs),
    Ls(LsArgs),
    Get(GetArgs),
    Set(SetArgs),
    Create(CreateArgs),
    Delete(DeleteArgs),
    Stat(StatArgs),
    #[cfg(unix)]
    Demo(DemoArgs),
    #[cfg(unix)]
    Serve(ServeArgs),
}

/// Which servers, and how.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectArgs {
    /// Servers, with a chroot behind them if wished: host:port,host:port/path
    #[arg(long, short, env = "ZK_SERVER", value_name = "HOST:PORT,…", default_value = SERVER_DEFAULT)]
    pub(crate) server: String,

    /// Session timeout to ask for: how long servers keep the session, and its locks, without hearing from it
    #[arg(long, value_name = "D", value_parser = duration::seconds, default_value = "10s")]
    pub(crate) session_timeout: Duration,

    /// How long to try to get a session
    #[arg(long, value_name = "D", value_parser = duration::seconds, default_value = "10s")]
    pub(crate) connect_timeout: Duration,

    /// Identity to prove, such as digest:user:password; better given by the environment, which others
    /// cannot read
    #[arg(long, env = "ZK_AUTH", hide_env_values = true, value_name = "SCHEME:CREDENTIALS")]
    pub(crate) auth: Option<String>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct OutputArgs {
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What every command has that asks a server and prints the answer.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Run a command while holding a lock
///
/// Waits for the exclusive lock on PATH, runs COMMAND, and releases the lock
/// when it ends; then exits as COMMAND did. Locks are granted in the order of
/// asking, and shared with everybody who uses Curator's InterProcessMutex, or a
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
/// the session timeout, node deleted by somebody), COMMAND gets a SIGTERM, and a
/// SIGKILL if it has not ended after the grace period. With --margin, that
/// happens before anybody else can have the lock.
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

    /// Give up at once if somebody has the lock, or waits for it
    #[arg(long = "try")]
    pub(crate) try_once: bool,

    /// Hold it together with all others who only read, and with nobody who writes
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
    /// End COMMAND, as for a lost lock, if somebody asks for the lock back (zk revoke, or Curator's Revoker)
    #[arg(long)]
    pub(crate) revocable: bool,

    /// How long COMMAND has between SIGTERM and SIGKILL when the lock is lost
    #[arg(long, value_name = "D", value_parser = duration::seconds, default_value = "5s")]
    pub(crate) grace: Duration,

    /// End COMMAND this long before the lock can be somebody else's, if servers are not heard of: at most
    /// half of the session timeout
    #[arg(long, value_name = "D", value_parser = duration::seconds, default_value = "0s")]
    pub(crate) margin: Duration,
}

/// Run a command while being the leader, or follow who leads
///
/// Stands for the election on PATH, waits until it has stood for longest, runs
/// COMMAND, and resigns when that ends; then exits as COMMAND did. While it waits,
/// standard error is told who leads. Candidates are those of Curator's LeaderLatch
/// on the same path (of kazoo's Election with --mode kazoo).
///
/// Environment, signals and losses are as for `zk lock`.
///
/// Without COMMAND it does not stand: it prints a line whenever somebody else
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

    /// What others are told about this candidate [default: host and process]
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
    /// Whom: its token, as `zk holders` shows it
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

/// List the children of a node
#[derive(Debug, ClapArgs)]
pub(crate) struct LsArgs {
    /// With version, number of children, bytes, time of the last write, and the session of ephemeral nodes
    #[arg(short)]
    pub(crate) long: bool,
    /// The node
    #[arg(default_value = "/")]
    pub(crate) path: ZkPath,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Print a node's data
///
/// The bytes as they are. To a terminal, a line feed is added if the data does not end in one.
#[derive(Debug, ClapArgs)]
pub(crate) struct GetArgs {
    /// The node
    pub(crate) path: ZkPath,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Replace a node's data
#[derive(Debug, ClapArgs)]
pub(crate) struct SetArgs {
    /// Only if the data has this version now
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) version: Option<i32>,
    /// The node
    pub(crate) path: ZkPath,
    /// The new data; - for all of standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) data: OsString,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Create a node, and print its path
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("life"))]
pub(crate) struct CreateArgs {
    /// Append a number to the name that grows with every such node
    #[arg(long)]
    pub(crate) sequential: bool,
    /// To be deleted by the servers some time after its last child
    #[arg(long, group = "life", conflicts_with = "sequential")]
    pub(crate) container: bool,
    /// To be deleted by the servers when childless and unwritten for this long
    #[arg(long, group = "life", value_name = "D", value_parser = duration::seconds)]
    pub(crate) ttl: Option<Duration>,
    /// Create what is missing above it, too
    #[arg(long, short)]
    pub(crate) parents: bool,
    /// The node; with --sequential, its path up to the number
    pub(crate) path: String,
    /// Its data; - for all of standard input
    #[arg(default_value = "", allow_hyphen_values = true)]
    pub(crate) data: OsString,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Delete a node without children
#[derive(Debug, ClapArgs)]
pub(crate) struct DeleteArgs {
    /// Only if the data has this version now
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) version: Option<i32>,
    /// The node
    pub(crate) path: ZkPath,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Show what servers know of a node besides its data
#[derive(Debug, ClapArgs)]
pub(crate) struct StatArgs {
    /// The node
    pub(crate) path: ZkPath,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// See fifty contenders take one lock in turn, and check that they do
///
/// Every contender has a session of its own; all ask for one lock at the same moment. What the lock
/// protects is a register that remembers the largest fencing token it has seen, refuses smaller ones, and
/// notices when two are in it at once. In the end: a timeline of who held the lock when, and a verdict on
/// exclusion, order, tokens, nodes left behind, and requests per acquisition.
///
/// Requests are counted, not estimated: all contenders go through a proxy that knows the protocol. Counted
/// is every request frame from the start signal to the last release, except heartbeats; making and closing
/// sessions, and the lock's path, is before and after.
///
/// Without --server and --real, the server that is part of this program is used, on the loopback
/// interface. ($ZK_SERVER is deliberately not asked: a demo should not find its way to servers in
/// production by itself.)
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// A server to use instead of starting one
    #[arg(long, short, value_name = "HOST:PORT", conflicts_with_all = ["install", "real"])]
    pub(crate) server: Option<String>,
    /// Start a real ZooKeeper, which needs Java
    #[arg(long)]
    pub(crate) real: bool,
    /// How many ask for the lock
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) contenders: u16,
    /// How often each of them does
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) rounds: u16,
    /// How long each holds it (a bare number means milliseconds)
    #[arg(long, value_name = "MS", value_parser = duration::millis, default_value = "30ms")]
    pub(crate) hold: Duration,
    /// The lock's path; must have no children
    #[arg(long, short, value_name = "PATH", default_value = "/zk-demo")]
    pub(crate) path: ZkPath,
    /// Start a real ZooKeeper, and install it with the system's packages if there is none (as does
    /// ZK_TESTKIT_INSTALL=1)
    #[arg(long)]
    pub(crate) install: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Run a ZooKeeper for tests and experiments; it keeps nothing
///
/// A server that speaks ZooKeeper's whole client protocol, from this program alone: no Java, no files, up
/// in a few milliseconds. Everything is in memory, and gone when it ends. It answers as a server of the
/// chosen release does, but it is no replacement for one: there is no disk, no replication, no limit on
/// who may connect.
///
/// Its address is the first line of standard output once clients can connect. INT or TERM ends it.
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// Port to listen on; 0 for any free one. Further members take the ports behind it
    #[arg(long, short, value_name = "N", default_value_t = 2181)]
    pub(crate) port: u16,
    /// Address to listen on. Whoever can reach it can read and write everything
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// Members of an ensemble that listen side by side
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=9))]
    pub(crate) members: u16,
    /// Which release to behave as
    #[arg(long, value_name = "LINE", default_value_t = Release::NEWEST)]
    pub(crate) release: Release,
    /// Unit of the server's time: sessions last between two and twenty, and end at multiples
    #[arg(long, value_name = "D", value_parser = duration::millis, default_value = "2s")]
    pub(crate) tick: Duration,
    /// Allow nodes with a time to live
    #[arg(long)]
    pub(crate) ttl: bool,
    /// Serve reads on members without a quorum, to clients that are content with that
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Take commands from standard input, and answer each with a line: stop N, start N (members, from 0),
    /// cut N, heal N (the network between a member and the others), drop (all connections), expire SESSION
    #[arg(long)]
    pub(crate) control: bool,
}

fn examples() -> String {
    [
        "Examples:",
        "  zk lock /locks/report -- ./nightly-report.sh",
        "  zk lock --try /locks/backup -- sh -c 'backup --fence \"$ZK_LOCK_TOKEN\"'",
        "  zk elect /elections/scheduler -- ./scheduler",
        "  zk holders /locks/report",
        "  zk ls -l /locks",
        "  zk demo",
        "  zk serve --port 2181",
    ]
    .join("\n")
}

fn short_after_help() -> String {
    format!("{}\n\n`zk --help` lists exit codes, `zk help COMMAND` explains a command.", examples())
}

fn long_after_help() -> String {
    let environment = [
        "Durations: 5 (seconds), 250ms, 1m30s.",
        "",
        "Environment:",
        "  ZK_SERVER  servers, for all commands but demo",
        "  ZK_AUTH    identity to prove, SCHEME:CREDENTIALS",
    ];
    format!("{}\n\n{}\n\n{}", examples(), environment.join("\n"), Exit::table())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
