//! Names of waiting nodes: their implementation, what they want, and their order.

use std::cmp::Ordering;

use zk_client::path::parse_sequence;

/// Sequence numbers from here on are refused: near the end of the counter servers repeat numbers (3.6 and
/// later) or begin again with negative ones (3.4), and order is lost. The margin is for creates under way.
pub(crate) const SEQUENCE_MAX: i32 = i32::MAX - (1 << 20);

/// What a node under a lock's path wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The lock, for itself alone: any implementation's exclusive lock.
    Exclusive,
    /// To write, under a read/write lock.
    Write,
    /// To read, under a read/write lock.
    Read,
    /// To lead, under an election.
    Lead,
    /// Nothing more: it stands for a permit that is taken, under a semaphore.
    Lease,
    /// Something that has a place in the sequence but a name that no known implementation uses. Treated
    /// as [`Kind::Exclusive`], which is the safe side.
    Unknown,
}

/// The name of a node that has a place in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<N = String> {
    pub(crate) name: N,
    pub(crate) sequence: i32,
    pub(crate) kind: Kind,
}

/// The markers before the sequence number in the names of known implementations: Curator and its followers, kazoo, and
/// the ZooKeeper distribution's own recipes (whose names begin with `x-`).
const MARKERS: [(&str, Kind); 8] = [
    ("__lock__", Kind::Exclusive),
    ("__rlock__", Kind::Read),
    ("__READ__", Kind::Read),
    ("__WRIT__", Kind::Write),
    ("_lock_", Kind::Exclusive),
    ("lock-", Kind::Exclusive),
    ("latch-", Kind::Lead),
    ("lease-", Kind::Lease),
];

impl<N: AsRef<str>> Entry<N> {
    /// Parses a child's name. Returns the name if it has no place in the sequence: it belongs to no contender.
    pub(crate) fn parse(name: N) -> Result<Self, N> {
        match numbered(name.as_ref()) {
            Some((sequence, kind)) => Ok(Self { name, sequence, kind }),
            None => Err(name),
        }
    }

    /// Converts to an owned name.
    pub(crate) fn into_owned(self) -> Entry
    where
        N: Into<String>,
    {
        let Self { name, sequence, kind } = self;
        Entry { name: name.into(), sequence, kind }
    }

    /// Compares two places in the queue.
    ///
    /// Serial-number arithmetic, so that order survives the counter's wrap on old servers as long as the
    /// living nodes are close together. Equal numbers are legitimate only where a Curator writer has taken
    /// a read lock under its write lock: the write counts as the earlier one.
    pub(crate) fn order<M: AsRef<str>>(&self, other: &Entry<M>) -> Ordering {
        self.order_from(other.sequence, other)
    }

    /// The same as seen from one of several places, `base`: an order of them all, wherever they are.
    pub(crate) fn order_from<M: AsRef<str>>(&self, base: i32, other: &Entry<M>) -> Ordering {
        let [ours, theirs] =
            [self.sequence, other.sequence].map(|number| number.wrapping_sub(base));
        ours.cmp(&theirs)
            .then_with(|| (self.kind == Kind::Read).cmp(&(other.kind == Kind::Read)))
            .then_with(|| self.name.as_ref().cmp(other.name.as_ref()))
    }

    pub(crate) fn is_ahead_of<M: AsRef<str>>(&self, other: &Entry<M>) -> bool {
        self.order(other) == Ordering::Less
    }

    /// Whether the two cannot hold the lock together: they are not both readers.
    pub(crate) fn excludes<M: AsRef<str>>(&self, other: &Entry<M>) -> bool {
        self.kind != Kind::Read || other.kind != Kind::Read
    }

    /// Whether `other` has to wait for this one: it is behind, and they are not both readers.
    pub(crate) fn blocks<M: AsRef<str>>(&self, other: &Entry<M>) -> bool {
        self.is_ahead_of(other) && self.excludes(other)
    }
}

/// Splits a name into a part and a sequence number, which is ten characters long, or eleven.
///
/// The longer one first: ten characters of eleven are a number too, without its sign. Where the sign is the last character
/// of a marker, the part in front of it has no marker.
///
/// Markers are looked for only right before the number: waiters read thousands of names, and searching one costs twenty
/// times as much as this.
pub(crate) fn endings(name: &str) -> impl Iterator<Item = (&str, i32)> {
    // Hardly any has a sign and ten digits.
    let is_long = |tail: &[u8; 11]| tail[0] == b'-' && tail[1] != b'0';
    let lens = match name.as_bytes().last_chunk() {
        Some(tail) if is_long(tail) => [11, 10],
        _ => [10, 11],
    };
    lens.into_iter().filter_map(|len| {
        let (before, number) = name.split_at_checked(name.len().checked_sub(len)?)?;
        Some((before, parse_sequence(number)?))
    })
}

/// The number at the end of a name, and the kind that the part before it stands for.
fn numbered(name: &str) -> Option<(i32, Kind)> {
    let marked = endings(name).find_map(|(before, number)| {
        let (_, kind) = MARKERS.iter().find(|(marker, _)| before.ends_with(marker))?;
        Some((number, *kind))
    });
    let is_recipe = |before: &str| before.starts_with("x-") && before.ends_with('-');
    let of_recipe =
        || endings(name).find(|(before, _)| is_recipe(before)).map(|it| (it.1, Kind::Exclusive));
    marked.or_else(of_recipe).or_else(|| {
        // What looks like a sign may be a dash in front of a number of another length.
        let digits = name.get(name.len().checked_sub(10)?..)?;
        let number = parse_sequence(digits).filter(|_| !digits.starts_with('-'))?;
        Some((number, Kind::Unknown))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3b5f6a0e-0000-4000-8000-0123456789ab";

    #[track_caller]
    fn check(name: &str, expected: Option<(i32, Kind)>) {
        assert_eq!(numbered(name), expected, "{name:?}");
    }

    #[test]
    fn names_of_all_implementations_are_parsed() {
        check(&format!("_c_{UUID}-lock-0000000012"), Some((12, Kind::Exclusive)));
        check("_c_00112233445566778899aabbccddeeff-lock-0000000012", Some((12, Kind::Exclusive)));
        check("lock-0000000012", Some((12, Kind::Exclusive)));
        check("00112233445566778899aabbccddeeff__lock__0000000003", Some((3, Kind::Exclusive)));
        check("00112233445566778899aabbccddeeff__rlock__0000000003", Some((3, Kind::Read)));
        check(&format!("_c_{UUID}-__READ__0000000004"), Some((4, Kind::Read)));
        check(&format!("_c_{UUID}-__WRIT__0000000004"), Some((4, Kind::Write)));
        check("x-72057858583691264-0000000005", Some((5, Kind::Exclusive)));
        check("x--123-0000000005", Some((5, Kind::Exclusive)));
        check("x-123--2147483648", Some((i32::MIN, Kind::Exclusive)));
        check("x-123--000000001", Some((-1, Kind::Exclusive)));
        check("report_lock_0000000006", Some((6, Kind::Exclusive)));
        check("lock--2147483648", Some((i32::MIN, Kind::Exclusive)));
        check("lock--000000001", Some((-1, Kind::Exclusive)));
    }

    #[test]
    fn foreign_names_count_only_with_a_number() {
        check("member-0000000007", Some((7, Kind::Unknown)));
        check("0000000007", Some((7, Kind::Unknown)));
        for name in
            ["", "0", "zzz", "meta", "x-1-", "lock-", "lock-12", "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}x"]
        {
            check(name, None);
        }
    }

    #[test]
    fn order_is_by_number_alone_across_the_wrap() {
        let entry = |name: &str| Entry::parse(name.to_owned()).unwrap();
        let ahead = |a: &str, b: &str| entry(a).is_ahead_of(&entry(b));
        assert!(ahead("z-lock-0000000001", "a-lock-0000000002"));
        assert!(ahead("lock-2147483647", "lock--2147483648"));
        assert!(ahead("lock--2147483648", "lock--2147483647"));
        assert!(ahead("a__WRIT__0000000004", "a__READ__0000000004"));
        assert!(!ahead("a__READ__0000000004", "b__WRIT__0000000004"));
        assert!(!ahead("lock-0000000001", "lock-0000000001"));
    }
}
