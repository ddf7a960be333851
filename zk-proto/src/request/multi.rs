//! Several operations in one request: a stream of headers and records that ends with a header.

use core::fmt;

use bytes::{Bytes, BytesMut};

use crate::{
    code::ErrorCode,
    jute::{Decode, DecodeError, Encode, Reader},
    op::OpCode,
    request::{
        define::Request,
        multi_op::{Item, MultiHeader, MultiOp, MultiResult},
    },
};

/// Operations that are carried out together or not at all.
///
/// Kept encoded; iterate to read. An empty one is legal and answered with an empty result.
#[derive(Clone, PartialEq, Eq)]
pub struct MultiRequest {
    stream: Bytes,
}

/// Reads in one request; each succeeds or fails on its own. Since 3.6.0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MultiReadRequest(pub MultiRequest);

/// One result for each operation of a multi, in order.
///
/// Kept encoded; iterate to read.
#[derive(Clone, PartialEq, Eq)]
pub struct MultiResponse {
    stream: Bytes,
}

/// The items of a stream with the headers in front of them.
#[derive(Clone, Debug)]
pub struct Items<'a, I> {
    reader: Reader<'a>,
    of: core::marker::PhantomData<fn() -> I>,
}

impl<'a, I: Item<'a>> Iterator for Items<'a, I> {
    type Item = (MultiHeader, I);

    fn next(&mut self) -> Option<Self::Item> {
        // This cannot fail: the stream was checked when it was made.
        let header = next_header(&mut self.reader).ok()??;
        let item = I::decode_behind(header, &mut self.reader).ok()?;
        Some((header, item))
    }
}

/// Reads the header in front of an item; `None` is the closing one.
fn next_header(reader: &mut Reader<'_>) -> Result<Option<MultiHeader>, DecodeError> {
    let header: MultiHeader = reader.field("Multi", "header")?;
    Ok((!header.done).then_some(header))
}

/// Checks a whole stream and takes it.
fn take_stream<'a, I: Item<'a>>(reader: &mut Reader<'a>) -> Result<Bytes, DecodeError> {
    let start = reader.offset();
    while let Some(header) = next_header(reader)? {
        I::skip_behind(header, reader).map_err(|error| error.within("Multi", "op"))?;
    }
    Ok(reader.since(start))
}

/// Most bytes that are reserved before it is known whether they are needed.
const LEN_GUESSED_MAX: usize = 4 << 10;

/// Room for the first operation, if it is as short as most are.
const FIRST_LEN: usize = 256;

/// Encodes a whole stream.
fn make_stream<'a, I: Item<'a>>(items: impl IntoIterator<Item = (ErrorCode, I)>) -> Bytes {
    let items = items.into_iter();
    // What may end early, at an error, says only how many there are at most.
    let (least, most) = items.size_hint();
    let count = most.unwrap_or(least);
    let mut out = BytesMut::with_capacity(FIRST_LEN);
    for (index, (err, item)) in items.enumerate() {
        MultiHeader { op: item.op(), done: false, err }.encode(&mut out);
        item.encode_body(&mut out);
        if index == 0 {
            // The others are mostly as long as the first.
            out.reserve(out.len().saturating_mul(count).min(LEN_GUESSED_MAX));
        }
    }
    MultiHeader::END.encode(&mut out);
    out.freeze()
}

impl MultiRequest {
    /// The operations in order, each with its header.
    #[must_use]
    pub fn iter(&self) -> Items<'_, MultiOp<'_>> {
        Items { reader: Reader::new(&self.stream), of: core::marker::PhantomData }
    }
}

impl<'a> FromIterator<MultiOp<'a>> for MultiRequest {
    fn from_iter<T: IntoIterator<Item = MultiOp<'a>>>(ops: T) -> Self {
        let unset = ErrorCode(-1);
        Self { stream: make_stream(ops.into_iter().map(|op| (unset, op))) }
    }
}

impl MultiResponse {
    /// The results in order, each with its header.
    #[must_use]
    pub fn iter(&self) -> Items<'_, MultiResult> {
        Items { reader: Reader::new(&self.stream), of: core::marker::PhantomData }
    }
}

impl FromIterator<MultiResult> for MultiResponse {
    fn from_iter<T: IntoIterator<Item = MultiResult>>(results: T) -> Self {
        Self { stream: make_stream(results.into_iter().map(|result| (result.err(), result))) }
    }
}

impl<'a> IntoIterator for &'a MultiRequest {
    type Item = (MultiHeader, MultiOp<'a>);
    type IntoIter = Items<'a, MultiOp<'a>>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a MultiResponse {
    type Item = (MultiHeader, MultiResult);
    type IntoIter = Items<'a, MultiResult>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Encode for MultiRequest {
    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.stream);
    }
    fn encoded_len(&self) -> usize {
        self.stream.len()
    }
}

impl Decode<'_> for MultiRequest {
    const LEN_MIN: usize = MultiHeader::LEN_MIN;
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        take_stream::<MultiOp<'_>>(reader).map(|stream| Self { stream })
    }
}

impl Encode for MultiReadRequest {
    fn encode(&self, out: &mut BytesMut) {
        self.0.encode(out);
    }
    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }
}

impl Decode<'_> for MultiReadRequest {
    const LEN_MIN: usize = MultiHeader::LEN_MIN;
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        MultiRequest::decode(reader).map(Self)
    }
}

impl Encode for MultiResponse {
    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.stream);
    }
    fn encoded_len(&self) -> usize {
        self.stream.len()
    }
}

impl Decode<'_> for MultiResponse {
    const LEN_MIN: usize = MultiHeader::LEN_MIN;
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        take_stream::<MultiResult>(reader).map(|stream| Self { stream })
    }
}

impl fmt::Debug for MultiRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(_, op)| op)).finish()
    }
}

impl fmt::Debug for MultiResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(_, result)| result)).finish()
    }
}

impl Request for MultiRequest {
    const OP: OpCode = OpCode::MULTI;
    type Response = MultiResponse;
}

impl Request for MultiReadRequest {
    const OP: OpCode = OpCode::MULTI_READ;
    type Response = MultiResponse;
}

/// The closing header of a stream: clients write different values there, and servers ignore it.
#[cfg(feature = "serde")]
pub(crate) fn end_of(stream: &Bytes) -> MultiHeader {
    let start = stream.len().saturating_sub(MultiHeader::LEN_MIN);
    crate::jute::decode_exact(&stream.slice(start..)).unwrap_or(MultiHeader::END)
}

#[cfg(feature = "serde")]
impl MultiRequest {
    pub(crate) const fn stream(&self) -> &Bytes {
        &self.stream
    }
}

#[cfg(feature = "serde")]
impl MultiResponse {
    pub(crate) const fn stream(&self) -> &Bytes {
        &self.stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        jute::{DecodeErrorKind, decode_exact},
        request::DeleteRequest,
    };

    #[test]
    fn unknown_multi_op_reports_its_offset() {
        let mut stream = BytesMut::new();
        let header = |op| MultiHeader { op, done: false, err: ErrorCode::OK };
        header(OpCode::DELETE).encode(&mut stream);
        MultiOp::Delete(DeleteRequest { path: "/a".into(), version: 0 }).encode_body(&mut stream);
        let offset = stream.len();
        header(OpCode::SYNC).encode(&mut stream);

        let expected = DecodeError {
            record: "MultiHeader",
            field: "op",
            offset,
            kind: DecodeErrorKind::NotInMulti(OpCode::SYNC.0),
        };
        assert_eq!(decode_exact::<MultiRequest>(&stream.freeze()), Err(expected));
    }
}
