//! Jute, ZooKeeper's serialisation: primitives, and the one place that knows widths and byte order.
//!
//! Every number is big endian. Strings, buffers and vectors carry a 32-bit count in front; a count
//! of -1 means *null*, which is a value of its own beside *empty*. There are no tags and no padding.
//!
//! Decoding never allocates by a count from the wire: strings and buffers are slices of the frame,
//! and vectors stay encoded until they are iterated ([`List`](crate::List)).

use bytes::{BufMut, Bytes, BytesMut};

/// A value that has a jute encoding.
pub trait Encode {
    /// Appends the encoding of `self` to `out`.
    fn encode(&self, out: &mut BytesMut);
}

/// A value that can be read back from its jute encoding, borrowing from the frame where it can.
pub trait Decode<'a>: Sized {
    /// The fewest bytes that any value of this type occupies; bounds element counts before use.
    const LEN_MIN: usize;

    /// Reads one value.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes at the reader's position are not such a value. The reader's
    /// position is then unspecified.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Checks one value and moves past it, for types where that is cheaper than decoding.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    fn skip(reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        Self::decode(reader).map(drop)
    }
}

/// Decodes a whole value from `frame`, ignoring bytes behind it.
///
/// Newer servers may append fields to a record, so trailing bytes are no error: real servers and
/// clients ignore them on both sides.
///
/// # Errors
/// [`DecodeError`] if `frame` does not begin with a `T`.
pub fn decode_prefix<'a, T: Decode<'a>>(frame: &'a Bytes) -> Result<T, DecodeError> {
    T::decode(&mut Reader::new(frame))
}

/// Decodes a whole value from `frame` and insists that nothing follows it.
///
/// # Errors
/// [`DecodeError`] if `frame` is not exactly one `T`.
pub fn decode_exact<'a, T: Decode<'a>>(frame: &'a Bytes) -> Result<T, DecodeError> {
    let mut reader = Reader::new(frame);
    let value = T::decode(&mut reader)?;
    reader.finish()?;
    Ok(value)
}

/// Why some bytes are not the value that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{record}.{field} at byte {offset}: {kind}")]
pub struct DecodeError {
    /// Innermost record being read, by the name of its type here; `"frame"` outside of records.
    pub record: &'static str,
    /// Field of that record, by its name here; empty outside of records.
    pub field: &'static str,
    /// Where in the frame (without its length prefix) the offending value begins, in bytes.
    pub offset: usize,
    /// What is wrong with it.
    pub kind: DecodeErrorKind,
}

/// The ways in which bytes can fail to be a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The frame ends inside the value.
    #[error("needs {needed} bytes, {left} left")]
    Truncated {
        /// Bytes that the value needs.
        needed: usize,
        /// Bytes that the frame still has.
        left: usize,
    },
    /// A count is negative and not the -1 that stands for null.
    #[error("count {0} is negative")]
    NegativeCount(i32),
    /// A vector claims more elements than the rest of the frame can hold.
    #[error("count {count} cannot fit into {left} bytes")]
    CountTooLarge {
        /// The claimed number of elements.
        count: i32,
        /// Bytes that the frame still has.
        left: usize,
    },
    /// An operation inside a multi is one that multis do not have.
    #[error("operation {0} cannot be part of a multi")]
    NotInMulti(i32),
    /// Bytes follow where the value should have been the last.
    #[error("{0} bytes follow the last field")]
    TrailingBytes(usize),
}

impl DecodeError {
    /// An error that does not know yet in which record and field it happened.
    #[must_use]
    pub(crate) const fn at(offset: usize, kind: DecodeErrorKind) -> Self {
        Self { record: "frame", field: "", offset, kind }
    }

    /// Names record and field, unless an inner record has already done so.
    #[must_use]
    pub(crate) fn within(mut self, record: &'static str, field: &'static str) -> Self {
        if self.record == "frame" {
            self.record = record;
            self.field = field;
        }
        self
    }
}

/// A position in a frame. It can only move forward and never past the end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    frame: &'a Bytes,
    offset: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `frame`.
    #[must_use]
    pub const fn new(frame: &'a Bytes) -> Self {
        Self { frame, offset: 0 }
    }

    /// Bytes before the position.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes behind the position.
    #[must_use]
    pub fn left(&self) -> usize {
        self.frame.len().saturating_sub(self.offset)
    }

    /// Reads a field of a record, so that errors can name both.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    pub fn field<T: Decode<'a>>(
        &mut self,
        record: &'static str,
        field: &'static str,
    ) -> Result<T, DecodeError> {
        T::decode(self).map_err(|error| error.within(record, field))
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TrailingBytes`] if something is.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            left => Err(DecodeError::at(self.offset, DecodeErrorKind::TrailingBytes(left))),
        }
    }

    /// Takes the next `len` bytes.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`] if there are fewer.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let end = self.offset.checked_add(len);
        let Some(taken) = end.and_then(|end| self.frame.get(self.offset..end)) else {
            let kind = DecodeErrorKind::Truncated { needed: len, left: self.left() };
            return Err(DecodeError::at(self.offset, kind));
        };
        self.offset = self.offset.saturating_add(len);
        Ok(taken)
    }

    /// The bytes between an earlier position and this one, sharing the frame's memory.
    #[must_use]
    pub(crate) fn since(&self, start: usize) -> Bytes {
        self.frame.slice(start.min(self.offset)..self.offset)
    }

    /// Takes the next `N` bytes as an array.
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Takes the count in front of a string, buffer or vector; `None` is null.
    pub(crate) fn count(&mut self) -> Result<Option<usize>, DecodeError> {
        let offset = self.offset;
        let count = i32::decode(self)?;
        match usize::try_from(count) {
            Ok(count) => Ok(Some(count)),
            Err(_) if count == -1 => Ok(None),
            Err(_) => Err(DecodeError::at(offset, DecodeErrorKind::NegativeCount(count))),
        }
    }

    /// Takes a string or buffer with its count; `None` is null.
    pub(crate) fn counted(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.count()? {
            Some(len) => self.take(len).map(Some),
            None => Ok(None),
        }
    }

    /// As [`Reader::counted`], sharing the frame's memory instead of borrowing it.
    pub(crate) fn counted_shared(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let len = self.counted()?.map(<[u8]>::len);
        Ok(len.map(|len| self.since(self.offset.saturating_sub(len))))
    }
}

/// Appends the count in front of a string, buffer or vector; `None` is null.
///
/// A count above `i32::MAX` cannot be expressed; it is clamped, and the frame that it would be part
/// of is refused as oversized long before a server sees it.
pub(crate) fn encode_count(count: Option<usize>, out: &mut BytesMut) {
    match count {
        Some(count) => i32::try_from(count).unwrap_or(i32::MAX).encode(out),
        None => (-1_i32).encode(out),
    }
}

macro_rules! integers {
    ($($int:ty: $put:ident),*) => {$(
        impl Encode for $int {
            fn encode(&self, out: &mut BytesMut) {
                out.$put(*self);
            }
        }
        impl Decode<'_> for $int {
            const LEN_MIN: usize = size_of::<Self>();
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                reader.array().map(Self::from_be_bytes)
            }
        }
    )*};
}

integers!(i32: put_i32, i64: put_i64);

impl Encode for bool {
    fn encode(&self, out: &mut BytesMut) {
        out.put_u8(u8::from(*self));
    }
}

impl Decode<'_> for bool {
    const LEN_MIN: usize = 1;
    /// Any byte but zero is true, as real servers read it.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.array().map(|[byte]| byte != 0)
    }
}

impl Encode for () {
    fn encode(&self, _: &mut BytesMut) {}
}

impl Decode<'_> for () {
    const LEN_MIN: usize = 0;
    fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

/// A jute buffer. `None` is null, `Some(&[])` is empty: servers keep them apart.
impl Encode for Option<&[u8]> {
    fn encode(&self, out: &mut BytesMut) {
        encode_count(self.map(<[u8]>::len), out);
        out.extend_from_slice(self.unwrap_or_default());
    }
}

impl<'a> Decode<'a> for Option<&'a [u8]> {
    const LEN_MIN: usize = 4;
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.counted()
    }
}

/// As `Option<&[u8]>`, sharing the frame's memory.
impl Encode for Option<Bytes> {
    fn encode(&self, out: &mut BytesMut) {
        self.as_deref().encode(out);
    }
}

impl Decode<'_> for Option<Bytes> {
    const LEN_MIN: usize = 4;
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.counted_shared()
    }
}
