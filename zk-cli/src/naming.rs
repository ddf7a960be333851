//! Whose names nodes have, as far as the command line says.

use clap::Args as ClapArgs;
use zk_locks::{Layout, Names};

use crate::exit::{Exit, Failure};

/// Whose names the nodes have, of all who share a lock.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct NamingArgs {
    /// The library whose node names to use, so that its users share the lock
    #[arg(long, value_enum, value_name = "LIBRARY", default_value_t, hide_short_help = true)]
    #[arg(hide_possible_values = true, hide_long_help = true)]
    mode: Mode,

    /// With --mode custom: what stands between id and number in the names of nodes for the exclusive lock, for
    /// readers and for writers; in an election, for candidates
    #[arg(long, value_name = "NAME[,READ,WRITE]", value_delimiter = ',', value_parser = marker)]
    #[arg(require_equals = true, hide_short_help = true, hide_long_help = true)]
    #[arg(required_if_eq("mode", "custom"))]
    names: Vec<String>,

    /// With --mode custom: what stands in front of the id
    #[arg(long, value_name = "TEXT", value_parser = marker, requires = "names", require_equals = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    prefix: Option<String>,
}

/// Whose names a lock's nodes have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    /// Apache Curator's
    #[default]
    Curator,
    /// kazoo's
    Kazoo,
    /// go-zookeeper's
    Go,
    /// those of the recipes in ZooKeeper's distribution; no read/write lock
    Recipe,
    /// host-R-N and host-W-N, with an id in the place of the host
    HostType,
    /// lock-N, read_N and write_N, without an id
    Bare,
    /// those that --names tells
    Custom,
}

/// A part of a node's name.
fn marker(text: &str) -> Result<String, &'static str> {
    match text {
        "" => Err("a name has at least one character"),
        text if text.contains('/') => Err("a name has no slashes"),
        text => Ok(text.to_owned()),
    }
}

impl NamingArgs {
    /// The names for a lock, or for both sides of one.
    pub(crate) fn of_lock(&self) -> Result<Layout, Failure> {
        self.layout(|names| match names {
            [lock] => Some(Names::new(lock)),
            [lock, read, write] if read != write => Some(Names::new(lock).read_write(read, write)),
            _ => None,
        })
    }

    /// The names for candidates.
    pub(crate) fn of_election(&self) -> Result<Layout, Failure> {
        self.layout(|names| match names {
            [lead] => Some(Names::new(lead).lead(lead)),
            _ => None,
        })
    }

    fn layout(&self, custom: impl Fn(&[&'static str]) -> Option<Names>) -> Result<Layout, Failure> {
        let layout = match self.mode {
            Mode::Curator => Layout::Curator,
            Mode::Kazoo => Layout::Kazoo,
            Mode::Go => Layout::Go,
            Mode::Recipe => Layout::Recipe,
            Mode::HostType => Layout::HostType,
            Mode::Bare => Layout::Bare,
            Mode::Custom => {
                // For as long as the command runs.
                let kept = |text: &String| -> &'static str { text.clone().leak() };
                let names: Vec<_> = self.names.iter().map(kept).collect();
                let names = custom(&names).ok_or_else(|| {
                    let text = "--names: one name; for a lock perhaps two more, which differ";
                    Failure::new(Exit::Usage, text)
                })?;
                return Ok(Layout::Custom(names.prefix(self.prefix.as_ref().map_or("", kept))));
            }
        };
        match self.names.is_empty() {
            true => Ok(layout),
            false => Err(Failure::new(Exit::Usage, "--names goes with --mode custom")),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        naming: NamingArgs,
    }

    fn parsed(line: &str) -> Option<NamingArgs> {
        let words = line.split_whitespace();
        Line::try_parse_from(["zk"].into_iter().chain(words)).ok().map(|line| line.naming)
    }

    #[test]
    fn custom_names_fit_locks_and_elections() {
        let lock = |line| parsed(line)?.of_lock().ok();
        let election = |line| parsed(line)?.of_election().ok();
        let own = Names::new("-a-");
        assert_eq!(lock("--mode custom --names=-a-"), Some(Layout::Custom(own)));
        assert_eq!(
            lock("--mode custom --names=-a-,-r-,-w- --prefix=p-"),
            Some(Layout::Custom(own.read_write("-r-", "-w-").prefix("p-")))
        );
        assert_eq!(election("--mode custom --names=-a-"), Some(Layout::Custom(own.lead("-a-"))));
        assert_eq!(election("--mode kazoo"), Some(Layout::Kazoo));
        assert_eq!(lock("--mode host-type"), Some(Layout::HostType));
        assert_eq!(election("--mode custom --names=-a-,-r-,-w-"), None);
    }

    #[test]
    fn names_that_make_no_sense_are_refused() {
        for line in [
            "--mode custom",
            "--names=-a-",
            "--mode go --names=-a-",
            "--prefix=p-",
            // What follows is a mistyped option as likely as a name.
            "--mode custom --names -a-",
            "--mode custom --names=-a-,-b-",
            "--mode custom --names=-a-,-b-,-b-",
            "--mode custom --names=,",
            "--mode custom --names=a/b",
        ] {
            assert!(parsed(line).is_none_or(|naming| naming.of_lock().is_err()), "{line}");
        }
    }
}
