use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write as _};

use super::distribution::Distribution;

/// Notes a server in the file named by `ZK_TESTKIT_LOG`, if that is set: a line for each, so that a
/// run of tests can say afterwards against what it has run.
///
/// Many processes append to the file at once; a line is short enough to be written as one.
pub(super) fn note(distribution: &Distribution) -> io::Result<()> {
    let Some(file) = env::var_os("ZK_TESTKIT_LOG").filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    let who = env::current_exe()?;
    let who = who.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo puts a hash behind the names of test binaries.
    let who = who.rsplit_once('-').map_or(&*who, |(name, _)| name);
    let (version, source) = (distribution.version(), distribution.source());
    let line = format!("{who}: ZooKeeper {version} ({source:?})\n");
    OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
}
