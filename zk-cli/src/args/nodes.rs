//! Commands on nodes.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args as ClapArgs, Parser};
use zk_client::ZkPath;

use super::CommonArgs;
use crate::duration;

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
