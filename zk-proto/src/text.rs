//! Strings on the wire: kept as the bytes received, read leniently.
//!
//! Servers encode strings from UTF-16 units, so a character outside the basic plane arrives as two three-byte
//! surrogates (CESU-8). A strict reader would drop the connection over a user's name in an access control list; these
//! types keep the bytes and decode on demand.

use alloc::{
    borrow::{Cow, ToOwned},
    string::String,
};
use core::fmt;

use bytes::{Bytes, BytesMut};

use crate::jute::{COUNT_LEN, Decode, DecodeError, Encode, Reader};

/// A string in a request: borrowed from the caller when encoding, from the frame when decoding.
///
/// Null is a value of its own; [`Str::lossy`] reads it as empty.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str<'a>(Option<&'a [u8]>);

/// A string in a reply: shares the memory of its frame.
///
/// Null is a value of its own; [`Text::lossy`] reads it as empty.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Option<Bytes>);

impl<'a> Str<'a> {
    /// The null string.
    pub const NULL: Self = Self(None);

    /// A string of bytes that need not be UTF-8.
    #[must_use]
    pub const fn from_bytes(bytes: &'a [u8]) -> Self {
        Self(Some(bytes))
    }

    /// The bytes as on the wire; `None` is null.
    #[must_use]
    pub const fn as_bytes(self) -> Option<&'a [u8]> {
        self.0
    }

    /// The text, with surrogate pairs joined and anything else that is not UTF-8 replaced by U+FFFD.
    #[must_use]
    pub fn lossy(self) -> Cow<'a, str> {
        lossy(self.0.unwrap_or_default())
    }
}

impl Text {
    /// The null string.
    pub const NULL: Self = Self(None);

    /// A string that costs no allocation.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(Some(Bytes::from_static(text.as_bytes())))
    }

    /// A string of bytes that need not be UTF-8.
    #[must_use]
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self(Some(bytes))
    }

    /// The bytes as on the wire; `None` is null.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }

    /// Whether the string is null.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        self.0.is_none()
    }

    /// The text, with surrogate pairs joined and anything else that is not UTF-8 replaced by U+FFFD.
    #[must_use]
    pub fn lossy(&self) -> Cow<'_, str> {
        lossy(self.as_bytes().unwrap_or_default())
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Self(Some(text.as_bytes()))
    }
}

impl<'a> From<&'a Text> for Str<'a> {
    fn from(text: &'a Text) -> Self {
        Self(text.as_bytes())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Some(Bytes::copy_from_slice(text.as_bytes())))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Some(Bytes::from(text)))
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bytes) => fmt::Debug::fmt(&*lossy(bytes), f),
            None => f.write_str("null"),
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Str::from(self), f)
    }
}

impl Encode for Str<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.0.encode(out);
    }
    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }
}

impl<'a> Decode<'a> for Str<'a> {
    const LEN_MIN: usize = COUNT_LEN;
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.counted().map(Self)
    }
}

impl Encode for Text {
    fn encode(&self, out: &mut BytesMut) {
        self.as_bytes().encode(out);
    }
    fn encoded_len(&self) -> usize {
        self.as_bytes().encoded_len()
    }
}

impl Decode<'_> for Text {
    const LEN_MIN: usize = COUNT_LEN;
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.counted_shared().map(Self)
    }
    fn skip(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        reader.counted().map(drop)
    }
}

/// A value that must not appear in logs: its `Debug` prints dots.
///
/// Session passwords, credentials and SASL tokens travel in this.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Secret<T>(pub T);

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\u{2022}\u{2022}\u{2022}")
    }
}

impl<T: Encode> Encode for Secret<T> {
    fn encode(&self, out: &mut BytesMut) {
        self.0.encode(out);
    }
    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Secret<T> {
    const LEN_MIN: usize = T::LEN_MIN;
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        T::decode(reader).map(Self)
    }
    fn skip(reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        T::skip(reader)
    }
}

/// Returns valid UTF-8 as it is; otherwise joins CESU-8 surrogate pairs and replaces other invalid bytes.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match core::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(join_surrogates(bytes)),
    }
}

fn join_surrogates(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    loop {
        let (valid, rest) = match core::str::from_utf8(bytes) {
            Ok(valid) => (valid, [].as_slice()),
            Err(error) => {
                let (valid, rest) = bytes.split_at_checked(error.valid_up_to()).unwrap_or_default();
                (core::str::from_utf8(valid).unwrap_or_default(), rest)
            }
        };
        text.push_str(valid);
        bytes = match rest {
            [] => return text,
            [
                0xED,
                a @ 0xA0..=0xAF,
                b @ 0x80..=0xBF,
                0xED,
                c @ 0xB0..=0xBF,
                d @ 0x80..=0xBF,
                rest @ ..,
            ] => {
                text.push(join(*a, *b, *c, *d));
                rest
            }
            [_, rest @ ..] => {
                text.push(char::REPLACEMENT_CHARACTER);
                rest
            }
        };
    }
}

/// The character of a surrogate pair, from the payload bytes of both halves.
fn join(a: u8, b: u8, c: u8, d: u8) -> char {
    let high = u32::from(a & 0x0F) << 6 | u32::from(b & 0x3F);
    let low = u32::from(c & 0x0F) << 6 | u32::from(d & 0x3F);
    let scalar = (high << 10 | low).saturating_add(0x1_0000);
    char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER)
}

impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lossy())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lossy())
    }
}

impl From<&Text> for String {
    fn from(text: &Text) -> Self {
        text.lossy().into_owned()
    }
}

impl From<Str<'_>> for Text {
    fn from(text: Str<'_>) -> Self {
        Self(text.as_bytes().map(Bytes::copy_from_slice))
    }
}

impl Str<'_> {
    /// The text as an owned string, read as [`Str::lossy`] reads it.
    #[must_use]
    pub fn to_owned_lossy(self) -> String {
        self.lossy().as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogate_pairs_decode_as_one_character() {
        let grin = [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80];
        assert_eq!(Str::from_bytes(&grin).lossy(), "\u{1F600}");
        assert_eq!(Str::from_bytes(b"a\xFFb").lossy(), "a\u{FFFD}b");
        let lone_half = [b'x', 0xED, 0xA0, 0xBD, b'y'];
        assert_eq!(Str::from_bytes(&lone_half).lossy(), "x\u{FFFD}\u{FFFD}\u{FFFD}y");
        assert_eq!(Str::NULL.lossy(), "");
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        assert!(!alloc::format!("{:?}", Secret("hunter2")).contains("hunter2"));
    }
}
