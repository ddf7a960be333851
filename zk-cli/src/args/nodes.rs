//! Commands on nodes.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args as ClapArgs, Parser};
use zk_client::path::ZkPath;

use super::{CommonArgs, ConnectArgs};
use crate::{acl::Entry, duration};

/// List the children of a node
#[derive(Debug, ClapArgs)]
pub(crate) struct LsArgs {
    /// With version, number of children, bytes, time of the last write, and the session of ephemeral nodes
    #[arg(short)]
    pub(crate) long: bool,
    /// Everything below the node, by full paths
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

/// Delete a node without children, or with everything below it
#[derive(Debug, ClapArgs)]
pub(crate) struct DeleteArgs {
    /// Everything below it first: one by one, so that others see it half done, and it stays half done if it fails
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
        /// Its data
        #[arg(default_value = "", allow_hyphen_values = true)]
        data: String,
    },
    /// Replace a node's data
    Set {
        /// Only if the data has this version now
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
        version: Option<i32>,
        /// The node
        path: String,
        /// The new data
        #[arg(allow_hyphen_values = true)]
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
    /// The node
    pub(crate) path: ZkPath,
    /// The new list, all of it
    #[arg(value_name = "ENTRY")]
    pub(crate) entries: Vec<Entry>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Print what happens to a node, as it happens
///
/// A line for each change, until a signal ends it; and a line where changes may be missing, after the connection
/// was lost. Servers before 3.6 cannot do that.
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
pub(crate) struct WatchArgs {
    /// Also what happens to everything below it
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Print lines of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The node, which need not be there yet
    pub(crate) path: ZkPath,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Write a node and everything below it to a file
///
/// One line of JSON for each node, parents first: its path from there, its data as text or in base 64, and with
/// --acl who may do what. Ephemeral nodes are left out, as they belong to a session. Nodes are read one after the
/// other: the file is no picture of any one moment if nodes are written meanwhile.
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
/// All of the file is looked at before anything is written. Then nodes are created one by one: if that fails, those
/// before stay. Access control lists are set where the file has them.
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
