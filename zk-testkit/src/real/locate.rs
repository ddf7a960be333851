//! In which order places are tried; the error that lists them.

use std::fmt;

use super::distribution::{Distribution, Jars, Source};
use super::install;
use super::locator::Locator;
use super::{debian, maven};
use crate::release::{Release, Wanted};

/// One place to look: its name in error messages, and how to look there.
type Place = (&'static str, fn(&Locator, Wanted) -> Result<Jars, String>);

const PLACES: [Place; 4] = [
    ("Maven's cache", maven::cached),
    ("Maven", maven::fetch),
    ("Debian's package", debian::installed),
    ("installing", install::jars),
];

impl Locator {
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
