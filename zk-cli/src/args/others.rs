//! Commands about servers, and about this program.

use std::{path::PathBuf, time::Duration};

use clap::Args as ClapArgs;
use clap_complete::Shell;
use zk_client::{SessionId, Zxid};

use super::{CommonArgs, ConnectArgs, OutputArgs, nodes::session_id};
use crate::duration;

/// Ask each server for its state
///
/// One line for each server of the connection string, asked by itself: what it is (leader, follower, standalone), how
/// many transactions it is behind the leader, its latency, and its load. Asked by the four-letter word srvr, over TLS
/// if connections are; with --admin by the admin server, which servers have since 3.5.
///
/// Exits with 0 if all of them serve, and one of them leads or is standalone; with 1 if not.
#[derive(Debug, ClapArgs)]
pub(crate) struct HealthArgs {
    #[command(flatten)]
    pub(crate) ask: AskArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// How servers are asked one by one.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct AskArgs {
    /// How long a server may take to answer
    #[arg(long, value_name = "D", value_parser = duration::seconds, default_value = "5s")]
    pub(crate) timeout: Duration,
    /// Ask the admin server, by HTTP on this port of each server [default: 8080]
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "8080")]
    pub(crate) admin: Option<u16>,
    /// Ask the admin server by HTTPS, as TLS is set up for connections
    #[arg(long, requires = "admin")]
    pub(crate) admin_tls: bool,
}

/// List sessions and the addresses of their clients
///
/// Each server of the connection string is asked for the connections that it has: by the four-letter word cons, which
/// servers since 3.5 answer only if it is in their 4lw.commands.whitelist, or with --admin by the admin server. A
/// session between two connections is on no list.
///
/// Exits with 1 if SESSION is not found, or, without SESSION, if a server does not answer.
#[derive(Debug, ClapArgs)]
pub(crate) struct SessionsArgs {
    /// Only this one, as `zk holders` and `zk stat` print it (0x…)
    #[arg(value_parser = session_id)]
    pub(crate) session: Option<SessionId>,
    #[command(flatten)]
    pub(crate) ask: AskArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Change the members of the ensemble
///
/// Needs servers of 3.5 or later with reconfigEnabled=true, and an identity that may write /zookeeper/config: by
/// default the super user only. Prints the new members. A member is ID=SPEC as in the servers' configuration:
/// 4=zk4:2888:3888:participant;2181, quoted for the shell.
#[derive(Debug, ClapArgs)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub(crate) struct ReconfigArgs {
    /// Add a member, or change it; repeatable
    #[arg(long, value_name = "ID=SPEC", group = "change", value_parser = member)]
    pub(crate) add: Vec<(i64, String)>,
    /// Remove a member; repeatable
    #[arg(long, value_name = "ID", group = "change")]
    pub(crate) remove: Vec<i64>,
    /// Replace all members by those of this file, a line each: server.ID=SPEC
    #[arg(long, value_name = "FILE", group = "change", conflicts_with_all = ["add", "remove"])]
    pub(crate) members: Option<PathBuf>,
    /// Only if this is the version now, as `zk config` prints it (0x…)
    #[arg(long, value_name = "VERSION", value_parser = version)]
    pub(crate) version: Option<Zxid>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// A member as `4=…`, or as `server.4=…` like in the servers' files.
pub(crate) fn member(text: &str) -> Result<(i64, String), String> {
    let text = text.trim();
    let member = text.strip_prefix("server.").unwrap_or(text);
    let parts = member.split_once('=').and_then(|(id, spec)| {
        let spec = spec.trim();
        Some((id.trim().parse().ok()?, (!spec.is_empty()).then(|| spec.to_owned())?))
    });
    parts.ok_or_else(|| format!("{text:?} is not ID=SPEC, such as 4=zk4:2888:3888;2181"))
}

fn version(text: &str) -> Result<Zxid, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map(Zxid).map_err(|_| format!("{text:?} is not a version, such as 0x100000000"))
}

/// Print a script that makes a shell complete arguments
///
/// For bash: zk completion bash > ~/.local/share/bash-completion/completions/zk
#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionArgs {
    /// For which shell
    pub(crate) shell: Shell,
}

/// Write a manual page for this command, and one for each of its subcommands
#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// Folder for the pages; created if missing
    pub(crate) dir: PathBuf,
}

/// Explain a subcommand, or a topic
#[derive(Debug, ClapArgs)]
pub(crate) struct HelpArgs {
    /// A subcommand; or connection, exit-codes, jobs, names, serving [default: list them]
    pub(crate) topic: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_as_in_servers_files() {
        let spec = "zk4:2888:3888:participant;2181";
        for text in
            [format!("4={spec}"), format!("server.4={spec}"), format!(" server.4 = {spec} ")]
        {
            assert_eq!(member(&text), Ok((4, spec.to_owned())));
        }
        for text in ["", "4", "4=", "four=x", "server.=x"] {
            assert!(member(text).is_err(), "{text:?}");
        }
        assert_eq!(version("0x100000000"), version("4294967296"));
        assert!(version("1000z").is_err());
    }
}
