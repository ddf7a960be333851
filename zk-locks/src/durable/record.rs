//! The data of a grant.

use std::{fmt::Write as _, time::Duration};

/// Begins every grant's data. The number is that of the format.
const MARK: &str = "durable-1";

/// The data of a grant's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The owner, across sessions and restarts.
    pub(super) owner: String,
    /// How long others wait for the next renewal; `None` for ever.
    pub(super) lease: Option<Duration>,
    /// Text for people.
    pub(super) description: String,
}

impl Record {
    /// One line with the lease in milliseconds and the length of the owner's name, which may be any text; the owner; the
    /// description.
    pub(super) fn encode(&self) -> Vec<u8> {
        let Self { owner, lease, description } = self;
        let mut text = format!("{MARK} ");
        let written = match lease {
            Some(lease) => write!(text, "{}", lease.as_millis()),
            None => write!(text, "-"),
        };
        // Writing to a string does not fail.
        debug_assert!(written.is_ok());
        text += &format!(" {}\n{owner}\n{description}", owner.len());
        text.into_bytes()
    }

    /// `None` for data in another format.
    pub(super) fn decode(data: &[u8]) -> Option<Self> {
        let (head, rest) = std::str::from_utf8(data).ok()?.split_once('\n')?;
        let mut words = head.strip_prefix(MARK)?.split_ascii_whitespace();
        let lease = match words.next()? {
            "-" => None,
            millis => Some(Duration::from_millis(millis.parse().ok()?)),
        };
        let owner_len: usize = words.next()?.parse().ok()?;
        let (owner, rest) = rest.split_at_checked(owner_len)?;
        let description = rest.strip_prefix('\n')?.to_owned();
        Some(Self { owner: owner.to_owned(), lease, description })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_round_trips_and_nothing_else() {
        for owner in ["", "host-7", "two\nlines", "durable-1 - 3", "\u{e9}\u{4e00}"] {
            for lease in [None, Some(Duration::from_millis(1)), Some(Duration::from_secs(86_400))] {
                let record =
                    Record { owner: owner.to_owned(), lease, description: "a b\nc".to_owned() };
                let data = record.encode();
                assert_eq!(Record::decode(&data), Some(record));
                for end in 0..data.len().saturating_sub("a b\nc".len()) {
                    assert_eq!(Record::decode(&data[..end]), None, "{owner:?} up to {end}");
                }
            }
        }
        for data in ["", "durable-1", "durable-1 - 9\nshort\n", "durable-1 x 0\n\n", "other"] {
            assert_eq!(Record::decode(data.as_bytes()), None, "{data:?}");
        }
        assert_eq!(Record::decode(b"durable-1 18446744073709551616 0\n\n"), None);
        // In the middle of a character.
        assert_eq!(Record::decode("durable-1 - 1\n\u{e9}\n".as_bytes()), None);
    }
}
