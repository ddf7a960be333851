//! Installing packages, where that has been allowed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::command::{CacheLock, run};
use super::distribution::Jars;
use super::locator::{Install, Locator, is_executable};
use super::{debian, maven};
use crate::release::Wanted;

/// Some hundred megabytes over a slow line.
const APT_LIMIT: Duration = Duration::from_secs(1_200);

const JAVA_PACKAGE: &str = "default-jre-headless";

/// The package that holds the server's jars. (`zookeeper` adds only scripts, and a Java runtime
/// with a desktop.)
const ZOOKEEPER_PACKAGE: &str = "libzookeeper-java";

/// Installs what `wanted` needs, then looks again.
pub(super) fn jars(locator: &Locator, wanted: Wanted) -> Result<Jars, String> {
    let mvn = || locator.command("mvn").ok_or("mvn is not on the PATH");
    match wanted {
        Wanted::Any => {
            apt(locator, &[ZOOKEEPER_PACKAGE, JAVA_PACKAGE], || debian::installed(locator, wanted))
        }
        Wanted::Line(_) if mvn().is_ok() => {
            Err("Maven is there, so nothing is left to install".into())
        }
        Wanted::Line(_) => {
            apt(locator, &["maven", JAVA_PACKAGE], || Ok(mvn()?))?;
            maven::fetch(locator, wanted)
        }
    }
}

/// `JAVA_HOME`'s Java, else the one on the search path, else an installed one.
pub(super) fn java(locator: &Locator) -> Result<PathBuf, String> {
    if let Some(home) = &locator.java_home {
        let java = home.join("bin/java");
        return if is_executable(&java) {
            Ok(java)
        } else {
            Err(format!("JAVA_HOME is set, but {} is no program", java.display()))
        };
    }
    let on_path = || {
        let missing = "java is not on the PATH, and JAVA_HOME is not set";
        locator.command("java").ok_or_else(|| String::from(missing))
    };
    on_path().or_else(|missing| {
        apt(locator, &[JAVA_PACKAGE], on_path).map_err(|why| format!("{missing}; {why}"))
    })
}

/// The programs of these names, installed with these packages if one of them is missing.
pub(super) fn programs<const N: usize>(
    locator: &Locator,
    names: [&str; N],
    packages: &[&str],
) -> Result<[PathBuf; N], String> {
    let look = || {
        let found = names.map(|name| locator.system_command(name).ok_or(name));
        let missing: Vec<&str> =
            found.iter().filter_map(|found| found.as_ref().err().copied()).collect();
        if missing.is_empty() {
            Ok(found.map(|found| found.unwrap_or_default()))
        } else {
            Err(format!("{} not found", missing.join(", ")))
        }
    };
    look().or_else(|missing| {
        apt(locator, packages, look)
            .map_err(|why| format!("{missing}; install {} ({why})", packages.join(" ")))
    })
}

/// Installs packages, unless `look` finds what they bring; another process may have installed
/// them while this one waited for its turn.
fn apt<T>(
    locator: &Locator,
    packages: &[&str],
    look: impl Fn() -> Result<T, String>,
) -> Result<T, String> {
    if locator.install == Install::Forbidden {
        return Err("not allowed (ZK_TESTKIT_INSTALL=1 allows it)".into());
    }
    if !rustix::process::geteuid().is_root() {
        return Err("only root can install packages".into());
    }
    let apt_get =
        locator.command("apt-get").ok_or_else(|| String::from("apt-get is not on the PATH"))?;
    let _lock = CacheLock::acquire(&locator.cache)?;
    if let Ok(found) = look() {
        return Ok(found);
    }
    eprintln!("zk-testkit: installing {} with apt-get", packages.join(" "));
    run(apt_command(&apt_get, &["update"]), APT_LIMIT)?;
    let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
    run(apt_command(&apt_get, &install), APT_LIMIT)?;
    look()
}

fn apt_command(apt_get: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(apt_get);
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        // Wait for another apt instead of failing.
        .args(["-q", "-o", "DPkg::Lock::Timeout=600"])
        .args(arguments);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_names_its_package() {
        let locator = Locator::from_env().install(Install::Forbidden);
        let why = programs(&locator, ["sh", "no-such-program"], &["some-package"]).unwrap_err();
        for part in ["no-such-program not found", "install some-package", "ZK_TESTKIT_INSTALL=1"] {
            assert!(why.contains(part), "{why}");
        }
    }
}
