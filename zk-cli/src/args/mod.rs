//! The command line.
//!
//! | module | concern |
//! |---|---|
//! | `locks` | commands on locks and elections |
//! | `nodes` | commands on nodes |
//! | `servers` | commands that start a server |
//! | `screens` | commands for people in front of a terminal |
//! | `others` | servers, and this program |
//! | `mistakes` | what is wrong with a command line |
//! | `help` | overviews, and topics that several subcommands share |

pub(crate) mod help;
mod locks;
mod mistakes;
mod nodes;
mod others;
#[cfg(unix)]
mod screens;
mod servers;

use std::time::Duration;

use clap::{Args as ClapArgs, Parser};
use zk_client::Lease;

#[cfg(target_os = "linux")]
pub(crate) use self::locks::LaunchArgs;
pub(crate) use self::{
    locks::{ContenderArgs, HoldersArgs},
    mistakes::{advised, is_help, mistake, unambiguous},
    nodes::{
        AclArgs, CountArgs, CreateArgs, DeleteArgs, EphemeralsArgs, ExportArgs, GetArgs,
        ImportArgs, Limit, LsArgs, MultiArgs, Operation, QuotaArgs, SetArgs, StatArgs, SyncArgs,
    },
    others::{
        AskArgs, CompletionArgs, HealthArgs, HelpArgs, ManArgs, ReconfigArgs, SessionsArgs, member,
    },
};
#[cfg(unix)]
pub(crate) use self::{
    locks::{ElectArgs, GuardArgs, JobArgs, LockArgs},
    nodes::WatchArgs,
    screens::{ShellArgs, TopArgs},
    servers::{DemoArgs, ServeArgs, ServeSetup},
};
use crate::{commands::Command, duration, security::SecurityArgs};

/// ZooKeeper, and locks on it, from the shell
#[derive(Debug, Parser)]
#[command(name = "zk", version, after_help = help::short_overview(), after_long_help = help::long_overview())]
#[command(help_template = "{about-with-newline}\n{usage-heading} {usage}{after-help}")]
#[command(max_term_width = 80, subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log to standard error; -vv and -vvv for more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    pub(crate) verbose: u8,
}

/// Which servers, and how. What neither the command line nor the environment says, a profile can.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Options of connections and security: zk help connection")]
pub(crate) struct ConnectArgs {
    /// Servers, and a chroot if wanted: zk1:2181,zk2:2181/app [default: 127.0.0.1:2181]
    #[arg(long, short, env = "ZK_SERVER", value_name = "HOST:PORT,…", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    pub(crate) server: Option<String>,

    /// How long servers keep the session and its locks without hearing from it [default: 10s]
    #[arg(long, value_name = "D", value_parser = duration::seconds)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    pub(crate) session_timeout: Option<Duration>,

    /// How long to try to get a session [default: 10s]
    #[arg(long, value_name = "D", value_parser = duration::seconds)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    pub(crate) connect_timeout: Option<Duration>,

    /// Accept a server without a quorum, too: reads may be stale then, and writes fail
    #[arg(long, hide_short_help = true, hide_long_help = true)]
    pub(crate) read_only: bool,

    /// Settings of this name from the configuration file
    #[arg(long, env = "ZK_PROFILE", value_name = "NAME", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    pub(crate) profile: Option<String>,

    #[command(flatten)]
    pub(crate) security: SecurityArgs,

    /// What renews the lease of what is held: an option of the commands that hold something.
    #[arg(skip)]
    pub(crate) lease: Lease,
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

#[cfg(test)]
mod tests;
