//! Paths that servers accept, and paths that they refuse.

use alloc::{
    format,
    string::{String, ToString},
};

use proptest::{
    arbitrary::any,
    collection::vec,
    prop_oneof,
    sample::{Index, select},
    strategy::{Just, Strategy},
};

use crate::{
    path::{PathFault, ZkPath},
    strategy::record::arbitrary,
};

/// A valid path of up to four components; sometimes the root.
pub fn path() -> impl Strategy<Value = ZkPath> {
    let join = |path: ZkPath, name: String| path.join(&name).unwrap_or(path);
    vec(component(), 0..=4).prop_map(move |names| names.into_iter().fold(ZkPath::root(), join))
}

/// A valid name of a node: short words, names of lock nodes, dots that are not relative, other scripts.
pub fn component() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z0-9_.-]{1,12}",
        1 => "(_c_[0-9a-f]{8}-)?lock-[0-9]{10}",
        1 => select(&["zookeeper", "config", "quota", "...", ".hidden", "a b"]).prop_map(String::from),
        1 => vec(allowed_character(), 1..8).prop_map(String::from_iter),
    ]
    .prop_map(|name| match name.as_str() {
        "." | ".." => format!("{name}x"),
        _ => name,
    })
}

/// A path that is valid only where a server will append a sequence number to it.
pub fn sequential_only() -> impl Strategy<Value = String> {
    (path(), select(&["", ".", ".."]))
        // The root itself is valid either way.
        .prop_filter("is the root", |(path, end)| !(path.name().is_empty() && end.is_empty()))
        .prop_map(|(path, end)| crate::path::join(&path, end))
}

/// A path that servers refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPath {
    /// The path.
    pub path: String,
    /// Its only fault.
    pub fault: PathFault,
}

/// A path that is valid except for one fault.
pub fn invalid_path() -> impl Strategy<Value = InvalidPath> {
    prop_oneof![relative(), empty_component(), relative_component(), refused_character()]
}

/// A path without the slash in front; perhaps empty.
fn relative() -> impl Strategy<Value = InvalidPath> {
    let relative = path().prop_map(|path| path.strip_prefix('/').unwrap_or_default().to_string());
    relative.prop_map(|path| InvalidPath { path, fault: PathFault::NotAbsolute })
}

/// A path with one slash too many.
fn empty_component() -> impl Strategy<Value = InvalidPath> {
    let doubled = (path(), any::<Index>()).prop_map(|(path, at)| {
        let slashes = path.match_indices('/').count();
        let at = path.match_indices('/').nth(at.index(slashes));
        insert(&path, at.map_or(0, |(at, _)| at), "/")
    });
    let trailing = path().prop_map(|path| format!("{path}/"));
    prop_oneof![doubled, trailing]
        .prop_map(|path| InvalidPath { path, fault: PathFault::EmptyComponent })
}

/// A path with `.` or `..` for a component.
fn relative_component() -> impl Strategy<Value = InvalidPath> {
    let below = prop_oneof![Just(String::new()), component().prop_map(|name| format!("/{name}"))];
    (path(), select(&[".", ".."]), below).prop_map(|(path, relative, below)| InvalidPath {
        path: format!("{}{below}", crate::path::join(&path, relative)),
        fault: PathFault::RelativeComponent,
    })
}

/// A path with a character that is not allowed.
fn refused_character() -> impl Strategy<Value = InvalidPath> {
    (path(), any::<Index>(), character_to_refuse()).prop_map(|(path, at, character)| {
        let ends =
            path.char_indices().map(|(at, character)| at.saturating_add(character.len_utf8()));
        let offset = ends.clone().nth(at.index(ends.count())).unwrap_or(1);
        InvalidPath {
            path: insert(&path, offset, character.encode_utf8(&mut [0; 4])),
            fault: PathFault::Character { character, offset },
        }
    })
}

fn insert(path: &str, at: usize, inserted: &str) -> String {
    let (before, behind) = path.split_at_checked(at).unwrap_or((path, ""));
    format!("{before}{inserted}{behind}")
}

/// Characters of paths, from each range that servers allow.
fn allowed_character() -> impl Strategy<Value = char> {
    use proptest::char::range;
    prop_oneof![
        4 => range('0', '~'),
        1 => range(' ', '.'),
        2 => range('\u{A0}', '\u{D7FF}'),
        1 => range('\u{F900}', '\u{FFEF}'),
    ]
}

/// Characters from each range that servers refuse.
fn character_to_refuse() -> impl Strategy<Value = char> {
    use proptest::char::range;
    prop_oneof![
        range('\0', '\u{1F}'),
        range('\u{7F}', '\u{9F}'),
        range('\u{E000}', '\u{F8FF}'),
        range('\u{FFF0}', '\u{FFFF}'),
        range('\u{1_0000}', '\u{10_FFFF}'),
    ]
}

arbitrary! {
    ZkPath = path();
}
