//! Paths: checked once, at the boundary.
//!
//! Servers check the paths of writes but not of reads, and an empty path reads the root node; so a
//! client that does not check its own paths will sooner or later read the wrong node.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
};
use core::{fmt, ops::Deref, str::FromStr};

/// A valid absolute path of a node: `/`, or components between slashes without a slash at the end.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZkPath(String);

/// Whether the server will append a sequence number to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// The path is the node's name as it stands.
    Exact,
    /// Ten digits follow, so that the path may end in `/`, `.` or `..`.
    Sequential,
}

/// The error for an invalid path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid path {path:?}: {fault}")]
pub struct PathError {
    /// The path as given.
    pub path: String,
    /// The fault.
    pub fault: PathFault,
}

/// The ways in which a path can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathFault {
    /// It does not begin with `/`.
    #[error("it is not absolute")]
    NotAbsolute,
    /// It ends in `/`, or has two in a row.
    #[error("it has an empty component")]
    EmptyComponent,
    /// A component is `.` or `..`.
    #[error("it has a relative component")]
    RelativeComponent,
    /// A character that servers refuse.
    #[error("character {character:?} at byte {offset} is not allowed")]
    Character {
        /// The character.
        character: char,
        /// Where in the path it stands, in bytes.
        offset: usize,
    },
}

/// Checks a path as servers do for writes, so that reads get the same answer.
///
/// # Errors
/// [`PathError`] with the first fault.
pub fn check(path: &str, naming: Naming) -> Result<(), PathError> {
    if is_plain(path) {
        return Ok(());
    }
    match fault(path, naming) {
        None => Ok(()),
        Some(fault) => Err(PathError { path: path.to_owned(), fault }),
    }
}

/// Whether a path is valid at first glance, as nearly all are: one pass over its bytes, since every request pays for
/// it.
fn is_plain(path: &str) -> bool {
    let mut before = None;
    for byte in path.bytes() {
        let begins_well = match before {
            None => byte == b'/',
            Some(b'/') => !matches!(byte, b'/' | b'.'),
            Some(_) => true,
        };
        if !begins_well || !matches!(byte, b' '..=b'~') {
            return false;
        }
        before = Some(byte);
    }
    before.is_some_and(|last| last != b'/')
}

fn fault(path: &str, naming: Naming) -> Option<PathFault> {
    let Some(components) = path.strip_prefix('/') else {
        return Some(PathFault::NotAbsolute);
    };
    if let Some((offset, character)) = path.char_indices().find(|&(_, c)| is_refused(c)) {
        return Some(PathFault::Character { character, offset });
    }
    if components.is_empty() {
        return None;
    }
    let mut components = components.split('/').peekable();
    while let Some(component) = components.next() {
        let completed_by_digits = naming == Naming::Sequential && components.peek().is_none();
        match component {
            _ if completed_by_digits => {}
            "" => return Some(PathFault::EmptyComponent),
            "." | ".." => return Some(PathFault::RelativeComponent),
            _ => {}
        }
    }
    None
}

/// Control characters, the private area, the specials block, and everything outside the basic plane: servers check
/// UTF-16 units, and refuse surrogates.
const fn is_refused(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{E000}'..='\u{F8FF}' | '\u{FFF0}'..
    )
}

/// The parent's path; `None` for the root.
#[must_use]
pub fn parent(path: &str) -> Option<&str> {
    match path.rsplit_once('/')? {
        (_, "") => None,
        ("", _) => Some("/"),
        (parent, _) => Some(parent),
    }
}

/// The path itself and its ancestors, the root last.
pub fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    core::iter::successors(Some(path), |path| parent(path))
}

/// The last component; empty for the root.
#[must_use]
pub fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// `parent` and `name` with exactly one slash between them. Neither is checked.
#[must_use]
pub fn join(parent: &str, name: &str) -> String {
    let parent = parent.strip_suffix('/').unwrap_or(parent);
    let mut path = String::with_capacity(parent.len().saturating_add(name.len()).saturating_add(1));
    path.push_str(parent);
    path.push('/');
    path.push_str(name);
    path
}

/// Reads the number that a server appended to a sequential node's name.
///
/// It is a signed 32-bit counter printed as `%010d`: ten digits, or a sign with nine or ten digits once it has wrapped
/// (servers before 3.6). `None` if no counter prints as `suffix`, so that different suffixes are different numbers.
#[must_use]
pub fn parse_sequence(suffix: &str) -> Option<i32> {
    let digits = suffix.strip_prefix('-').unwrap_or(suffix);
    let len_is_right = match suffix.len() {
        10 => suffix != "-000000000",
        11 => digits.len() == 10 && !digits.starts_with('0'),
        _ => false,
    };
    let is_number = len_is_right && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| suffix.parse().ok()).flatten()
}

impl ZkPath {
    /// The root node.
    #[must_use]
    pub fn root() -> Self {
        Self("/".to_owned())
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parent; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        parent(&self.0).map(|parent| Self(parent.to_owned()))
    }

    /// The last component; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        name(&self.0)
    }

    /// A path below this one.
    ///
    /// # Errors
    /// [`PathError`] if `relative` is not one or more valid components.
    pub fn join(&self, relative: &str) -> Result<Self, PathError> {
        if relative.is_empty() {
            // Below the root, joining would give the root itself.
            return Err(PathError { path: relative.to_owned(), fault: PathFault::EmptyComponent });
        }
        join(&self.0, relative).parse()
    }
}

impl FromStr for ZkPath {
    type Err = PathError;
    fn from_str(path: &str) -> Result<Self, PathError> {
        check(path, Naming::Exact).map(|()| Self(path.to_string()))
    }
}

impl Deref for ZkPath {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ZkPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ZkPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn paths_are_judged_as_servers_judge_writes() {
        for path in ["/", "/a", "/a/b.c", "/a/...", "/\u{4E2D}", "/a b"] {
            assert_eq!(check(path, Naming::Exact), Ok(()), "{path:?}");
        }
        let refused = [
            ("", PathFault::NotAbsolute),
            ("a", PathFault::NotAbsolute),
            ("//", PathFault::EmptyComponent),
            ("/a/", PathFault::EmptyComponent),
            ("/a//b", PathFault::EmptyComponent),
            ("/.", PathFault::RelativeComponent),
            ("/a/../b", PathFault::RelativeComponent),
            ("/a\0", PathFault::Character { character: '\0', offset: 2 }),
            ("/\u{1F600}", PathFault::Character { character: '\u{1F600}', offset: 1 }),
            ("/\u{FFF0}", PathFault::Character { character: '\u{FFF0}', offset: 1 }),
        ];
        for (path, fault) in refused {
            assert_eq!(check(path, Naming::Exact).unwrap_err().fault, fault, "{path:?}");
        }
    }

    #[test]
    fn plain_paths_pass_the_full_check() {
        let ascii = || (0..=0x7F).map(char::from);
        let mut plain = 0;
        for (first, second) in ascii().flat_map(|first| ascii().map(move |second| (first, second)))
        {
            for path in [format!("/{first}{second}"), format!("{first}a{second}")] {
                if is_plain(&path) {
                    assert_eq!(fault(&path, Naming::Exact), None, "{path:?}");
                    plain += 1;
                }
            }
        }
        assert!(plain > 8_000, "most are: {plain}");
        assert!(!is_plain("") && !is_plain("/") && !is_plain("/\u{A0}"));
    }

    #[test]
    fn refused_characters_match_server_ranges() {
        let check = |character: char| check(&join("/", &character.to_string()), Naming::Exact);
        for allowed in [' ', '~', '\u{A0}', '\u{D7FF}', '\u{F900}', '\u{FFEF}'] {
            assert_eq!(check(allowed), Ok(()), "{allowed:?}");
        }
        for refused in [
            '\0',
            '\u{1}',
            '\u{1F}',
            '\u{7F}',
            '\u{9F}',
            '\u{E000}',
            '\u{F8FF}',
            '\u{FFF0}',
            '\u{FFFF}',
            '\u{1_0000}',
            char::MAX,
        ] {
            let fault = PathFault::Character { character: refused, offset: 1 };
            assert_eq!(check(refused).unwrap_err().fault, fault);
        }
    }

    #[test]
    fn sequential_path_ends_with_server_digits() {
        for path in ["/a/", "/.", "/a/.."] {
            assert_eq!(check(path, Naming::Sequential), Ok(()), "{path:?}");
        }
        assert!(check("/a//", Naming::Sequential).is_err());
    }

    #[test]
    fn parents_and_names_meet_at_the_last_slash() {
        assert_eq!((parent("/"), name("/")), (None, ""));
        assert_eq!((parent("/a"), name("/a")), (Some("/"), "a"));
        assert_eq!((parent("/a/b"), name("/a/b")), (Some("/a"), "b"));
        assert!(ancestors("/a/b").eq(["/a/b", "/a", "/"]));
        assert!(ancestors("/").eq(["/"]));
        assert_eq!(join("/", "a"), "/a");
        assert_eq!(join("/a", "b"), "/a/b");
    }

    #[test]
    fn joining_an_invalid_suffix_is_an_error() {
        let below: ZkPath = "/a".parse().unwrap();
        for path in [ZkPath::root(), below] {
            for relative in ["", "/", "/b", "b/", "."] {
                assert!(path.join(relative).is_err(), "{path} and {relative:?}");
            }
            assert_eq!(path.join("b/c").unwrap().name(), "c");
        }
    }

    #[test]
    fn sequence_number_is_ten_digits_or_signed() {
        for (suffix, number) in [
            ("0000000012", 12),
            ("2147483647", i32::MAX),
            ("-2147483648", i32::MIN),
            ("-000000001", -1),
        ] {
            assert_eq!(parse_sequence(suffix), Some(number), "{suffix:?}");
        }
        for suffix in [
            "",
            "12",
            "+000000001",
            "9999999999",
            "00000000012",
            "--00000001",
            "x000000001",
            "-000000000",
            "-0000000001",
        ] {
            assert_eq!(parse_sequence(suffix), None, "{suffix:?}");
        }
    }
}
