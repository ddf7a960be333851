//! Servers from Maven, one directory of jars per release line.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::command::{CacheLock, run};
use super::distribution::{Jars, Source};
use super::locator::Locator;
use crate::release::{Release, Wanted};

/// Embedded, so that the published crate has it too.
const POM: &str = include_str!("../../servers/pom.xml");

/// Halve the time of a run, most of which is the start of a JVM.
const JVM_OPTIONS: &str = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/// Some 7 MB over a slow line, and Maven's own plugins before that.
const FETCH_LIMIT: Duration = Duration::from_secs(600);

/// Looks for a line that was fetched before; for any line, only for the newest.
///
/// Otherwise "any" would depend on which test of a suite came first to an empty cache.
pub(super) fn cached(locator: &Locator, wanted: Wanted) -> Result<Jars, String> {
    Jars::in_dir(&directory(locator, line(wanted)), Source::Maven)
}

/// Fetches a line; for any line, the newest, or if that fails, the newest that was fetched before.
pub(super) fn fetch(locator: &Locator, wanted: Wanted) -> Result<Jars, String> {
    let cached = |line: &Release| cached(locator, Wanted::Line(*line)).ok();
    fetch_line(locator, line(wanted)).or_else(|why| match wanted {
        Wanted::Any => Release::ALL.iter().rev().find_map(cached).ok_or(why),
        Wanted::Line(_) => Err(why),
    })
}

fn line(wanted: Wanted) -> Release {
    match wanted {
        Wanted::Any => Release::NEWEST,
        Wanted::Line(line) => line,
    }
}

fn fetch_line(locator: &Locator, line: Release) -> Result<Jars, String> {
    let mvn = locator.command("mvn").ok_or_else(|| String::from("mvn is not on the PATH"))?;
    if !Release::ALL.contains(&line) {
        return Err(format!("only {:?} can be fetched", Release::ALL));
    }
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
    copy_dependencies(&mvn, line, &pom, &jars)?;
    // Renaming last makes a directory of this name complete by definition.
    fs::rename(&jars, &target)
        .map_err(|error| format!("cannot create {}: {error}", target.display()))?;
    Jars::in_dir(&target, Source::Maven)
}

/// Without the network too, as long as Maven's own repository has it all: the pom asks for fixed versions.
fn copy_dependencies(mvn: &Path, line: Release, pom: &Path, jars: &Path) -> Result<(), String> {
    let mut output = OsString::from("-DoutputDirectory=");
    output.push(jars);
    let mut command = Command::new(mvn);
    let options = env::var("MAVEN_OPTS").unwrap_or_default();
    command
        .env("MAVEN_OPTS", format!("{JVM_OPTIONS} {options}"))
        .args(["--quiet", "--batch-mode"])
        .arg(format!("-P{line}"))
        .arg("-f")
        .arg(pom)
        .arg("dependency:copy-dependencies")
        .arg(output);
    run(command, FETCH_LIMIT)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_prefers_the_newest_release_line() {
        let cache = tempfile::tempdir().expect("a directory");
        let locator = Locator::from_env().cache_dir(cache.path()).search_path("");
        let keep = |line: Release| {
            let directory = directory(&locator, line);
            fs::create_dir(&directory).expect("a directory");
            fs::write(directory.join(format!("zookeeper-{line}.0.jar")), b"").expect("a file");
        };
        keep(Release::V3_5);
        cached(&locator, Wanted::Any).expect_err("the newest is not there");
        let fallback = fetch(&locator, Wanted::Any).expect("without Maven, what there is");
        assert_eq!(fallback.version.release(), Release::V3_5);
        keep(Release::NEWEST);
        let newest = cached(&locator, Wanted::Any).expect("the newest is there");
        assert_eq!(newest.version.release(), Release::NEWEST);
    }
}
