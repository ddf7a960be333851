//! Unique ids, by which lost creates are found.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Cause;

/// The source of ids.
#[derive(Debug)]
pub(crate) enum Ids {
    /// The system: unique across processes and machines.
    Random,
    /// A seed, for simulations: as unique as the seeds are.
    Seeded(AtomicU64),
}

impl Ids {
    pub(crate) const fn seeded(seed: u64) -> Self {
        // Different from the numbers that the session draws from the same seed.
        Self::Seeded(AtomicU64::new(mixed(!seed)))
    }

    /// A random (version 4) UUID in its canonical form.
    pub(crate) fn next(&self) -> Result<String, Cause> {
        let mut bytes = [0; 16];
        match self {
            Self::Random => getrandom::fill(&mut bytes)
                .map_err(|_| Cause::InvalidArgument("the system has no randomness"))?,
            Self::Seeded(state) => {
                let state = state.fetch_add(1, Ordering::Relaxed);
                let halves = (u128::from(mixed(state)) << 64) | u128::from(mixed(!state));
                for (index, byte) in bytes.iter_mut().enumerate() {
                    *byte = u8::try_from(halves >> (8 * index) & 0xFF).unwrap_or_default();
                }
            }
        }
        Ok(canonical(bytes))
    }
}

/// The finalizer of `SplitMix64`.
pub(crate) const fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Digits of a canonical UUID.
const HEX: &[u8; 16] = b"0123456789abcdef";

fn canonical(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let mut uuid = String::with_capacity(36);
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            uuid.push('-');
        }
        uuid.extend([byte >> 4, byte & 0x0F].map(|digit| char::from(HEX[usize::from(digit)])));
    }
    uuid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_canonical_version_4_and_unique() {
        for ids in [Ids::Random, Ids::seeded(7)] {
            let (one, other) = (ids.next().unwrap(), ids.next().unwrap());
            assert_ne!(one, other);
            let shape: String = one.chars().map(|c| if c == '-' { '-' } else { 'x' }).collect();
            assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
            assert_eq!(&one[14..15], "4");
            assert!("89ab".contains(&one[19..20]));
        }
    }

    #[test]
    fn a_uuid_shows_its_bytes_in_order() {
        let bytes = std::array::from_fn(|index| 0x0F + 0x10 * index as u8);
        assert_eq!(canonical(bytes), "0f1f2f3f-4f5f-4f7f-8f9f-afbfcfdfefff");
    }

    #[test]
    fn seeded_ids_are_reproducible_and_distinct() {
        let first = |seed| Ids::seeded(seed).next().unwrap();
        assert_eq!(first(1), first(1));
        let mut all: Vec<_> = (0..1000).map(first).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 1000);
    }
}
