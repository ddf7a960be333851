//! `Serialize` for multis: each operation and each result with the header in front of it.

use alloc::vec::Vec;

use bytes::Bytes;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::request::{
    multi::{MultiRequest, MultiResponse, end_of},
    multi_op::{MultiHeader, MultiOp, MultiResult},
    watch::ErrorResponse,
};

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
    let ops = ops.map(|(header, item)| Entry { header, item }).collect::<Vec<_>>();
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
                let body = ErrorResponse { err: *err };
                entry(self.header, Some("ErrorResponse"), &body, s)
            }
        }
    }
}
