use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::release::Version;

/// A ZooKeeper that can be started: a version, its class path and a Java to run it.
#[derive(Clone, Debug)]
pub struct Distribution {
    pub(super) jars: Jars,
    pub(super) java: PathBuf,
}

impl Distribution {
    /// The version found.
    pub fn version(&self) -> &Version {
        &self.jars.version
    }

    /// Where it was found.
    pub fn source(&self) -> Source {
        self.jars.source
    }

    /// The `java` command that will run it.
    pub fn java(&self) -> &Path {
        &self.java
    }

    /// The `-cp` argument. `settings` is a directory with logging configuration, searched first
    /// so that no distribution's own logging set-up wins.
    pub(super) fn class_path(&self, settings: &Path) -> OsString {
        let mut path = OsString::from(settings);
        for jar in &self.jars.files {
            path.push(":");
            path.push(jar);
        }
        path
    }
}

/// Where a [`Distribution`] came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A directory named by `ZK_TESTKIT_HOME` or [`Locator::homes`](super::Locator::homes).
    Home,
    /// Fetched by Maven, now or earlier.
    Maven,
    /// Debian's package.
    Debian,
}

/// The jar files of one ZooKeeper server.
#[derive(Clone, Debug)]
pub(super) struct Jars {
    pub(super) version: Version,
    pub(super) source: Source,
    pub(super) files: Vec<PathBuf>,
}

impl Jars {
    /// Reads a directory of jars, or an unpacked distribution that keeps them in `lib`.
    pub(super) fn in_dir(dir: &Path, source: Source) -> Result<Self, String> {
        let mut files = jars_directly_in(dir)
            .map_err(|error| format!("cannot read {}: {error}", dir.display()))?;
        // A bare directory of jars has no `lib`, and that is fine.
        files.extend(jars_directly_in(&dir.join("lib")).unwrap_or_default());
        let version = files
            .iter()
            .filter_map(|file| Version::of_jar(file.file_name()?.to_str()?))
            .max()
            .ok_or_else(|| format!("{} holds no zookeeper-<version>.jar", dir.display()))?;
        Ok(Self { version, source, files })
    }
}

pub(super) fn jars_directly_in(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut jars = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jar") {
            jars.push(path);
        }
    }
    // The class path, and with it every start, is the same each time.
    jars.sort();
    Ok(jars)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::Release;

    fn directory(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().expect("inside the directory")).expect("a directory");
            fs::write(path, b"").expect("a file");
        }
        dir
    }

    #[test]
    fn distribution_is_recognised_by_lib_jar() {
        let home = directory(&["bin/zkServer.sh", "lib/zookeeper-3.6.4.jar", "lib/slf4j.jar"]);
        let jars = Jars::in_dir(home.path(), Source::Home).expect("jars");
        assert_eq!(jars.version.release(), Release::V3_6);
        assert_eq!(jars.files.len(), 2);
    }

    #[test]
    fn directory_of_jars_is_a_distribution() {
        let home = directory(&["zookeeper-3.8.6.jar", "zookeeper-jute-3.8.6.jar"]);
        let jars = Jars::in_dir(home.path(), Source::Home).expect("jars");
        assert_eq!(jars.version.to_string(), "3.8.6");
    }

    #[test]
    fn missing_server_jar_is_named_in_the_error() {
        let home = directory(&["zookeeper-jute-3.8.6.jar"]);
        let why = Jars::in_dir(home.path(), Source::Home).expect_err("no server jar");
        assert!(why.contains("zookeeper-<version>.jar"), "{why}");
    }
}
