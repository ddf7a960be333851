//! Jute, ZooKeeper's serialisation: primitives, and the one place that knows widths and byte order.
//!
//! Every number is big endian. Strings, buffers and vectors carry a 32-bit count in front; a count
//! of -1 means *null*, which is a value of its own beside *empty*. There are no tags and no padding.
//!
//! Decoding never allocates by a count from the wire: strings and buffers are slices of the frame,
//! and vectors stay encoded until they are iterated ([`List`](crate::List)).

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// A value that has a jute encoding.
pub trait Encode {
    /// Appends the encoding of `self` to `out`.
    fn encode(&self, out: &mut BytesMut);

    /// Bytes that [`Encode::encode`] appends, so that room for all of them can be made at once.
    fn encoded_len(&self) -> usize;
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
    /// The fault.
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
    /// The operation has no request.
    #[error("operation {0} has no request")]
    NoRequest(i32),
    /// Bytes follow where the value should have been the last.
    #[error("{0} bytes follow the last field")]
    TrailingBytes(usize),
}

impl DecodeError {
    /// An error whose record and field are not known yet.
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
    /// The bytes behind the position.
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `frame`.
    #[must_use]
    pub fn new(frame: &'a Bytes) -> Self {
        Self { frame, rest: frame }
    }

    /// Bytes before the position.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.frame.len().saturating_sub(self.rest.len())
    }

    /// Bytes behind the position.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.rest.len()
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

    /// Checks a field of a record and moves past it.
    pub(crate) fn skip_field<T: Decode<'a>>(
        &mut self,
        record: &'static str,
        field: &'static str,
    ) -> Result<(), DecodeError> {
        T::skip(self).map_err(|error| error.within(record, field))
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TrailingBytes`] if there are bytes left.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            left => Err(DecodeError::at(self.offset(), DecodeErrorKind::TrailingBytes(left))),
        }
    }

    /// Takes the next `len` bytes.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`] if there are fewer.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.truncated(len));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Takes the `N` bytes of a `T`. If the frame ends within a record, the error names the field that it ends in.
    pub(crate) fn fixed<T: Fixed, const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        if let Some((bytes, rest)) = self.rest.split_first_chunk() {
            self.rest = rest;
            return Ok(bytes);
        }
        let (record, fields) = T::FIELDS;
        for &(field, len) in fields {
            self.take(len).map_err(|error| error.within(record, field))?;
        }
        Err(self.truncated(N))
    }

    /// The error for a value of `needed` bytes where there are fewer.
    #[cold]
    const fn truncated(&self, needed: usize) -> DecodeError {
        let kind = DecodeErrorKind::Truncated { needed, left: self.left() };
        DecodeError::at(self.offset(), kind)
    }

    /// The bytes between an earlier position and this one, sharing the frame's memory.
    #[must_use]
    pub(crate) fn since(&self, start: usize) -> Bytes {
        let end = self.offset();
        self.frame.slice(start.min(end)..end)
    }

    /// Takes the count in front of a string, buffer or vector; `None` is null.
    pub(crate) fn count(&mut self) -> Result<Option<usize>, DecodeError> {
        let offset = self.offset();
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
        Ok(len.map(|len| self.since(self.offset().saturating_sub(len))))
    }
}

/// Bytes of the count in front of a string, buffer or vector.
pub(crate) const COUNT_LEN: usize = i32::LEN;

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

/// A value with a fixed number of bytes, for which any bytes are valid: the bounds are checked once, and not for each
/// number in it.
pub(crate) trait Fixed: Sized {
    /// Bytes of the encoding.
    const LEN: usize;

    /// The name of a record and those of its fields, with the length of each; empty for other values.
    const FIELDS: (&'static str, &'static [(&'static str, usize)]) = ("", &[]);

    /// Takes the value from the front of a buffer with at least [`Fixed::LEN`] bytes.
    fn get(from: &mut impl Buf) -> Self;

    /// Appends the value to a buffer with room for at least [`Fixed::LEN`] more bytes.
    fn put(&self, to: &mut impl BufMut);
}

/// Makes the codec of a [`Fixed`] type.
macro_rules! fixed_codec {
    ($type:ty) => {
        impl crate::jute::Encode for $type {
            fn encode(&self, out: &mut bytes::BytesMut) {
                let mut bytes = [0; <Self as crate::jute::Fixed>::LEN];
                crate::jute::Fixed::put(self, &mut bytes.as_mut_slice());
                out.extend_from_slice(&bytes);
            }
            fn encoded_len(&self) -> usize {
                <Self as crate::jute::Fixed>::LEN
            }
        }
        impl crate::jute::Decode<'_> for $type {
            const LEN_MIN: usize = <Self as crate::jute::Fixed>::LEN;
            fn decode(
                reader: &mut crate::jute::Reader<'_>,
            ) -> Result<Self, crate::jute::DecodeError> {
                let bytes = reader.fixed::<Self, { <Self as crate::jute::Fixed>::LEN }>()?;
                Ok(crate::jute::Fixed::get(&mut bytes.as_slice()))
            }
        }
    };
}

/// Makes the codec of newtypes of numbers.
macro_rules! newtype_codec {
    ($($type:ident($number:ty)),*) => {$(
        impl crate::jute::Fixed for $type {
            const LEN: usize = <$number as crate::jute::Fixed>::LEN;
            fn get(from: &mut impl bytes::Buf) -> Self {
                Self(crate::jute::Fixed::get(from))
            }
            fn put(&self, to: &mut impl bytes::BufMut) {
                self.0.put(to);
            }
        }
        crate::jute::fixed_codec!($type);
    )*};
}

pub(crate) use {fixed_codec, newtype_codec};

macro_rules! integers {
    ($($int:ty: $get:ident, $put:ident),*) => {$(
        impl Fixed for $int {
            const LEN: usize = size_of::<Self>();
            fn get(from: &mut impl Buf) -> Self {
                from.$get()
            }
            fn put(&self, to: &mut impl BufMut) {
                to.$put(*self);
            }
        }
        fixed_codec!($int);
    )*};
}

integers!(i32: get_i32, put_i32, i64: get_i64, put_i64);

/// Any byte but zero is true, as real servers read it.
impl Fixed for bool {
    const LEN: usize = 1;
    fn get(from: &mut impl Buf) -> Self {
        from.get_u8() != 0
    }
    fn put(&self, to: &mut impl BufMut) {
        to.put_u8(Self::into(*self));
    }
}

fixed_codec!(bool);

impl Encode for () {
    fn encode(&self, _: &mut BytesMut) {}
    fn encoded_len(&self) -> usize {
        0
    }
}

impl Decode<'_> for () {
    const LEN_MIN: usize = 0;
    fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

/// A jute buffer. `None` is null, `Some(&[])` is empty: servers distinguish them.
impl Encode for Option<&[u8]> {
    fn encode(&self, out: &mut BytesMut) {
        encode_count(self.map(<[u8]>::len), out);
        out.extend_from_slice(self.unwrap_or_default());
    }
    fn encoded_len(&self) -> usize {
        self.unwrap_or_default().len().saturating_add(COUNT_LEN)
    }
}

impl<'a> Decode<'a> for Option<&'a [u8]> {
    const LEN_MIN: usize = COUNT_LEN;
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.counted()
    }
}

/// As `Option<&[u8]>`, sharing the frame's memory.
impl Encode for Option<Bytes> {
    fn encode(&self, out: &mut BytesMut) {
        self.as_deref().encode(out);
    }
    fn encoded_len(&self) -> usize {
        self.as_deref().encoded_len()
    }
}

impl Decode<'_> for Option<Bytes> {
    const LEN_MIN: usize = COUNT_LEN;
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.counted_shared()
    }
    fn skip(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        reader.counted().map(drop)
    }
}
