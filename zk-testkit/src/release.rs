//! Releases: what was wanted, and what there is.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A line of ZooKeeper releases, such as 3.9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    major: u8,
    minor: u8,
}

impl Release {
    /// ZooKeeper 3.4: neither containers nor metadata in the reply to a create.
    pub const V3_4: Self = Self::new(3, 4);
    /// ZooKeeper 3.5: dynamic reconfiguration, containers, time to live.
    pub const V3_5: Self = Self::new(3, 5);
    /// ZooKeeper 3.6: persistent and recursive watches.
    pub const V3_6: Self = Self::new(3, 6);
    /// ZooKeeper 3.7: who-am-I, quotas that are enforced.
    pub const V3_7: Self = Self::new(3, 7);
    /// ZooKeeper 3.8.
    pub const V3_8: Self = Self::new(3, 8);
    /// ZooKeeper 3.9.
    pub const V3_9: Self = Self::new(3, 9);

    /// Every line that the embedded Maven project can fetch, oldest first.
    pub const ALL: [Self; 6] =
        [Self::V3_4, Self::V3_5, Self::V3_6, Self::V3_7, Self::V3_8, Self::V3_9];

    /// The newest of [`ALL`](Self::ALL).
    pub const NEWEST: Self = Self::V3_9;

    const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Debug for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Release({self})")
    }
}

/// A text is not the number of a release line or of a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a ZooKeeper release such as 3.9 or 3.9.3, found {found:?}")]
pub struct ReleaseError {
    found: String,
}

impl FromStr for Release {
    type Err = ReleaseError;

    /// Parses "3.9", and takes the line of a full version such as "3.9.3".
    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        let mut numbers = text.trim().splitn(3, '.');
        let mut number = || numbers.next().and_then(|n| n.parse().ok());
        match (number(), number()) {
            (Some(major), Some(minor)) => Ok(Self::new(major, minor)),
            _ => Err(ReleaseError { found: text.into() }),
        }
    }
}

/// The version of one distribution, such as 3.9.3.
///
/// Versions are ordered by release line and patch number.
#[derive(Clone, PartialEq, Eq)]
pub struct Version {
    release: Release,
    patch: u32,
    text: String,
}

impl Version {
    /// The line that the version belongs to.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Reads the version out of a file name such as `zookeeper-3.9.3.jar`.
    #[cfg(unix)]
    pub(crate) fn of_jar(file_name: &str) -> Option<Self> {
        file_name.strip_prefix("zookeeper-")?.strip_suffix(".jar")?.parse().ok()
    }
}

impl FromStr for Version {
    type Err = ReleaseError;

    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        let not_a_version = || ReleaseError { found: text.into() };
        let release = text.parse()?;
        let rest = text.splitn(3, '.').nth(2).ok_or_else(not_a_version)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (patch, suffix) = rest.split_at(digits);
        // "3.9.3-SNAPSHOT" is a version; "3.9.3.1" and "3.9.3tests" are not.
        if !(suffix.is_empty() || suffix.starts_with('-')) || suffix.ends_with("tests") {
            return Err(not_a_version());
        }
        Ok(Self { release, patch: patch.parse().map_err(|_| not_a_version())?, text: text.into() })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.release, self.patch, &self.text).cmp(&(other.release, other.patch, &other.text))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// Which release a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whatever can be had most cheaply; among equals the newest.
    ///
    /// The environment variable `ZK_TESTKIT_RELEASE` narrows it to one line.
    Any,
    /// Exactly this line.
    Line(Release),
}

impl Wanted {
    /// Whether a distribution of this version fulfils the wish.
    pub fn admits(self, version: &Version) -> bool {
        match self {
            Self::Any => true,
            Self::Line(release) => version.release() == release,
        }
    }
}

impl From<Release> for Wanted {
    fn from(release: Release) -> Self {
        Self::Line(release)
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("ZooKeeper"),
            Self::Line(release) => write!(f, "ZooKeeper {release}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jar_name_tells_version_and_line() {
        let version = Version::of_jar("zookeeper-3.9.3.jar").expect("a version");
        assert_eq!(version.release(), Release::V3_9);
        assert_eq!(version.to_string(), "3.9.3");
        let older: Version = "3.9.0-SNAPSHOT".parse().expect("a version");
        assert!(older < version);
    }

    #[test]
    fn only_the_server_jar_names_a_version() {
        for name in [
            "zookeeper-jute-3.9.3.jar",
            "zookeeper-3.9.3-tests.jar",
            "zookeeper-3.9.jar",
            "zookeeper.jar",
            "slf4j-api-1.7.36.jar",
        ] {
            assert_eq!(Version::of_jar(name), None, "{name}");
        }
    }

    #[test]
    fn two_digit_minors_sort_after_one_digit() {
        let ten: Release = "3.10".parse().expect("a release");
        assert!(ten > Release::V3_9);
        assert!("three".parse::<Release>().is_err());
    }
}
