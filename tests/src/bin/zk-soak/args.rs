//! What can be asked of the command.

use clap::{Parser, Subcommand};
use zk_tests::{
    interop::Contend,
    soak::{client, judges, partitions, rolling, severed},
};

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
    /// Every recipe, reads and writes, while the network between the members of an ensemble breaks, and everything else
    /// does. As root: it makes namespaces for the network, which end with it.
    Partitions(partitions::Options),
    /// Histories that can have happened, and some that cannot, before our judge and before porcupine. Needs Go.
    Judges(judges::Options),
    /// A process that contends: what `partitions` starts for each implementation.
    #[command(hide = true)]
    Contend(Contend),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guides_say_is_understood() {
        zk_tests::cli::understands::<Cli>(&[
            "rolling --seconds 120 --kills 20",
            "client --seconds 600 --tasks 64",
            "partitions --members 5 --seconds 3600 --faults 500",
            "partitions --only minority,full-disk --no-others --seconds 60",
            "judges --histories 10000 --wrong 1000",
            "rolling --seconds 1200 --every 4 --sessions 4 --json",
        ]);
    }
}
