//! Debian's own package of ZooKeeper.

use std::fs;
use std::path::{Path, PathBuf};

use super::distribution::{Jars, Source, jars_directly_in};
use super::locator::Locator;
use crate::release::{Version, Wanted};

/// Where Debian keeps the jars of all packages.
const DIRECTORY: &str = "/usr/share/java";

/// The one file that Debian's `zkServer.sh` puts on the class path; its manifest names the
/// others. A link beside it has the version in its name.
const SERVER_JAR: &str = "zookeeper.jar";

/// Any logging binding will do; without one the server runs, but its log stays empty.
const LOGGING_JAR: &str = "slf4j-simple.jar";

/// Looks for the package's files.
pub(super) fn installed(_: &Locator, _: Wanted) -> Result<Jars, String> {
    installed_in(Path::new(DIRECTORY))
}

fn installed_in(directory: &Path) -> Result<Jars, String> {
    let server = directory.join(SERVER_JAR);
    let unusable = |error| format!("{}: {error}", server.display());
    let real = fs::canonicalize(&server).map_err(unusable)?;
    let version = jars_directly_in(directory)
        .map_err(unusable)?
        .iter()
        .filter(|jar| fs::canonicalize(jar).is_ok_and(|jar| jar == real))
        .find_map(|jar| Version::of_jar(jar.file_name()?.to_str()?))
        .ok_or_else(|| format!("no link tells the version of {}", server.display()))?;
    let logging: PathBuf = directory.join(LOGGING_JAR);
    let mut files = vec![server];
    files.extend(Some(logging).filter(|jar| jar.exists()));
    Ok(Jars { version, source: Source::Debian, files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn version_is_read_from_the_server_jar_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        for file in [SERVER_JAR, "zookeeper-jute.jar"] {
            fs::write(path(file), b"").expect("a file");
        }
        let without = installed_in(directory.path()).expect_err("no link");
        assert!(without.contains("no link"), "{without}");
        symlink(SERVER_JAR, path("zookeeper-3.8.0.jar")).expect("a link");
        symlink("zookeeper-jute.jar", path("zookeeper-jute-3.8.0.jar")).expect("a link");
        let jars = installed_in(directory.path()).expect("jars");
        assert_eq!(jars.version.to_string(), "3.8.0");
        assert_eq!(jars.files, [path(SERVER_JAR)]);
    }
}
