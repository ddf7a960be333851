//! Strings and buffers, whose bytes are anything.

use alloc::{string::String, vec::Vec};

use bytes::Bytes;
use proptest::{
    arbitrary::any,
    collection::vec,
    prop_oneof,
    strategy::{Just, Strategy},
};

use crate::{
    path::ZkPath,
    strategy::record::{arbitrary, is_record},
    text::{Secret, Text},
};

/// Longest string and buffer that is generated, in bytes or characters. Long enough not to be
/// mistaken for any count of elements, short enough for thousands of frames a second.
const LEN_MAX: usize = 64;

/// A string: names, any Unicode, surrogate pairs as servers write them, stray bytes, empty, null.
pub fn text() -> impl Strategy<Value = Text> {
    prop_oneof![
        4 => "[a-z0-9:._-]{1,16}".prop_map(Text::from),
        2 => unicode().prop_map(Text::from),
        1 => unicode().prop_map(|text| from_bytes(cesu8(&text))),
        1 => vec(any::<u8>(), 0..LEN_MAX).prop_map(from_bytes),
        1 => Just(Text::from_static("")),
        1 => Just(Text::NULL),
    ]
}

/// The text of a path field: mostly a path.
pub fn path_text() -> impl Strategy<Value = Text> {
    prop_oneof![
        6 => any::<ZkPath>().prop_map(|path| Text::from(path.as_str())),
        1 => text(),
    ]
}

/// A buffer: some bytes, empty, or null.
pub fn buffer() -> impl Strategy<Value = Option<Bytes>> {
    prop_oneof![
        4 => vec(any::<u8>(), 1..LEN_MAX).prop_map(|bytes| Some(Bytes::from(bytes))),
        1 => Just(Some(Bytes::new())),
        1 => Just(None),
    ]
}

/// A session's password: 16 bytes, or any buffer.
pub fn password() -> impl Strategy<Value = Option<Bytes>> {
    prop_oneof![
        4 => any::<[u8; 16]>().prop_map(|bytes| Some(Bytes::copy_from_slice(&bytes))),
        1 => buffer(),
    ]
}

/// Text in which each character outside the basic plane is two surrogates of three bytes, which is
/// how servers encode it.
#[must_use]
pub fn cesu8(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for unit in text.encode_utf16() {
        match char::from_u32(unit.into()) {
            Some(character) => {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None => bytes.extend(surrogate(unit)),
        }
    }
    bytes
}

/// The three bytes that UTF-8 would have for a surrogate if surrogates were characters.
fn surrogate(unit: u16) -> [u8; 3] {
    let payload = |shift: u32| 0x80 | u8::try_from(unit >> shift & 0x3F).unwrap_or_default();
    [0xED, payload(6), payload(0)]
}

/// Any characters, the ends of the planes more often than not.
fn unicode() -> impl Strategy<Value = String> {
    vec(
        prop_oneof![
            2 => any::<char>(),
            1 => proptest::char::range('\u{1_0000}', '\u{10_FFFF}'),
        ],
        0..LEN_MAX / 4,
    )
    .prop_map(String::from_iter)
}

fn from_bytes(bytes: Vec<u8>) -> Text {
    Text::from_bytes(bytes.into())
}

arbitrary! {
    Text = text();
    Secret<Option<Bytes>> = buffer().prop_map(Self);
}
is_record!(Text, Secret<Option<Bytes>>);

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn surrogates_are_joined_when_read(text in unicode()) {
            let bytes = cesu8(&text);
            let outside = text.chars().any(|character| character > '\u{FFFF}');
            prop_assert_eq!(core::str::from_utf8(&bytes).is_err(), outside);
            prop_assert_eq!(Text::from_bytes(bytes.into()).to_string(), text);
        }
    }
}
