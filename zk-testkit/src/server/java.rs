//! Strings as servers write them.

use bytes::{BufMut as _, BytesMut};
use zk_proto::Text;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_java_needs_two_characters_for_is_written_as_two() {
        let written = |it| text(it).as_bytes().map(<[u8]>::to_vec);
        assert_eq!(written("a\u{e9}\u{ffff}"), Some("a\u{e9}\u{ffff}".as_bytes().to_vec()));
        assert_eq!(written("\u{1f600}"), Some(b"\xed\xa0\xbd\xed\xb8\x80".to_vec()));
    }
}
