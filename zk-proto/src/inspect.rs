//! `Serialize` for what a derive cannot do: buffers in hex, null kept, multis with their headers.

use alloc::string::String;
use core::fmt::Write as _;

use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};

use crate::{
    jute::Decode,
    list::List,
    request::{MultiHeader, MultiOp, MultiRequest, MultiResponse, MultiResult, end_of},
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

/// Secrets show: who serialises a record wants to see the wire.
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

/// One operation or result of a multi.
struct Entry<T> {
    header: MultiHeader,
    item: T,
}

/// A whole stream: `{"ops": [...], "end": header}`.
fn stream<S: Serializer, T>(
    ops: impl Iterator<Item = (MultiHeader, T)>,
    end: &Bytes,
    serializer: S,
) -> Result<S::Ok, S::Error>
where
    Entry<T>: Serialize,
{
    let ops = ops.map(|(header, item)| Entry { header, item }).collect::<alloc::vec::Vec<_>>();
    let mut multi = serializer.serialize_struct("Multi", 2)?;
    multi.serialize_field("ops", &ops)?;
    multi.serialize_field("end", &end_of(end))?;
    multi.end()
}

impl Serialize for MultiRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        stream(self.iter(), self.stream(), serializer)
    }
}

impl Serialize for MultiResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        stream(self.iter(), self.stream(), serializer)
    }
}

fn entry<S: Serializer>(
    header: MultiHeader,
    record: Option<&str>,
    body: &(impl Serialize + ?Sized),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut entry = serializer.serialize_struct("MultiOp", 3)?;
    entry.serialize_field("header", &header)?;
    entry.serialize_field("record", &record)?;
    entry.serialize_field("body", body)?;
    entry.end()
}

impl Serialize for Entry<MultiOp<'_>> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match &self.item {
            MultiOp::Create(op) | MultiOp::Create2(op) | MultiOp::CreateContainer(op) => {
                entry(self.header, Some("CreateRequest"), op, s)
            }
            MultiOp::CreateTtl(op) => entry(self.header, Some("CreateTTLRequest"), op, s),
            MultiOp::Delete(op) => entry(self.header, Some("DeleteRequest"), op, s),
            MultiOp::SetData(op) => entry(self.header, Some("SetDataRequest"), op, s),
            MultiOp::Check(op) => entry(self.header, Some("CheckVersionRequest"), op, s),
            MultiOp::GetData(op) => entry(self.header, Some("GetDataRequest"), op, s),
            MultiOp::GetChildren(op) => entry(self.header, Some("GetChildrenRequest"), op, s),
        }
    }
}

impl Serialize for Entry<MultiResult> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match &self.item {
            MultiResult::Create(result) => entry(self.header, Some("CreateResponse"), result, s),
            MultiResult::Create2(result) => entry(self.header, Some("Create2Response"), result, s),
            MultiResult::Delete | MultiResult::Check => entry(self.header, None, &(), s),
            MultiResult::SetData(result) => entry(self.header, Some("SetDataResponse"), result, s),
            MultiResult::GetData(result) => entry(self.header, Some("GetDataResponse"), result, s),
            MultiResult::GetChildren(result) => {
                entry(self.header, Some("GetChildrenResponse"), result, s)
            }
            MultiResult::Error(err) => {
                let body = crate::request::ErrorResponse { err: *err };
                entry(self.header, Some("ErrorResponse"), &body, s)
            }
        }
    }
}
