//! What `zk help` says beside the help of subcommands: overviews of those, and topics that several of them share.

use clap::{Args as _, Command as Cli, CommandFactory as _, Subcommand as _};

#[cfg(unix)]
use super::ServeSetup;
use super::{Args, ConnectArgs};
use crate::{commands::Command, exit::Exit};

/// Subcommands by what they are about, in the order of the overviews.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Locks", &["lock", "elect", "holders", "revoke", "evict", "top"]),
    (
        "Nodes",
        &[
            "ls",
            "get",
            "set",
            "create",
            "delete",
            "stat",
            "acl",
            "watch",
            "count",
            "ephemerals",
            "quota",
            "multi",
            "export",
            "import",
            "shell",
        ],
    ),
    ("Servers", &["health", "sessions", "config", "reconfig", "sync", "whoami"]),
    ("Without a server", &["demo", "serve"]),
    ("This program", &["completion", "help"]),
];

/// What `zk help` explains besides subcommands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Topic {
    /// Options of connections and security, environment, configuration file
    Connection,
    /// Exit codes
    ExitCodes,
    /// Commands under a lock: environment, signals, loss of the lock
    Jobs,
    /// Whose node names locks use
    Names,
    /// Options of `zk serve` for sessions, ensembles, security, latency
    #[cfg(unix)]
    Serving,
}

const EXAMPLES: &str = "\
Examples:
  zk lock /locks/report -- ./nightly-report.sh
  zk lock --try /locks/backup -- sh -c 'backup --fence \"$ZK_LOCK_TOKEN\"'
  zk elect /elections/scheduler -- ./scheduler
  zk holders /locks/report
  zk watch -R /config -- ./reload.sh
  zk serve --port 2181";

const HINTS: &str = "\
zk COMMAND -h     options of COMMAND; --help or `zk help COMMAND` for more
zk help TOPIC     connection, exit-codes, jobs, names, serving
zk COMMAND -v     log to standard error; -vv and -vvv for more";

/// Names only.
pub(crate) fn short_overview() -> String {
    let mut text = String::new();
    for (group, commands) in groups() {
        let names: Vec<_> = commands.iter().map(Cli::get_name).collect();
        // The longest line is that of the nodes' commands: two lines of a screen.
        for (index, names) in names.chunks(10).enumerate() {
            let group = if index == 0 { group } else { "" };
            text.push_str(&format!("{group:<18}{}\n", names.join(" ")));
        }
    }
    format!("{text}\n{EXAMPLES}\n\n{HINTS}")
}

/// A line for each subcommand.
pub(crate) fn long_overview() -> String {
    let mut text = String::new();
    for (group, commands) in groups() {
        text.push_str(&format!("{group}:\n"));
        for command in commands {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {:<12}{about}\n", command.get_name()));
        }
    }
    format!("{text}\n{EXAMPLES}\n\n{HINTS}")
}

/// All that are to be seen, in their groups. What is in none comes last, so that it is seen at all.
fn groups() -> Vec<(&'static str, Vec<Cli>)> {
    let all = Command::augment_subcommands(Cli::new("zk"));
    let mut visible: Vec<_> =
        all.get_subcommands().filter(|it| !it.is_hide_set()).cloned().collect();
    let mut groups: Vec<_> = GROUPS
        .iter()
        .map(|(group, names)| {
            let taken = names.iter().filter_map(|name| {
                let index = visible.iter().position(|it| it.get_name() == *name)?;
                Some(visible.remove(index))
            });
            (*group, taken.collect::<Vec<_>>())
        })
        .collect();
    if !visible.is_empty() {
        groups.push(("Other", visible));
    }
    groups
}

/// The command line for manual pages and completion: with the options that are hidden from screens, and without the
/// subcommands that are for programs.
pub(crate) fn public() -> Cli {
    let all = Args::command();
    let shown =
        |command: Cli| command.mut_args(|it| it.hide_short_help(false).hide_long_help(false));
    let subcommands = all.get_subcommands().filter(|it| !it.is_hide_set()).cloned().map(shown);
    let public = Cli::new("zk").version(env!("CARGO_PKG_VERSION")).subcommands(subcommands);
    let about = all.get_about().cloned().unwrap_or_default();
    shown(public.about(about).args(all.get_arguments().cloned()).subcommand_required(true))
        .disable_help_subcommand(true)
}

impl Topic {
    /// What there is to say about it.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Connection => connection(),
            Self::ExitCodes => Exit::table() + "\n",
            Self::Jobs => JOBS.to_owned(),
            Self::Names => NAMES.to_owned(),
            #[cfg(unix)]
            Self::Serving => {
                let options = options_of(ServeSetup::augment_args);
                format!("More options of `zk serve`:\n\n{options}\n{SERVING}")
            }
        }
    }
}

/// A list of options that the help of subcommands leaves out.
fn options_of(augment: impl FnOnce(Cli) -> Cli) -> String {
    augment(Cli::new("zk"))
        .mut_args(|arg| arg.hide_short_help(false).hide_long_help(false))
        .help_template("{options}")
        .disable_help_flag(true)
        .max_term_width(80)
        .render_help()
        .to_string()
}

/// The options that are not repeated in the help of each subcommand.
fn connection() -> String {
    let options = options_of(ConnectArgs::augment_args);
    format!("Options of all subcommands that connect to servers:\n\n{options}\n{CONFIGURATION}")
}

#[cfg(unix)]
const SERVING: &str = "\
Durations, also that of --tick: 5 (milliseconds), 2s, 1m30s.
";

const CONFIGURATION: &str = "\
Durations: 5 (seconds), 250ms, 1m30s.
Logs: -v, -vv, -vvv, or ZK_LOG=debug, ZK_LOG=zk_client=trace,zk_locks=info.

Options have precedence over the environment, and that over the profile. The
configuration file is $ZK_CONFIG, or ~/.config/zk/config.toml:
  [profile.staging]
  server = \"zk1:2181,zk2:2181/app\"
  session_timeout = \"20s\"
  connect_timeout = \"5s\"
  read_only = false
  security = { tls_ca = \"ca.pem\", auth_file = \"identity\" }
";

const JOBS: &str = "\
COMMAND of `zk lock` and `zk elect`.

Environment:
  ZK_LOCK_TOKEN  a number that grows with every grant. Have whatever the lock
                 protects remember the largest it has seen and refuse smaller
                 ones: then a holder that was stalled past the end of its lock
                 can do no harm.
  ZK_LOCK_PATH   the path of the lock's node

Loss: if the session expires, servers are out of reach for the session timeout,
or another client deletes the lock's node, COMMAND gets a SIGTERM, and a SIGKILL
if it has not ended after --grace. With --margin that happens before another
client can get the lock. If zk itself is killed, COMMAND is ended the same way,
within a third of the session timeout. With --lease connection any answer of a
server renews the lock, as with other clients; by default only what the leader
confirms does: a server that is cut off from it answers for some time after the
leader has given the lock to another client.

Signals: INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to COMMAND. Before it
runs, they end the wait, and no node is left in the queue. (A signal that was
being ignored when zk started stays ignored.) In the end zk waits until a server
has confirmed the release, for the session timeout at most; another signal ends
that wait, and the release then comes with the end of the session.

COMMAND runs in a process group of its own, and all of that is signalled. Only if
zk is in the foreground of a terminal does COMMAND stay in zk's group, so that
Ctrl-C, Ctrl-Z and reading from the terminal work as without zk. Then only
COMMAND's first process is signalled when the lock is lost; and INT and QUIT are
not passed on: the terminal sends them to both.

Exit codes: COMMAND's own; 123 if the lock was lost; see `zk help exit-codes`.
";

const NAMES: &str = "\
Names of the nodes of `zk lock` and `zk elect`. Libraries share a lock if they
use the same path and understand each other's names.

  --mode curator    Apache Curator's (default)
  --mode kazoo      kazoo's
  --mode go         go-zookeeper's
  --mode recipe     those of the recipes in ZooKeeper's distribution; no
                    read/write lock
  --mode host-type  host-R-N and host-W-N, with an id in the place of the host
  --mode bare       lock-N, read_N and write_N, without an id
  --mode custom     those of --names

  --names=NAME[,READ,WRITE]
                    what stands between id and number: for the exclusive lock,
                    for readers, for writers; in an election, for candidates
  --prefix=TEXT     what stands in front of the id
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_is_in_a_group() {
        let other = groups().into_iter().find(|(group, _)| *group == "Other");
        assert!(other.is_none(), "{other:?}");
    }

    #[test]
    fn topics_fit_a_screen() {
        for topic in <Topic as clap::ValueEnum>::value_variants() {
            let text = topic.text();
            assert!(text.lines().count() <= 60, "{topic:?}: {}", text.lines().count());
            for line in text.lines() {
                assert!(line.chars().count() <= 82, "{topic:?}: {line:?}");
            }
        }
    }
}
