//! The command line.
//!
//! | module | concern |
//! |---|---|
//! | `locks` | commands on locks and elections |
//! | `nodes` | commands on nodes |
//! | `servers` | commands that start a server |
//! | `others` | servers' health, completion |

mod locks;
mod nodes;
mod others;
mod servers;

use std::time::Duration;

use clap::{Args as ClapArgs, Parser};

pub(crate) use self::{
    locks::{ContenderArgs, HoldersArgs},
    nodes::{
        AclArgs, CreateArgs, DeleteArgs, ExportArgs, GetArgs, ImportArgs, LsArgs, MultiArgs,
        Operation, SetArgs, StatArgs,
    },
    others::{CompletionArgs, HealthArgs},
};
#[cfg(unix)]
pub(crate) use self::{
    locks::{ElectArgs, JobArgs, LockArgs},
    nodes::WatchArgs,
    servers::{DemoArgs, ServeArgs},
};
use crate::{commands::Command, duration, exit::Exit, security::SecurityArgs};

/// ZooKeeper, and locks on it, from the shell.
#[derive(Debug, Parser)]
#[command(name = "zk", version, after_help = short_after_help(), after_long_help = long_after_help())]
#[command(max_term_width = 80, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which servers, and how. What neither the command line nor the environment says, a profile can.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectArgs {
    /// Servers, with a chroot behind them if wished: host:port,host:port/path
    ///
    /// [default: 127.0.0.1:2181]
    #[arg(long, short, env = "ZK_SERVER", value_name = "HOST:PORT,…")]
    pub(crate) server: Option<String>,

    /// Session timeout to ask for: how long servers keep the session, and its locks, without hearing from it
    /// [default: 10s]
    #[arg(long, value_name = "D", value_parser = duration::seconds)]
    pub(crate) session_timeout: Option<Duration>,

    /// How long to try to get a session [default: 10s]
    #[arg(long, value_name = "D", value_parser = duration::seconds)]
    pub(crate) connect_timeout: Option<Duration>,

    /// Named settings of a connection, from the file that ZK_CONFIG names or from zk/config.toml among one's own
    /// configuration: see `zk help`
    #[arg(long, env = "ZK_PROFILE", value_name = "NAME")]
    pub(crate) profile: Option<String>,

    #[command(flatten)]
    pub(crate) security: SecurityArgs,
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
        "  ZK_SERVER         servers, for all commands but demo",
        "  ZK_AUTH           identity to prove, SCHEME:CREDENTIALS",
        "  ZK_SASL_PASSWORD  password of the user of --sasl-user",
        "  ZK_TLS_CA, ZK_TLS_CERT, ZK_TLS_KEY, ZK_SASL_USER, ZK_KERBEROS,",
        "  ZK_KERBEROS_SERVER, ZK_KERBEROS_CLIENT: as the options",
        "  ZK_PROFILE        settings to take from the configuration file",
        "  ZK_CONFIG         that file, instead of ~/.config/zk/config.toml",
        "",
        "Configuration file (options and environment have precedence):",
        "  [profile.staging]",
        "  server = \"zk1:2181,zk2:2181/app\"",
        "  session_timeout = \"20s\"",
        "  connect_timeout = \"5s\"",
        "  security = { tls_ca = \"ca.pem\", auth_file = \"identity\" }",
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
