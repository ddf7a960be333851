//! Debian's own package of ZooKeeper.

use std::fs;
use std::path::{Path, PathBuf};

use super::distribution::{Jars, Source};
use super::locate::Locator;
use super::release::{Version, Wanted};

/// The one file that Debian's `zkServer.sh` puts on the class path; its manifest names the
/// others. It is a link to a file whose name tells the version.
const SERVER_JAR: &str = "/usr/share/java/zookeeper.jar";

/// Any logging binding will do; without one the server runs, but its log stays empty.
const LOGGING_JAR: &str = "/usr/share/java/slf4j-simple.jar";

/// Looks for the package's files.
pub(super) fn installed(_: &Locator, _: Wanted) -> Result<Jars, String> {
    let server = Path::new(SERVER_JAR);
    let real = fs::canonicalize(server).map_err(|error| format!("{SERVER_JAR}: {error}"))?;
    let version = real
        .file_name()
        .and_then(|name| Version::of_jar(name.to_str()?))
        .ok_or_else(|| format!("{} does not tell its version", real.display()))?;
    let mut files = vec![server.to_owned()];
    files.extend(Some(PathBuf::from(LOGGING_JAR)).filter(|jar| jar.exists()));
    Ok(Jars { version, source: Source::Debian, files })
}
