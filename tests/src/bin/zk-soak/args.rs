//! What can be asked of the command.

use clap::{Parser, Subcommand};
use zk_tests::soak::{client, rolling, severed};

/// Soak tests of the locks and of the client on real servers: see docs/soak.md.
#[derive(Debug, Parser)]
#[command(name = "zk-soak")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// One object instead of a table.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Each exits with 1 if anything happened that should not.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Every recipe at once, while the members of an ensemble are killed one after the other.
    Rolling(rolling::Options),
    /// Holders on a member that is cut off from its leader, which gives their locks away.
    Severed(severed::Options),
    /// Reads, writes and watches of the client, while the members of an ensemble are killed and stopped.
    Client(client::Options),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guides_say_is_understood() {
        zk_tests::cli::understands::<Cli>(&[
            "rolling --seconds 120 --kills 20",
            "client --seconds 600 --tasks 64",
            "rolling --seconds 1200 --every 4 --sessions 4 --json",
        ]);
    }
}
