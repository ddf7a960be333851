//! Servers from Maven, one directory of jars per release line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::command::{CacheLock, run};
use super::distribution::{Jars, Source};
use super::locate::Locator;
use super::release::{Release, Wanted};

/// Embedded, so that the published crate has it too.
const POM: &str = include_str!("../../servers/pom.xml");

/// Some 7 MB over a slow line, and Maven's own plugins before that.
const FETCH_LIMIT: Duration = Duration::from_secs(600);

/// Looks for a line that was fetched before; for any line, the newest.
pub(super) fn cached(locator: &Locator, wanted: Wanted) -> Result<Jars, String> {
    lines(wanted)
        .iter()
        .rev()
        .find_map(|line| Jars::in_dir(&directory(locator, *line), Source::Maven).ok())
        .ok_or_else(|| format!("nothing suitable in {}", locator.cache.display()))
}

/// Fetches a line; for any line, the newest.
pub(super) fn fetch(locator: &Locator, wanted: Wanted) -> Result<Jars, String> {
    let mvn = locator.command("mvn").ok_or_else(|| String::from("mvn is not on the PATH"))?;
    let line =
        *lines(wanted).last().ok_or_else(|| format!("only {:?} can be fetched", Release::ALL))?;
    let target = directory(locator, line);
    let _lock = CacheLock::acquire(&locator.cache)?;
    // Another process may have fetched it while this one waited for the lock.
    if let Ok(jars) = Jars::in_dir(&target, Source::Maven) {
        return Ok(jars);
    }
    eprintln!("zk-testkit: fetching ZooKeeper {line} with Maven");
    let unfinished = tempfile::Builder::new()
        .prefix("fetching-")
        .tempdir_in(&locator.cache)
        .map_err(|error| format!("cannot write to {}: {error}", locator.cache.display()))?;
    let pom = unfinished.path().join("pom.xml");
    let jars = unfinished.path().join("jars");
    fs::write(&pom, POM).map_err(|error| format!("cannot write {}: {error}", pom.display()))?;
    let copy = |network: &[&str]| copy_dependencies(&mvn, network, line, &pom, &jars);
    copy(&["--offline"]).or_else(|_| copy(&[]))?;
    // Renaming last makes a directory of this name complete by definition.
    fs::rename(&jars, &target)
        .map_err(|error| format!("cannot create {}: {error}", target.display()))?;
    Jars::in_dir(&target, Source::Maven)
}

fn copy_dependencies(
    mvn: &Path,
    network: &[&str],
    line: Release,
    pom: &Path,
    jars: &Path,
) -> Result<(), String> {
    let mut output = std::ffi::OsString::from("-DoutputDirectory=");
    output.push(jars);
    let mut command = Command::new(mvn);
    command
        .args(["--quiet", "--batch-mode"])
        .args(network)
        .arg(format!("-P{line}"))
        .arg("-f")
        .arg(pom)
        .arg("dependency:copy-dependencies")
        .arg(output);
    run(command, FETCH_LIMIT)
}

fn lines(wanted: Wanted) -> Vec<Release> {
    Release::ALL
        .into_iter()
        .filter(|line| wanted == Wanted::Any || wanted == Wanted::Line(*line))
        .collect()
}

/// The name carries a digest of the pom, so that a newer testkit does not use an older server.
fn directory(locator: &Locator, line: Release) -> PathBuf {
    locator.cache.join(format!("{line}-{:016x}", digest(POM)))
}

/// FNV-1a: not secret, only stable from one build of this crate to the next.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
