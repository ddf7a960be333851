//! Commands for people in front of a terminal.

use std::time::Duration;

use clap::Args as ClapArgs;
use zk_client::path::ZkPath;

use super::{AskArgs, ConnectArgs};
use crate::duration;

/// Watch an ensemble, its locks and its nodes on a live screen
///
/// Above, the servers of the connection string: what each is, how fast it
/// answers, what it has to do; those that are down with the reason. Below, one
/// of three panes:
///
/// 1 locks    Locks, semaphores and elections below PATH, of any implementation:
///            the holder of each and since when, how many wait and how long; the
///            queue of the one under the cursor. HAND/S is how many contenders
///            have left the queue per second, by release or by giving up.
/// 2 tree     The nodes below PATH, read as they are opened, with their data.
/// 3 watches  What happens at the paths that are watched, and below.
///
/// Keys: ? lists them. r revokes a lock (asks its holder for it), e evicts a
/// contender, w watches a path; r and e name the contender, and wait for a y.
///
/// A session that is lost is replaced. Requests are bounded: of a large tree
/// 2 000 nodes are searched for locks every 15 seconds, 200 locks are followed,
/// of each queue 50 contenders are shown; what is left out is said.
#[derive(Debug, ClapArgs)]
#[command(verbatim_doc_comment)]
pub(crate) struct TopArgs {
    /// Where locks are looked for, and where the tree begins
    #[arg(default_value = "/")]
    pub(crate) path: ZkPath,
    /// How often servers are asked: 100ms to 1h
    #[arg(long, short, value_name = "D", value_parser = interval, default_value = "1s")]
    pub(crate) interval: Duration,
    /// Print one frame as text, after two rounds of questions, as if standard output were no terminal. Exits with
    /// 1 if a server does not serve, with 69 if there is no session
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) ask: AskArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Take commands at a prompt, in one session
///
/// The words are those of the command line, without zk in front: `ls -l /locks`,
/// `holders report`. Paths may be relative to a node that is entered with `cd`;
/// `.` and `..` are what they are elsewhere. Words are quoted as for a shell;
/// lines that begin with # are passed over.
///
/// Besides there are:
///   cd PATH    enter a node; without PATH, the root
///   pwd        print which one that is
///   exit       end the shell, as Ctrl-D does
///
/// Tab completes commands, options and paths of nodes. Lines are remembered in
/// zk/history below $XDG_STATE_HOME (~/.local/state), but for those that begin
/// with a space or name an identity. Ctrl-C gives up the line, or the command
/// that runs.
///
/// All commands share a session. One that is lost is replaced, with a message.
/// A line that names servers, or other options of the connection, has a session
/// of its own.
///
/// If standard input is no terminal, it is a script: the first command that fails
/// ends it, and its exit code is the shell's.
#[derive(Debug, ClapArgs)]
#[command(verbatim_doc_comment)]
pub(crate) struct ShellArgs {
    /// The node to begin in
    #[arg(default_value = "/")]
    pub(crate) path: ZkPath,
    /// Do not end a script at a command that fails. The exit code is that of the first one all the same
    #[arg(long, short)]
    pub(crate) keep_going: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration::seconds(text)?;
    let bounds = Duration::from_millis(100)..=Duration::from_secs(3600);
    bounds
        .contains(&interval)
        .then_some(interval)
        .ok_or_else(|| "not within 100ms to 1h".to_owned())
}
