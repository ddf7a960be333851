//! `Serialize` where a derive does not suffice: buffers in hex, null kept.

use alloc::string::String;
use core::fmt::Write as _;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::{
    jute::Decode,
    list::List,
    text::{Secret, Str, Text},
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Strings as text, or as `{"raw": hex}` where they are not UTF-8.
impl Serialize for Str<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(bytes) = self.as_bytes() else {
            return serializer.serialize_none();
        };
        match core::str::from_utf8(bytes) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("raw", &hex(bytes))?;
                map.end()
            }
        }
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Str::from(self).serialize(serializer)
    }
}

/// A buffer as hex. `record!` fields reach it through [`buffer`].
struct Hex<'a>(&'a [u8]);

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(self.0))
    }
}

/// For `serialize_with` on buffers.
pub(crate) fn buffer<T: AsRef<[u8]>, S: Serializer>(
    buffer: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    buffer.as_ref().map(|bytes| Hex(bytes.as_ref())).serialize(serializer)
}

/// Secrets show: a caller that serialises a record wants to see the wire.
impl<T: AsRef<[u8]>> Serialize for Secret<Option<T>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        buffer(&self.0, serializer)
    }
}

impl<T: Serialize + for<'a> Decode<'a>> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_null() {
            return serializer.serialize_none();
        }
        let mut seq = serializer.serialize_seq(Some(self.len()))?;
        for item in self {
            seq.serialize_element(&item)?;
        }
        seq.end()
    }
}
