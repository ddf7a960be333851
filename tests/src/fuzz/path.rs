//! Paths: judged as a server judges them, and taken apart without loss.

use zk_proto::path::{Naming, PathFault, ZkPath, check, join, name, parent, parse_sequence};

/// A path, or anything else that is text.
pub(super) fn path(input: &[u8]) {
    let Ok(path) = std::str::from_utf8(input) else {
        return;
    };
    let verdict = check(path, Naming::Exact);
    assert_eq!(verdict.is_ok(), is_valid(path), "{path:?}: {verdict:?}");
    let completed = format!("{path}0000000000");
    let sequential = check(path, Naming::Sequential);
    assert_eq!(sequential.is_ok(), is_valid(&completed), "{path:?}: {sequential:?}");

    match path.parse::<ZkPath>() {
        Ok(path) => take_apart(&path),
        Err(error) => {
            assert_eq!(error.path, path);
            if let PathFault::Character { character, offset } = error.fault {
                assert!(path[offset..].starts_with(character));
            }
        }
    }
    sequence(path);
}

fn take_apart(path: &ZkPath) {
    match path.parent() {
        None => assert_eq!((path.as_str(), path.name()), ("/", "")),
        Some(above) => {
            assert!(is_valid(&above) && !path.name().contains('/'));
            assert_eq!(parent(path), Some(above.as_str()));
            assert_eq!(join(&above, path.name()), path.as_str());
            assert_eq!(above.join(path.name()).as_ref(), Ok(path));
            assert_eq!(name(path), path.name());
        }
    }
}

/// What is read as a number is what a server prints for it, and nothing else is.
fn sequence(text: &str) {
    if let Some(number) = parse_sequence(text) {
        assert_eq!(format!("{number:010}"), text);
    }
    if let Ok(number) = text.parse::<i32>() {
        assert_eq!(parse_sequence(&format!("{number:010}")), Some(number));
    }
}

/// The rule as servers have it, in their terms: UTF-16 units, one after the other.
fn is_valid(path: &str) -> bool {
    const SLASH: u16 = b'/' as u16;
    const DOT: u16 = b'.' as u16;

    let units: Vec<_> = path.encode_utf16().collect();
    match units[..] {
        [SLASH] => return true,
        [SLASH, .., SLASH] => return false,
        [SLASH, ..] => {}
        _ => return false,
    }
    let refused =
        |unit: &u16| matches!(*unit, 0..=0x1F | 0x7F..=0x9F | 0xD800..=0xF8FF | 0xFFF0..=0xFFFF);
    let mut components = units[1..].split(|&unit| unit == SLASH);
    !units.iter().any(refused)
        && components.all(|component| !matches!(component, [] | [DOT] | [DOT, DOT]))
}
