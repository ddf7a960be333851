//! Commands about servers, and about this program.

use std::time::Duration;

use clap::Args as ClapArgs;
use clap_complete::Shell;

use super::{ConnectArgs, OutputArgs};
use crate::duration;

/// Ask each server how it is
///
/// One line for each server of the connection string, asked by itself: what it is (leader, follower, alone),
/// how many transactions it is behind the leader, how fast it answers, and what it has to do. Asked by the
/// four-letter word srvr, which servers answer unless configured not to; over plain connections only.
///
/// Exits with 0 if all of them serve, and one of them leads or is alone; with 1 if not.
#[derive(Debug, ClapArgs)]
pub(crate) struct HealthArgs {
    /// How long a server may take to answer
    #[arg(long, value_name = "D", value_parser = duration::seconds, default_value = "5s")]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Print what makes a shell complete this command's arguments
///
/// For bash: zk completion bash > ~/.local/share/bash-completion/completions/zk
#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionArgs {
    /// For which shell
    pub(crate) shell: Shell,
}
