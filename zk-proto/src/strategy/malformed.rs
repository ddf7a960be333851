//! Frames that are broken.

use alloc::vec::Vec;

use bytes::{Buf, Bytes, BytesMut};
use proptest::{
    arbitrary::any,
    collection::vec,
    prop_oneof,
    sample::{Index, select},
    strategy::{Just, Strategy},
};

use crate::{
    frame::LEN_PREFIX,
    jute::Encode,
    strategy::{Frame, record::arbitrary},
};

/// A frame that was valid before it was mutated.
///
/// It may still be valid: a flipped bit of a node's data is merely other data.
#[derive(Clone, Debug)]
pub struct Malformed {
    /// The frame before the mutations.
    pub original: Frame,
    /// The mutations, in this order.
    pub mutations: Vec<Mutation>,
    /// The frame after the mutations.
    pub frame: Frame,
}

/// A mutation of a frame.
///
/// All but the last two correct the length prefix, so that the damage reaches the decoder of the
/// content; the last two are for code that splits frames off a stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Mutation {
    /// The content ends early.
    Truncate {
        /// How much of it is left.
        len: Index,
    },
    /// Four bytes that could be the count of a string, buffer or vector become another count.
    Count {
        /// The position of the count.
        at: Index,
        /// The new count: negative, or more than there is.
        count: i32,
    },
    /// A bit is flipped.
    FlipBit {
        /// The position of the byte.
        at: Index,
        /// The number of the bit.
        bit: u8,
    },
    /// Bytes are inserted.
    Insert {
        /// The position before which they are inserted.
        at: Index,
        /// The inserted bytes.
        bytes: Vec<u8>,
    },
    /// Bytes are removed.
    Remove {
        /// The position of the first one.
        at: Index,
        /// Their number, at most.
        len: usize,
    },
    /// The frame ends early, and its length prefix is not corrected.
    CutOff {
        /// How much of it is left, prefix included.
        len: Index,
    },
    /// The length prefix is wrong.
    LengthLie {
        /// The length in it.
        len: i32,
    },
}

/// Frames that have suffered one to three mutations, those of the stream behind those of the content, which would put the
/// length prefix right again.
pub fn malformed(frames: impl Strategy<Value = Frame>) -> impl Strategy<Value = Malformed> {
    (frames, vec(any::<Mutation>(), 1..=3)).prop_map(|(original, mut mutations)| {
        mutations.sort_by_key(Mutation::is_of_stream);
        let bytes =
            mutations.iter().fold(original.bytes.clone(), |bytes, mutation| mutation.apply(&bytes));
        let frame = Frame { kind: original.kind, bytes };
        Malformed { original, mutations, frame }
    })
}

impl Mutation {
    const fn is_of_stream(&self) -> bool {
        matches!(self, Self::CutOff { .. } | Self::LengthLie { .. })
    }

    /// Applies the mutation to a frame with its length prefix.
    #[must_use]
    pub fn apply(&self, frame: &Bytes) -> Bytes {
        let mut content = frame.clone();
        content.advance(frame.len().min(LEN_PREFIX));
        let content = match self {
            Self::CutOff { len } => return frame.slice(..index(len, frame.len())),
            Self::LengthLie { len } => return prefixed(*len, &content),
            Self::Truncate { len } => content.slice(..index(len, content.len())),
            Self::Count { at, count } => {
                let offsets: Vec<_> = count_offsets(&content).collect();
                let at = offsets.get(index(at, offsets.len())).copied();
                let mut bytes = BytesMut::new();
                count.encode(&mut bytes);
                splice(&content, at.unwrap_or_default(), bytes.len(), &bytes)
            }
            Self::FlipBit { at, bit } => {
                let at = index(at, content.len());
                let byte = content.get(at).copied().unwrap_or_default();
                splice(&content, at, 1, &[byte ^ 1_u8.rotate_left(u32::from(*bit))])
            }
            Self::Insert { at, bytes } => splice(&content, index(at, content.len()), 0, bytes),
            Self::Remove { at, len } => splice(&content, index(at, content.len()), *len, &[]),
        };
        prefixed(i32::try_from(content.len()).unwrap_or(i32::MAX), &content)
    }
}

/// `content` behind a length prefix, true or not.
fn prefixed(len: i32, content: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    len.encode(&mut out);
    out.extend_from_slice(content);
    out.freeze()
}

/// `content` with `bytes` in the place of the `len` bytes from `at` on.
fn splice(content: &Bytes, at: usize, len: usize, bytes: &[u8]) -> Bytes {
    let at = at.min(content.len());
    let end = at.saturating_add(len).min(content.len());
    let mut out = BytesMut::from(&content.slice(..at)[..]);
    out.extend_from_slice(bytes);
    out.extend_from_slice(&content.slice(end..));
    out.freeze()
}

/// One of `len` places; 0 if there is none.
fn index(index: &Index, len: usize) -> usize {
    if len == 0 { 0 } else { index.index(len) }
}

/// Positions where a count may be: the value is -1, or no more than the bytes that follow.
fn count_offsets(content: &[u8]) -> impl Iterator<Item = usize> {
    let windows = content.windows(size_of::<i32>()).enumerate();
    windows.filter_map(|(at, mut window)| {
        let left = content.len().saturating_sub(at);
        let count = window.get_i32();
        (count == -1 || usize::try_from(count).is_ok_and(|count| count <= left)).then_some(at)
    })
}

/// Wrong lengths and counts: negative, beyond every limit, or near a right one.
fn lie() -> impl Strategy<Value = i32> {
    prop_oneof![
        2 => select(&[-1, -2, i32::MIN, i32::MAX, 0x10_0000, 0]),
        1 => any::<i32>(),
        1 => 0..256_i32,
    ]
}

arbitrary! {
    Mutation = prop_oneof![
        any::<Index>().prop_map(|len| Self::Truncate { len }),
        (any::<Index>(), lie()).prop_map(|(at, count)| Self::Count { at, count }),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Self::FlipBit { at, bit }),
        (any::<Index>(), vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Self::Insert { at, bytes }),
        (any::<Index>(), prop_oneof![Just(1), Just(4), 1..32_usize])
            .prop_map(|(at, len)| Self::Remove { at, len }),
        any::<Index>().prop_map(|len| Self::CutOff { len }),
        lie().prop_map(|len| Self::LengthLie { len }),
    ];
}
