//! Installing packages, where that has been allowed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::command::{CacheLock, run};
use super::distribution::Jars;
use super::locate::{Locator, is_executable};
use super::release::Wanted;
use super::{debian, maven};

/// Some hundred megabytes over a slow line.
const APT_LIMIT: Duration = Duration::from_secs(1_200);

const JAVA_PACKAGE: &str = "default-jre-headless";

/// The package that holds the server's jars. (`zookeeper` adds only scripts, and a Java runtime
/// with a desktop.)
const ZOOKEEPER_PACKAGE: &str = "libzookeeper-java";

/// Whether the [`Locator`] may install packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// Only look for what is there, and let Maven fetch jars.
    Forbidden,
    /// Install what is missing, if this process is root's and `apt-get` exists.
    Allowed,
}

/// Installs what `wanted` needs, then looks again.
pub(super) fn jars(locator: &Locator, wanted: Wanted) -> Result<Jars, String> {
    match wanted {
        Wanted::Any => {
            apt(locator, &[ZOOKEEPER_PACKAGE, JAVA_PACKAGE])?;
            debian::installed(locator, wanted)
        }
        Wanted::Line(_) if locator.command("mvn").is_some() => {
            Err("Maven is there, so nothing is left to install".into())
        }
        Wanted::Line(_) => {
            apt(locator, &["maven", JAVA_PACKAGE])?;
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
    let on_path = || locator.command("java");
    let missing = || String::from("java is not on the PATH, and JAVA_HOME is not set");
    if let Some(java) = on_path() {
        return Ok(java);
    }
    apt(locator, &[JAVA_PACKAGE]).map_err(|why| format!("{}; {why}", missing()))?;
    on_path().ok_or_else(missing)
}

fn apt(locator: &Locator, packages: &[&str]) -> Result<(), String> {
    if locator.install == Install::Forbidden {
        return Err("not allowed (ZK_TESTKIT_INSTALL=1 allows it)".into());
    }
    if !rustix::process::geteuid().is_root() {
        return Err("only root can install packages".into());
    }
    let apt_get =
        locator.command("apt-get").ok_or_else(|| String::from("apt-get is not on the PATH"))?;
    let _lock = CacheLock::acquire(&locator.cache)?;
    eprintln!("zk-testkit: installing {} with apt-get", packages.join(" "));
    run(apt_command(&apt_get, &["update"]), APT_LIMIT)?;
    let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
    run(apt_command(&apt_get, &install), APT_LIMIT)
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
