//! Vectors on the wire: checked once, then read in place.

use core::{fmt, marker::PhantomData};

use alloc::{borrow::Cow, vec::Vec};
use bytes::{Bytes, BytesMut};

use crate::{
    jute::{COUNT_LEN, Decode, DecodeError, DecodeErrorKind, Encode, Reader, encode_count},
    text::{Str, Text},
};

/// A vector, kept in its encoded form and decoded while it is iterated.
///
/// A list in a reply shares the frame's memory, so that a million children cost no allocation; one
/// in a request is encoded once and cheap to clone. Null is a value of its own beside the empty
/// list.
pub struct List<T> {
    /// `None` is null.
    count: Option<usize>,
    /// The elements, back to back, checked to decode.
    elements: Bytes,
    of: PhantomData<fn() -> T>,
}

impl<T> List<T> {
    /// The null vector. Servers refuse most requests that carry one.
    pub const NULL: Self = Self { count: None, elements: Bytes::new(), of: PhantomData };

    /// The vector without elements.
    pub const EMPTY: Self = Self { count: Some(0), elements: Bytes::new(), of: PhantomData };

    /// Number of elements; 0 if null.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.unwrap_or_default()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the vector is null.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        self.count.is_none()
    }
}

impl<T: Encode> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = Growing::default();
        items.into_iter().for_each(|item| list.push(&item));
        list.grown()
    }
}

/// A list that is being made.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    count: usize,
    elements: BytesMut,
}

impl Growing {
    pub(crate) fn push(&mut self, element: &impl Encode) {
        element.encode(&mut self.elements);
        self.count = self.count.saturating_add(1);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The list of the pushed elements.
    pub(crate) fn grown<T>(self) -> List<T> {
        List { count: Some(self.count), elements: self.elements.freeze(), of: PhantomData }
    }
}

impl<T: for<'a> Decode<'a>> List<T> {
    /// The elements in wire order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { reader: Reader::new(&self.elements), of: PhantomData }
    }

    /// The elements, decoded into a vector.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        self.iter().collect()
    }
}

impl List<Text> {
    /// A list of strings, encoded without intermediate copies.
    pub fn of_strs<'a>(strs: impl IntoIterator<Item = &'a str>) -> Self {
        let mut list = Growing::default();
        strs.into_iter().for_each(|text| list.push(&Str::from(text)));
        list.grown()
    }

    /// The strings in wire order, borrowed from the frame.
    pub fn strs(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let strs: Iter<'_, Str<'_>> = Iter { reader: Reader::new(&self.elements), of: PhantomData };
        strs.map(Str::lossy)
    }
}

/// The elements of a [`List`].
#[derive(Clone, Debug)]
pub struct Iter<'a, T> {
    reader: Reader<'a>,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: Decode<'a>> Iterator for Iter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        // This cannot fail: the elements were checked when the list was made.
        (self.reader.left() > 0).then(|| T::decode(&mut self.reader).ok()).flatten()
    }
}

impl<'a, T: for<'b> Decode<'b>> IntoIterator for &'a List<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Encode for List<T> {
    fn encode(&self, out: &mut BytesMut) {
        encode_count(self.count, out);
        out.extend_from_slice(&self.elements);
    }
    fn encoded_len(&self) -> usize {
        self.elements.len().saturating_add(COUNT_LEN)
    }
}

impl<T: for<'b> Decode<'b>> Decode<'_> for List<T> {
    const LEN_MIN: usize = COUNT_LEN;

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let offset = reader.offset();
        let Some(count) = reader.count()? else {
            return Ok(Self::NULL);
        };
        let left = reader.left();
        if count > left.checked_div(T::LEN_MIN).unwrap_or_default() {
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            return Err(DecodeError::at(offset, DecodeErrorKind::CountTooLarge { count, left }));
        }
        let start = reader.offset();
        for _ in 0..count {
            T::skip(reader)?;
        }
        Ok(Self { count: Some(count), elements: reader.since(start), of: PhantomData })
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        Self { count: self.count, elements: self.elements.clone(), of: PhantomData }
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Two lists are equal if their encodings are.
impl<T> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.count, &self.elements) == (other.count, &other.elements)
    }
}

impl<T> Eq for List<T> {}

impl<T: fmt::Debug + for<'b> Decode<'b>> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            Some(_) => f.debug_list().entries(self).finish(),
            None => f.write_str("null"),
        }
    }
}
