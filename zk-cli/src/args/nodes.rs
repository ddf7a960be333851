//! Commands on nodes.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args as ClapArgs, Parser};
use zk_client::{SessionId, path::ZkPath};

use super::{CommonArgs, ConnectArgs};
use crate::{
    acl::{self, Entry},
    duration,
};

/// List the children of a node
#[derive(Debug, ClapArgs)]
pub(crate) struct LsArgs {
    /// Also print version, children, bytes, last write, and owner session
    #[arg(short)]
    pub(crate) long: bool,
    /// List everything below the node, by full paths
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
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
    /// The new data; - for all of standard input; behind -- if it begins with a hyphen
    #[arg(required_unless_present = "file")]
    pub(crate) data: Option<OsString>,
    /// Take the new data from this file
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub(crate) file: Option<PathBuf>,
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
    /// Delete it when this command ends: it keeps running, until a signal
    #[arg(long, group = "life")]
    pub(crate) ephemeral: bool,
    /// Have the servers delete it some time after its last child
    #[arg(long, group = "life", conflicts_with = "sequential")]
    pub(crate) container: bool,
    /// Have the servers delete it when childless and unwritten for this long
    #[arg(long, group = "life", value_name = "D", value_parser = duration::seconds)]
    pub(crate) ttl: Option<Duration>,
    /// Create missing parents, too
    #[arg(long, short)]
    pub(crate) parents: bool,
    /// Who may do what with it, as for `zk acl`; repeatable [default: world:anyone:cdrwa]
    #[arg(long, value_parser = acl::typed, value_name = "ENTRY")]
    pub(crate) acl: Vec<Entry>,
    /// Take its data from this file
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub(crate) file: Option<PathBuf>,
    /// The node; with --sequential, its path up to the number
    pub(crate) path: String,
    /// Its data; - for all of standard input; behind -- if it begins with a hyphen
    pub(crate) data: Option<OsString>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Delete a node without children, or with everything below it
#[derive(Debug, ClapArgs)]
pub(crate) struct DeleteArgs {
    /// Delete everything below it first, one by one: not atomic
    #[arg(long, short, conflicts_with = "version")]
    pub(crate) recursive: bool,
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

/// Carry out several writes together, or none of them
///
/// Each line of FILE is one operation, in the words of this command line, quoted as for a shell. Empty lines,
/// and those that begin with #, are passed over:
///
///   check /jobs --version 3
///   create /jobs/7 '{"user": 12}'
///   set /jobs "next: 8" --version 3
///   delete /jobs/6
#[derive(Debug, ClapArgs)]
#[command(verbatim_doc_comment)]
pub(crate) struct MultiArgs {
    /// Where the operations are; - for standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// A line of such a file.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
pub(crate) enum Operation {
    /// Create a node
    Create {
        /// Append a number to the name that grows with every such node
        #[arg(long)]
        sequential: bool,
        /// To be deleted by the servers some time after its last child
        #[arg(long, conflicts_with = "sequential")]
        container: bool,
        /// The node; with --sequential, its path up to the number
        path: String,
        /// Its data; behind -- if it begins with a hyphen
        #[arg(default_value = "")]
        data: String,
    },
    /// Replace a node's data
    Set {
        /// Only if the data has this version now
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
        version: Option<i32>,
        /// The node
        path: String,
        /// The new data; behind -- if it begins with a hyphen
        data: String,
    },
    /// Delete a node without children
    Delete {
        /// Only if the data has this version now
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
        version: Option<i32>,
        /// The node
        path: String,
    },
    /// Do nothing, if the node is there
    Check {
        /// Only if the data has this version now
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
        version: Option<i32>,
        /// The node
        path: String,
    },
}

/// Show who may do what with a node, or say who may
///
/// Entries are SCHEME:ID:PERMISSIONS, the permissions being letters of cdrwa: create and delete children, read,
/// write, administer. Such as auth::cdrwa (the creator), world:anyone:r, digest:ann:HASH=:rw, ip:10.0.0.0/8:r.
#[derive(Debug, ClapArgs)]
pub(crate) struct AclArgs {
    /// Only if the list has this version now
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..), requires = "entries")]
    pub(crate) version: Option<i32>,
    /// Set the list of everything below the node, too
    #[arg(short = 'R', long, requires = "entries", conflicts_with = "version")]
    pub(crate) recursive: bool,
    /// The node
    pub(crate) path: ZkPath,
    /// The new list, all of it
    #[arg(value_name = "ENTRY", value_parser = acl::typed)]
    pub(crate) entries: Vec<Entry>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Print what happens to a node, or run a command when it does
///
/// A line for each change, and a line where changes may be missing, such as after the connection was lost. A signal ends it
/// and, without COMMAND, a line that has no reader. Servers before 3.6 do not report every change: of several in a row,
/// only the last one is certain to be printed.
///
/// COMMAND is run for each line, one after the other, with $ZK_WATCH_EVENT (watching, created, deleted, written,
/// children, resync), $ZK_WATCH_PATH and $ZK_WATCH_ZXID. If it fails, that is reported, and watching goes on.
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
pub(crate) struct WatchArgs {
    /// Also what happens to everything below it
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Print lines of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The node, which need not exist yet
    pub(crate) path: ZkPath,
    /// What to run for each change, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Count the nodes below a node
///
/// Servers before 3.6 do not count: there, all of the nodes are listed for it.
#[derive(Debug, ClapArgs)]
pub(crate) struct CountArgs {
    /// The node
    #[arg(default_value = "/")]
    pub(crate) path: ZkPath,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// List ephemeral nodes, and the sessions that they belong to
///
/// Every node below PATH is looked at. `zk sessions` tells which client has a session.
#[derive(Debug, ClapArgs)]
pub(crate) struct EphemeralsArgs {
    /// Only those of this session, as `zk holders` prints it (0x…)
    #[arg(long, value_name = "SESSION", value_parser = session_id)]
    pub(crate) session: Option<SessionId>,
    /// The node below which to look
    #[arg(default_value = "/")]
    pub(crate) path: ZkPath,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Show, set or delete limits on the nodes and bytes below a node
///
/// Without options it shows limits and use; without PATH, those of every node that has limits. Servers log it when a
/// limit is exceeded. Since 3.7, and if they are configured for it (enforceQuota), they refuse writes beyond hard
/// limits. A node above or below one with limits cannot have any, nor can the root.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("change").multiple(true).requires("path"))]
pub(crate) struct QuotaArgs {
    /// Limit the nodes, PATH itself included
    #[arg(long, value_name = "N", group = "change", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) nodes: Option<i64>,
    /// Limit the bytes of data
    #[arg(long, value_name = "N", group = "change", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) bytes: Option<i64>,
    /// Limit the nodes, and refuse more
    #[arg(long, value_name = "N", group = "change", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) hard_nodes: Option<i64>,
    /// Limit the bytes of data, and refuse more
    #[arg(long, value_name = "N", group = "change", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) hard_bytes: Option<i64>,
    /// Delete all limits of PATH, or one: --delete=hard-bytes
    #[arg(long, value_enum, value_name = "LIMIT", conflicts_with = "change", requires = "path")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    #[arg(hide_possible_values = true)]
    pub(crate) delete: Option<Limit>,
    /// The node
    pub(crate) path: Option<ZkPath>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Limits that can be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Limit {
    All,
    Nodes,
    Bytes,
    HardNodes,
    HardBytes,
}

/// Wait until the server has caught up with the leader
///
/// To see the state that servers agree on by now, and to check that there is a quorum: it fails without one.
#[derive(Debug, ClapArgs)]
pub(crate) struct SyncArgs {
    /// The node to be up to date; servers catch up with all of them
    #[arg(default_value = "/")]
    pub(crate) path: ZkPath,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// A session as servers, and we, print it.
pub(crate) fn session_id(text: &str) -> Result<SessionId, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let id = u64::from_str_radix(digits, 16);
    id.map(|id| SessionId(id as i64))
        .map_err(|_| format!("{text:?} is not a session in hexadecimal, such as 0x100c1e3f1a0000"))
}

/// Write a node and everything below it to a file
///
/// One line of JSON for each node, parents first: its path relative to the node, its data as text or in base64, and
/// with --acl its access control list. Ephemeral nodes are left out. Nodes are read one after the other: if they are
/// written meanwhile, the file is not a snapshot of one moment. If it fails, or a signal ends it, it leaves no file.
#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    /// With access control lists
    #[arg(long)]
    pub(crate) acl: bool,
    /// The node
    pub(crate) path: ZkPath,
    /// Where to write, which must not be there yet; - for standard output
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Create nodes from a file that `zk export` has written
///
/// All of the file is checked before anything is written. Then nodes are created, up to 64 at once: if one of these fails,
/// the others stay. Access control lists are set where the file has them.
#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// Replace the data of nodes that are there already, instead of stopping at them
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Where to put the top of what is in the file; what is missing above is created
    pub(crate) path: ZkPath,
    /// What to read; - for standard input
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
