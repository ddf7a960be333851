//! Frames: a length in front of each message, and the headers that most messages begin with.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::{
    code::ErrorCode,
    data::{Xid, Zxid},
    jute::{Encode, Fixed},
    op::OpCode,
    record::record,
    request::Request,
};

/// Bytes of the length in front of a frame.
pub const LEN_PREFIX: usize = 4;

/// Longest request, in bytes without the length prefix, that servers accept unless configured
/// otherwise (`jute.maxbuffer`).
pub const LEN_REQUEST_MAX: usize = 0xF_FFFF;

/// Longest frame, in bytes without the length prefix, that is accepted from a server by default.
///
/// Servers do not limit their replies, and a listing of 18 000 lock nodes is already beyond the 1 MiB
/// that Java clients accept; 64 MiB lists a million.
pub const LEN_REPLY_MAX: usize = 64 << 20;

record! {
    /// In front of every request but the first.
    #[derive(Copy)]
    fixed RequestHeader {
        /// Echoed by the reply.
        xid: Xid,
        /// The operation.
        #[cfg_attr(feature = "serde", serde(rename = "type"))]
        op: OpCode,
    }
}

record! {
    /// In front of every reply but the first.
    #[derive(Copy)]
    fixed ReplyHeader {
        /// The request's.
        xid: Xid,
        /// Last transaction applied by the server; not meaningful in every kind of reply.
        zxid: Zxid,
        /// A meaningful body follows only if this is [`ErrorCode::OK`]. Refusals of SASL have one
        /// too, to be ignored.
        err: ErrorCode,
    }
}

/// A length prefix that no frame may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame length {len} is outside 0..={len_max}")]
pub struct FrameError {
    /// The length from the wire.
    pub len: i32,
    /// The largest accepted one.
    pub len_max: usize,
}

/// Takes the first whole frame off `buffer`, without its length prefix.
///
/// `Ok(None)` means that more bytes are needed. Nothing is allocated, and the length is judged as soon
/// as its four bytes are there.
///
/// # Errors
/// [`FrameError`] if the length is negative or above `len_max`; the stream cannot be read any further.
pub fn split_frame(buffer: &mut BytesMut, len_max: usize) -> Result<Option<Bytes>, FrameError> {
    split_frame_mut(buffer, len_max).map(|frame| frame.map(BytesMut::freeze))
}

/// As [`split_frame`], for a frame that is to be overwritten.
pub(crate) fn split_frame_mut(
    buffer: &mut BytesMut,
    len_max: usize,
) -> Result<Option<BytesMut>, FrameError> {
    let Some((prefix, rest)) = buffer.split_first_chunk::<LEN_PREFIX>() else {
        return Ok(None);
    };
    let len = prefix.as_slice().get_i32();
    let len = usize::try_from(len)
        .ok()
        .filter(|&len| len <= len_max)
        .ok_or(FrameError { len, len_max })?;
    if rest.len() < len {
        return Ok(None);
    }
    buffer.advance(LEN_PREFIX);
    Ok(Some(buffer.split_to(len)))
}

/// The length that the first frame claims, without its length prefix; not checked. `None` if the prefix is incomplete,
/// or cannot be a length.
pub(crate) fn frame_len(buffer: &[u8]) -> Option<usize> {
    let prefix = buffer.first_chunk::<LEN_PREFIX>()?;
    usize::try_from(prefix.as_slice().get_i32()).ok()
}

/// Appends `content` as a frame.
pub fn encode_frame(content: &impl Encode, out: &mut BytesMut) {
    encode_frame_with(out, |out| content.encode(out));
}

/// Appends a frame with the content that `write` appends.
pub fn encode_frame_with(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_i32(0);
    write(out);
    let len = out.len().saturating_sub(start).saturating_sub(LEN_PREFIX);
    if let Some(mut prefix) = out.get_mut(start..start.saturating_add(LEN_PREFIX)) {
        prefix.put_i32(i32::try_from(len).unwrap_or(i32::MAX));
    }
}

/// Appends a request, without a copy of it elsewhere.
pub(crate) fn encode_request<R: Request>(xid: Xid, request: &R, out: &mut BytesMut) {
    encode_frame_with(out, |out| {
        RequestHeader { xid, op: R::OP }.encode(out);
        request.encode(out);
    });
}

/// A request as a frame whose xid is still open: xids are given in the order of writing, which is
/// not known yet where requests are encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFrame {
    op: OpCode,
    /// The body only; prefix and header are written together with the xid.
    body: Body,
}

/// The length decides which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    /// Is copied when it is written. To freeze it would cost a tenth of its encoding.
    Short(BytesMut),
    /// Is shared with those that write it.
    Long(Bytes),
}

/// From which length on a body is long, in bytes: a shorter one costs less as a copy than as one more piece to write.
pub(crate) const LEN_LONG: usize = 16 << 10;

/// Bytes of a buffer that requests share.
const LEN_SHARED: usize = 4 << 10;

/// Longest body that goes into such a buffer, in bytes: a longer one would leave most of a buffer unused.
const LEN_SHARED_MAX: usize = LEN_SHARED / 4;

impl RequestFrame {
    /// Encodes a request.
    #[must_use]
    pub fn of<R: Request>(request: &R) -> Self {
        Self::new(R::OP, request)
    }

    /// Encodes a body as a request of this operation.
    #[must_use]
    pub fn new(op: OpCode, body: &impl Encode) -> Self {
        let mut out = BytesMut::with_capacity(body.encoded_len());
        body.encode(&mut out);
        Self { op, body: Body::new(out) }
    }

    /// Encodes a request behind others, in a shared buffer. Costs no allocation as long as there is room; otherwise
    /// allocates room for dozens of usual requests. A long request is encoded elsewhere.
    #[must_use]
    pub fn within<R: Request>(buffer: &mut BytesMut, request: &R) -> Self {
        let len = request.encoded_len();
        // Bytes that are in it already stay there, and belong to no body.
        if len > LEN_SHARED_MAX || !buffer.is_empty() {
            return Self::of(request);
        }
        if buffer.capacity() < len {
            buffer.reserve(LEN_SHARED);
        }
        request.encode(buffer);
        Self { op: R::OP, body: Body::Short(buffer.split()) }
    }

    /// A request whose body has been encoded already.
    #[must_use]
    pub fn from_body(op: OpCode, body: Bytes) -> Self {
        let body = if body.len() < LEN_LONG { Body::Short(body.into()) } else { Body::Long(body) };
        Self { op, body }
    }

    /// The operation.
    #[must_use]
    pub const fn op(&self) -> OpCode {
        self.op
    }

    /// Length on the wire in bytes, without the length prefix.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "there is a header at least")]
    pub fn len(&self) -> usize {
        self.body().len().saturating_add(RequestHeader::LEN)
    }

    /// The bytes after the header.
    #[inline(always)]
    pub(crate) fn body(&self) -> &[u8] {
        match &self.body {
            Body::Short(body) => body,
            Body::Long(body) => body,
        }
    }

    /// The same, if it is long and not to be copied.
    #[inline(always)]
    pub(crate) const fn long_body(&self) -> Option<&Bytes> {
        match &self.body {
            Body::Short(_) => None,
            Body::Long(body) => Some(body),
        }
    }

    /// The path of the node concerned, if the body begins with it.
    pub(crate) fn path(&self) -> Option<&str> {
        if !self.op.begins_with_path() {
            return None;
        }
        // A string is preceded by its length, as frames are.
        let body = self.body();
        let end = frame_len(body)?.saturating_add(LEN_PREFIX);
        core::str::from_utf8(body.get(LEN_PREFIX..end)?).ok()
    }

    /// Frees the body of a request that is not written again.
    pub(crate) fn drop_body(&mut self) {
        self.body = Body::Short(BytesMut::new());
    }

    /// Appends the frame with its xid to the outbound bytes.
    pub fn write(&self, xid: Xid, out: &mut BytesMut) {
        out.reserve(self.len().saturating_add(LEN_PREFIX));
        self.write_head(xid, out);
        out.extend_from_slice(self.body());
    }

    /// As [`write`](Self::write), for a read, without asking for a watch: in every read that can ask for one, the last
    /// byte is the flag.
    pub(crate) fn write_unwatched(&self, xid: Xid, out: &mut BytesMut) {
        self.write_head(xid, out);
        if let Some((_, path)) = self.body().split_last() {
            out.extend_from_slice(path);
            false.encode(out);
        }
    }

    /// Appends the prefix and header in one piece.
    pub(crate) fn write_head(&self, xid: Xid, out: &mut BytesMut) {
        let mut head = [0; LEN_PREFIX + RequestHeader::LEN];
        let mut rest = head.as_mut_slice();
        i32::try_from(self.len()).unwrap_or(i32::MAX).put(&mut rest);
        RequestHeader { xid, op: self.op }.put(&mut rest);
        out.extend_from_slice(&head);
    }
}

impl Body {
    #[inline(always)]
    fn new(bytes: BytesMut) -> Self {
        if bytes.len() < LEN_LONG { Self::Short(bytes) } else { Self::Long(bytes.freeze()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::GetDataRequest;

    #[test]
    fn request_excludes_other_buffer_content() {
        let request = GetDataRequest { path: "/a".into(), watch: false };
        let mut buffer = BytesMut::from(&b"somebody else's"[..]);
        assert_eq!(RequestFrame::within(&mut buffer, &request), RequestFrame::of(&request));
        assert_eq!(&buffer[..], b"somebody else's");
    }

    #[test]
    fn requests_share_a_buffer_as_long_as_there_is_room() {
        let path = "a".repeat(LEN_SHARED_MAX);
        let request = |len| GetDataRequest { path: path.get(..len).unwrap().into(), watch: false };
        let longest = LEN_SHARED_MAX - LEN_PREFIX - 1;
        let mut buffer = BytesMut::new();
        let mut end = core::ptr::null();
        for number in 0..4 {
            let frame = RequestFrame::within(&mut buffer, &request(longest));
            assert_eq!(frame, RequestFrame::of(&request(longest)));
            let body = frame.body().as_ptr_range();
            assert!(number == 0 || body.start == end, "request {number} is elsewhere");
            end = body.end;
        }
        // A longer one does not take what is left, nor does it fetch more.
        let room = buffer.capacity();
        let long = RequestFrame::within(&mut buffer, &request(longest + 1));
        assert_eq!(long, RequestFrame::of(&request(longest + 1)));
        assert_eq!(buffer.capacity(), room);
    }

    #[test]
    fn request_is_written_alike_by_all_ways() {
        let request = |watch| GetDataRequest { path: "/a".into(), watch };
        let watched = RequestFrame::of(&request(true));
        let mut written = [(); 4].map(|()| BytesMut::from(&b"before"[..]));
        let [at_once, framed, unwatched, plain] = &mut written;
        encode_request(Xid(7), &request(true), at_once);
        watched.write(Xid(7), framed);
        watched.write_unwatched(Xid(7), unwatched);
        RequestFrame::of(&request(false)).write(Xid(7), plain);
        let expected = b"before\0\0\0\x0f\0\0\0\x07\0\0\0\x04\0\0\0\x02/a\x01";
        assert_eq!((&at_once[..], &framed[..]), (&expected[..], &expected[..]));
        assert_eq!(unwatched, plain);
        assert_eq!(plain.last(), Some(&0));
    }

    #[test]
    fn frame_is_split_when_whole_or_refused() {
        let mut buffer = BytesMut::from(&[0, 0, 0, 2, 7][..]);
        assert_eq!(split_frame(&mut buffer, 8), Ok(None));
        buffer.put_slice(&[8, 9]);
        assert_eq!(split_frame(&mut buffer, 8), Ok(Some(Bytes::from_static(&[7, 8]))));
        assert_eq!(&buffer[..], [9]);

        let mut longest = BytesMut::from(&[0, 0, 0, 1, 5][..]);
        assert_eq!(split_frame(&mut longest, 1), Ok(Some(Bytes::from_static(&[5]))));
        let mut shortest = BytesMut::from(&[0; 4][..]);
        assert_eq!(split_frame(&mut shortest, 0), Ok(Some(Bytes::new())));

        for len in [-1, i32::MIN, 9, i32::MAX] {
            let mut buffer = BytesMut::new();
            buffer.put_i32(len);
            assert_eq!(split_frame(&mut buffer, 8), Err(FrameError { len, len_max: 8 }));
        }
    }
}
