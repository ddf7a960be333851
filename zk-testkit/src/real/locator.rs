//! Where to look for a ZooKeeper, and what may be done to get one.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Whether the [`Locator`] may install packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// Only look for what is there, and let Maven fetch jars.
    Forbidden,
    /// Install what is missing, if this process is root's and `apt-get` exists.
    Allowed,
}

/// Finds a ZooKeeper to run, and fetches one if there is none.
///
/// Places are tried in this order, and the first that fulfils the wish wins:
///
/// 1. the directories in `ZK_TESTKIT_HOME` (separated like `PATH`), each an unpacked ZooKeeper
///    distribution or a directory of jars;
/// 2. what Maven fetched earlier, kept in the cache directory ([`Wanted::Any`](super::Wanted::Any) is the newest line);
/// 3. Maven, if `mvn` is on the `PATH`: from its own repository, and what is missing there from the network (for
///    [`Wanted::Any`](super::Wanted::Any) an older line in the cache will do if that fails);
/// 4. Debian's package, if it is installed;
/// 5. if installing is allowed, this process is root's, and `apt-get` exists: Debian's package
///    for [`Wanted::Any`](super::Wanted::Any), otherwise Maven, followed by step 3.
///
/// Java is `JAVA_HOME`'s, else the one on the `PATH`, else installed under the terms of step 5.
///
/// [`from_env`](Self::from_env) reads these environment variables once:
///
/// | variable | meaning |
/// |---|---|
/// | `ZK_TESTKIT_HOME` | see 1 |
/// | `ZK_TESTKIT_RELEASE` | the line that [`Wanted::Any`](super::Wanted::Any) means, such as `3.6` |
/// | `ZK_TESTKIT_CACHE` | cache directory; default `zk-testkit` in `XDG_CACHE_HOME` or `~/.cache` |
/// | `ZK_TESTKIT_INSTALL` | `1` allows installing packages |
/// | `JAVA_HOME`, `PATH` | as usual |
#[derive(Clone, Debug)]
pub struct Locator {
    pub(super) homes: Vec<PathBuf>,
    pub(super) release: Option<String>,
    pub(super) cache: PathBuf,
    pub(super) install: Install,
    pub(super) java_home: Option<PathBuf>,
    pub(super) path: OsString,
}

/// Where programs are that run systems.
const SYSTEM_DIRS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

impl Locator {
    /// A locator with the settings of the environment.
    pub fn from_env() -> Self {
        let dir = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let homes = dir("ZK_TESTKIT_HOME")
            .map(|homes| env::split_paths(&homes).collect())
            .unwrap_or_default();
        let cache = dir("ZK_TESTKIT_CACHE").map(PathBuf::from).or_else(|| {
            let home = || dir("HOME").map(|home| Path::new(&home).join(".cache"));
            let base = dir("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
            Some(base.join("zk-testkit"))
        });
        let install = match env::var("ZK_TESTKIT_INSTALL").as_deref() {
            Ok("1") => Install::Allowed,
            _ => Install::Forbidden,
        };
        Self {
            homes,
            release: env::var("ZK_TESTKIT_RELEASE").ok().filter(|release| !release.is_empty()),
            cache: cache.unwrap_or_else(|| env::temp_dir().join("zk-testkit")),
            install,
            java_home: dir("JAVA_HOME").map(PathBuf::from),
            path: env::var_os("PATH").unwrap_or_default(),
        }
    }

    /// Looks first in these directories, instead of those in `ZK_TESTKIT_HOME`.
    #[must_use]
    pub fn homes<P: Into<PathBuf>>(mut self, dirs: impl IntoIterator<Item = P>) -> Self {
        self.homes = dirs.into_iter().map(Into::into).collect();
        self
    }

    /// Uses another cache directory.
    #[must_use]
    pub fn cache_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cache = dir.into();
        self
    }

    /// The cache directory, for what else tests want to fetch only once. It need not exist yet.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Allows or forbids installing packages.
    #[must_use]
    pub fn install(mut self, install: Install) -> Self {
        self.install = install;
        self
    }

    /// Uses another list of directories, separated like `PATH`, to look for commands in.
    #[must_use]
    pub fn search_path(mut self, path: impl Into<OsString>) -> Self {
        self.path = path.into();
        self
    }

    /// The first executable of this name on the search path.
    pub(super) fn command(&self, name: &str) -> Option<PathBuf> {
        env::split_paths(&self.path).map(|dir| dir.join(name)).find(|file| is_executable(file))
    }

    /// The same for programs that run systems, which need not be on every user's search path.
    pub(super) fn system_command(&self, name: &str) -> Option<PathBuf> {
        let beside = || SYSTEM_DIRS.iter().map(|dir| Path::new(dir).join(name));
        self.command(name).or_else(|| beside().find(|file| is_executable(file)))
    }
}

pub(super) fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
