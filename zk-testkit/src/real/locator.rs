use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::distribution::{Distribution, Jars, Source};
use super::install::{self, Install};
use super::release::{Release, Wanted};
use super::{debian, maven};

/// Finds a ZooKeeper to run, and fetches one if there is none.
///
/// Places are tried in this order, and the first that fulfils the wish wins:
///
/// 1. the directories in `ZK_TESTKIT_HOME` (separated like `PATH`), each an unpacked ZooKeeper
///    distribution or a directory of jars;
/// 2. what Maven fetched earlier, kept in the cache directory ([`Wanted::Any`] is the newest line);
/// 3. Maven, if `mvn` is on the `PATH`: from its own repository first, then from the network (for
///    [`Wanted::Any`] an older line in the cache will do if that fails);
/// 4. Debian's package, if it is installed;
/// 5. if installing is allowed, this process is root's, and `apt-get` exists: Debian's package
///    for [`Wanted::Any`], otherwise Maven, followed by step 3.
///
/// Java is `JAVA_HOME`'s, else the one on the `PATH`, else installed under the terms of step 5.
///
/// [`from_env`](Self::from_env) reads these environment variables once:
///
/// | variable | meaning |
/// |---|---|
/// | `ZK_TESTKIT_HOME` | see 1 |
/// | `ZK_TESTKIT_RELEASE` | the line that [`Wanted::Any`] means, such as `3.6` |
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

/// One place to look: its name in error messages, and how to look there.
type Place = (&'static str, fn(&Locator, Wanted) -> Result<Jars, String>);

const PLACES: [Place; 4] = [
    ("Maven's cache", maven::cached),
    ("Maven", maven::fetch),
    ("Debian's package", debian::installed),
    ("installing", install::jars),
];

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
            release: env::var("ZK_TESTKIT_RELEASE").ok(),
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

    /// Finds a distribution that fulfils the wish.
    ///
    /// Blocks: for milliseconds if there is one, for up to some minutes if one has to be
    /// fetched. Processes that fetch at the same time wait for each other.
    ///
    /// # Errors
    ///
    /// [`LocateError`] lists every place and why it would not do. A home directory that was
    /// named but holds no ZooKeeper is an error even if another place has one.
    pub fn locate(&self, wanted: impl Into<Wanted>) -> Result<Distribution, LocateError> {
        let mut error = LocateError { wanted: wanted.into(), attempts: Vec::new() };
        match self.jars(&mut error) {
            Some(jars) => match install::java(self) {
                Ok(java) => Ok(Distribution { jars, java }),
                Err(why) => Err(error.and("Java", why)),
            },
            None => Err(error),
        }
    }

    fn jars(&self, error: &mut LocateError) -> Option<Jars> {
        if let Err(why) = self.narrow(&mut error.wanted) {
            error.note("ZK_TESTKIT_RELEASE", why);
            return None;
        }
        let wanted = error.wanted;
        for home in &self.homes {
            match Jars::in_dir(home, Source::Home) {
                Ok(jars) if wanted.admits(&jars.version) => return Some(jars),
                Ok(jars) => error
                    .note("ZK_TESTKIT_HOME", format!("{} holds {}", home.display(), jars.version)),
                Err(why) => {
                    error.note("ZK_TESTKIT_HOME", why);
                    return None;
                }
            }
        }
        if self.homes.is_empty() {
            error.note("ZK_TESTKIT_HOME", "names no directory".into());
        }
        for (place, look) in PLACES {
            match look(self, wanted) {
                Ok(jars) if wanted.admits(&jars.version) => return Some(jars),
                Ok(jars) => error.note(place, format!("has {}", jars.version)),
                Err(why) => error.note(place, why),
            }
        }
        None
    }

    /// Lets the environment say what "any" means, for instance in a build matrix.
    fn narrow(&self, wanted: &mut Wanted) -> Result<(), String> {
        match (&self.release, *wanted) {
            (Some(release), Wanted::Any) => {
                let line: Release = release.parse().map_err(|e| format!("{e}"))?;
                *wanted = Wanted::Line(line);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The first executable of this name on the search path.
    pub(super) fn command(&self, name: &str) -> Option<PathBuf> {
        env::split_paths(&self.path).map(|dir| dir.join(name)).find(|file| is_executable(file))
    }

    /// The same for programs that run systems, which need not be on everybody's search path.
    pub(super) fn system_command(&self, name: &str) -> Option<PathBuf> {
        let beside = || SYSTEM_DIRS.iter().map(|dir| Path::new(dir).join(name));
        self.command(name).or_else(|| beside().find(|file| is_executable(file)))
    }
}

pub(super) fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// No ZooKeeper could be found or fetched.
///
/// Its text lists every place that was tried, why it would not do, and what to install.
#[derive(Clone, Debug)]
pub struct LocateError {
    wanted: Wanted,
    attempts: Vec<Attempt>,
}

/// One place that was tried in vain.
#[derive(Clone, Debug)]
pub struct Attempt {
    place: &'static str,
    why: String,
}

impl Attempt {
    /// The name of the place.
    pub fn place(&self) -> &str {
        self.place
    }

    /// Why it would not do.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl LocateError {
    /// What was asked for.
    pub fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// The places that were tried, in order.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    fn note(&mut self, place: &'static str, why: String) {
        self.attempts.push(Attempt { place, why });
    }

    fn and(mut self, place: &'static str, why: String) -> Self {
        self.note(place, why);
        self
    }
}

impl std::error::Error for LocateError {}

impl fmt::Display for LocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no {} that could be started:", self.wanted)?;
        for Attempt { place, why } in &self.attempts {
            writeln!(f, "  {place}: {why}")?;
        }
        f.write_str(
            "install Maven and a Java runtime (any release line), or Debian's zookeeper package, \
             or set ZK_TESTKIT_HOME to an unpacked ZooKeeper distribution, \
             or allow installing by ZK_TESTKIT_INSTALL=1 as root on Debian",
        )
    }
}
