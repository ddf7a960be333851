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
        Iter { reader: Reader::new(&self.elements), left: self.len(), of: PhantomData }
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
    pub fn strs(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        // Lengths below 128 are UTF-8 too, so that all elements are checked at once, instead of one short name after another.
        let text = core::str::from_utf8(&self.elements).unwrap_or_default();
        let (reader, left) = (Reader::new(&self.elements), self.len());
        let mut end: usize = 0;
        Iter { reader, left, of: PhantomData }.map(move |each: Str<'_>| {
            let start = end.saturating_add(COUNT_LEN);
            end = start.saturating_add(each.as_bytes().map_or(0, <[u8]>::len));
            text.get(start..end).map_or_else(|| each.lossy(), Cow::Borrowed)
        })
    }
}

/// The elements of a [`List`].
#[derive(Clone, Debug)]
pub struct Iter<'a, T> {
    reader: Reader<'a>,
    left: usize,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: Decode<'a>> Iterator for Iter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        // This cannot fail: the elements were checked when the list was made.
        T::decode(&mut self.reader).ok()
    }

    /// Exact, so that a vector of the elements is allocated once.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'a, T: Decode<'a>> ExactSizeIterator for Iter<'a, T> {}

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

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// Short text, text longer than a length of one ASCII byte, bytes that may end within a character, and null.
    fn text() -> impl Strategy<Value = Text> {
        prop_oneof![
            "\\PC{0,12}".prop_map(Text::from),
            "[a-z\u{e9}]{100,300}".prop_map(Text::from),
            vec(prop_oneof![Just(0_u8), Just(0xC3), Just(0xA9), any::<u8>()], 0..8)
                .prop_map(|bytes| Text::from_bytes(Bytes::from(bytes))),
            Just(Text::NULL),
        ]
    }

    proptest! {
        /// Whether or not the text of all was checked at once, each is read as it is alone; and the number is known before.
        #[test]
        fn strs_are_read_as_each_alone(texts in vec(text(), 0..20)) {
            let list: List<Text> = texts.iter().cloned().collect();
            let alone: Vec<String> = texts.iter().map(String::from).collect();
            let strs = list.strs();
            prop_assert_eq!((strs.len(), list.iter().len()), (texts.len(), texts.len()));
            prop_assert_eq!(strs.map(Cow::into_owned).collect::<Vec<_>>(), alone);
            prop_assert_eq!(list.to_vec(), texts);
        }
    }
}
