//! Strings and lists as servers read and write them.

use std::borrow::Cow;

use bytes::{BufMut as _, Bytes, BytesMut};
use zk_proto::{
    CreateFlags, ErrorCode, List, Str, Text, Zxid,
    jute::{Decode, DecodeError, Reader},
    request::{CreateRequest, CreateTtlRequest, SetAclRequest, SetWatches, SetWatches2},
};

/// A string as servers write it: characters beyond the basic plane as two surrogates, each encoded as
/// if it were a character.
pub(super) fn text(text: &str) -> Text {
    if text.chars().all(|c| c.len_utf16() == 1) {
        return text.into();
    }
    let mut out = BytesMut::new();
    for unit in text.encode_utf16() {
        match char::from_u32(unit.into()) {
            Some(c) => out.put_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => {
                let [high, middle, low] = [unit >> 12, unit >> 6 & 0x3F, unit & 0x3F];
                let low_byte = |bits: u16, mark: u8| mark | u8::try_from(bits).unwrap_or_default();
                out.put_slice(&[low_byte(high, 0xE0), low_byte(middle, 0x80), low_byte(low, 0x80)]);
            }
        }
    }
    Text::from_bytes(out.freeze())
}

/// A string as servers read it: of what is not UTF-8, each part that they take for one character is
/// replaced. Null reads as empty.
pub(super) fn string(bytes: Option<&[u8]>) -> Cow<'_, str> {
    let mut rest = bytes.unwrap_or_default();
    if let Ok(text) = std::str::from_utf8(rest) {
        return text.into();
    }
    let mut text = String::new();
    loop {
        match std::str::from_utf8(rest) {
            Ok(good) => {
                text.push_str(good);
                return text.into();
            }
            Err(error) => {
                let (good, bad) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(good));
                text.push(char::REPLACEMENT_CHARACTER);
                // Surrogates are whole characters to them, though wrong ones; the beginnings of
                // surrogates are beginnings of characters.
                let len = match bad {
                    [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => 3,
                    [0xED, 0xA0..=0xBF, ..] => 2,
                    _ => error.error_len().unwrap_or(bad.len()),
                };
                rest = bad.get(len..).unwrap_or_default();
            }
        }
    }
}

/// A list as servers read it: every negative count but the one of null means that there is nothing.
pub(super) fn list<'a, T>(reader: &mut Reader<'a>) -> Result<List<T>, DecodeError>
where
    T: for<'b> Decode<'b>,
{
    let mut behind = reader.clone();
    if i32::decode(&mut behind)? < -1 {
        *reader = behind;
        return Ok(List::EMPTY);
    }
    List::decode(reader)
}

/// Requests that have lists, read as servers read them.
pub(super) trait Lenient<'a>: Sized {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

impl<'a> Lenient<'a> for CreateRequest<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            path: Str::decode(reader)?,
            data: Decode::decode(reader)?,
            acl: list(reader)?,
            flags: CreateFlags::decode(reader)?,
        })
    }
}

/// The beginning is that of an ordinary create.
impl<'a> Lenient<'a> for CreateTtlRequest<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let CreateRequest { path, data, acl, flags } = Lenient::read(reader)?;
        Ok(Self { path, data, acl, flags, ttl: i64::decode(reader)? })
    }
}

impl<'a> Lenient<'a> for SetAclRequest<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { path: Str::decode(reader)?, acl: list(reader)?, version: i32::decode(reader)? })
    }
}

impl<'a> Lenient<'a> for SetWatches {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            relative_zxid: Zxid::decode(reader)?,
            data_watches: list(reader)?,
            exist_watches: list(reader)?,
            child_watches: list(reader)?,
        })
    }
}

/// The beginning is the older record.
impl<'a> Lenient<'a> for SetWatches2 {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let SetWatches { relative_zxid, data_watches, exist_watches, child_watches } =
            Lenient::read(reader)?;
        Ok(Self {
            relative_zxid,
            data_watches,
            exist_watches,
            child_watches,
            persistent_watches: list(reader)?,
            persistent_recursive_watches: list(reader)?,
        })
    }
}

/// Reads a request that has lists.
pub(super) fn request<'a, T: Lenient<'a>>(body: &'a Bytes) -> Result<T, ErrorCode> {
    T::read(&mut Reader::new(body)).map_err(|_| ErrorCode::MARSHALLING_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_surrogate_pairs_become_two_units() {
        let written = |it| text(it).as_bytes().map(<[u8]>::to_vec);
        assert_eq!(written("a\u{e9}\u{ffff}"), Some("a\u{e9}\u{ffff}".as_bytes().to_vec()));
        assert_eq!(written("\u{1f600}"), Some(b"\xed\xa0\xbd\xed\xb8\x80".to_vec()));
    }

    #[test]
    fn invalid_utf_8_is_replaced_as_in_java() {
        let read = |bytes| string(Some(bytes)).replace(char::REPLACEMENT_CHARACTER, "?");
        assert_eq!(read(b"a\xffb"), "a?b");
        assert_eq!(read(b"\xed\xa0\x80b"), "?b");
        assert_eq!(read(b"\xed\xbc!"), "?!");
        assert_eq!(read(b"\xed\xbc"), "?");
        assert_eq!(read(b"\xf0\x9f\x98"), "?");
        assert_eq!(read(b"\xf0\x9f\x98b"), "?b");
        assert_eq!(read(b"\xc0\x80"), "??");
    }
}
