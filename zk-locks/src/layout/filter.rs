//! Which children of a path have a place in a queue.

use zk_client::{Cause, bytes::Bytes};

use super::{
    Names,
    id::{ID_LENGTH, ID_LENGTHS, begins_with_id, is_id},
};
use crate::entry::{Entry, Kind};

/// How to treat children of a lock's path that are no contenders of any [implementation](crate::Layout) known there.
///
/// Only those with a number can be ahead of a contender. The others are reported by `tracing`, at debug level, and do
/// not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForeignNodes {
    /// A stranger with a sequence number counts as an exclusive contender, in the order of the numbers. The safe side.
    #[default]
    Wait,
    /// Only names of known implementations count.
    Ignore,
    /// Any stranger, with or without a number, is an error, before the contender has a node there. Costs a round trip. One that comes
    /// later ends the waits of those who are in the queue, when they list it the next time; holders keep the lock.
    Refuse,
}

/// Which children of a path have a place in one lock's queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) foreign_nodes: ForeignNodes,
    /// Names known besides those of known implementations.
    pub(crate) names: Option<Names>,
    /// The name of the lock, if several share the path.
    pub(crate) named: Option<String>,
}

impl Filter {
    /// Parses a child's name; returns the name if it has no place in the queue.
    pub(crate) fn read<N: AsRef<str>>(&self, name: N) -> Result<Entry<N>, N> {
        let entry = self.parse(name)?;
        let counts = match &self.named {
            Some(lock) => is_of(lock, entry.name.as_ref()),
            None => entry.kind != Kind::Unknown || self.foreign_nodes == ForeignNodes::Wait,
        };
        if counts { Ok(entry) } else { Err(entry.name) }
    }

    /// Parses a name, whether or not it counts here; returns the name if it has no number.
    pub(crate) fn parse<N: AsRef<str>>(&self, name: N) -> Result<Entry<N>, N> {
        // The nodes of a named lock are called after it, and not as others are here.
        let names = self.names.filter(|_| self.named.is_none());
        match names.and_then(|names| names.numbered(name.as_ref())) {
            Some((sequence, kind)) => Ok(Entry { name, sequence, kind }),
            None => Entry::parse(name),
        }
    }

    /// Whether the names of our nodes contain ids. Otherwise their data does, in front of the description.
    pub(crate) fn has_ids(&self) -> bool {
        self.named.is_none() && self.names.is_none_or(Names::has_ids)
    }

    /// Checks the lock's name, which other implementations that split names must find again, or the custom names.
    pub(crate) fn check(&self) -> Result<(), Cause> {
        let is_none = |lock: &str| lock.is_empty() || lock.contains('/') || lock.contains(NAME_END);
        match &self.named {
            Some(lock) if is_none(lock) => Err(Cause::InvalidArgument(
                "a lock's name is not empty and has no slash and no `_lock_` in it",
            )),
            None if self.names.is_some_and(Names::is_ambiguous) => Err(Cause::InvalidArgument(
                "a marker is another one and hexadecimal digits of an id",
            )),
            None if self.names.is_some_and(Names::ends_in_a_sign) => Err(Cause::InvalidArgument(
                "a marker is that of another layout and a dash, which passes for a sign",
            )),
            _ => Ok(()),
        }
    }

    /// Whether a node's name contains an id, so that no other node ever has it: also where all that is known is the path,
    /// and locks of any settings may be there.
    pub(crate) fn has_id(&self, name: &str) -> bool {
        let is_custom = |names: Names| names.has_id(name);
        self.has_ids() && (begins_with_id(name) || self.names.is_some_and(is_custom))
    }

    /// A node's data without the id.
    pub(crate) fn said(&self, name: &str, data: Bytes) -> Bytes {
        if self.has_id(name) { data } else { without_id(data) }
    }

    /// The contenders among these children, the earliest first.
    pub(crate) fn queue(&self, names: Vec<String>) -> Vec<Entry> {
        let mut queue: Vec<Entry> =
            names.into_iter().filter_map(|name| self.read(name).ok()).collect();
        // As seen from one of them: without that, places too far apart have no order, which no sort can be without.
        let base = queue.first().map_or(0, |entry| entry.sequence);
        queue.sort_by(|one, other| one.order_from(base, other));
        queue
    }

    /// Whether a child without a place in the queue is to be reported: it is none of another lock's.
    pub(crate) fn is_foreign(&self, name: &str) -> bool {
        self.named.is_none() || !name.contains(NAME_END)
    }
}

/// Data without the id of an attempt in front of it, if there is one.
pub(crate) fn without_id(data: Bytes) -> Bytes {
    match data.split_at_checked(ID_LENGTH) {
        Some((id, [b' ', ..])) if is_id(id) => data.slice(ID_LENGTH + 1..),
        _ => data,
    }
}

/// The separator between a lock's name and the sequence number where several locks share a path.
pub(crate) const NAME_END: &str = "_lock_";

/// Whether a node belongs to this lock of several that share a path: `<lock>_lock_<number>`, perhaps behind an id.
fn is_of(lock: &str, name: &str) -> bool {
    let Some((before, _)) = name.rsplit_once(NAME_END) else { return false };
    let behind_id = |length| before.strip_prefix("_c_")?.get(length..)?.strip_prefix('-');
    before == lock || ID_LENGTHS.into_iter().any(|length| behind_id(length) == Some(lock))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Layout, Role},
        *,
    };

    const ID: &str = "3b5f6a0e-0000-4000-8000-0123456789ab";

    #[test]
    fn names_of_each_role_parse_as_their_kind() {
        let roles = [
            (Role::Lock, Kind::Exclusive),
            (Role::Read, Kind::Read),
            (Role::Write, Kind::Write),
            (Role::Lead, Kind::Lead),
        ];
        for layout in [Layout::Curator, Layout::Kazoo, Layout::Go, Layout::Recipe] {
            for (role, kind) in roles {
                let Some(name) = layout.name(role, ID) else { continue };
                let entry = Entry::parse(format!("{name}0000000012")).unwrap();
                let exclusive =
                    matches!(layout, Layout::Kazoo | Layout::Recipe) && kind != Kind::Read;
                let expected = if exclusive { Kind::Exclusive } else { kind };
                assert_eq!((entry.sequence, entry.kind), (12, expected), "{layout:?} {role:?}");
            }
        }
    }

    #[test]
    fn ids_are_found_in_names() {
        let any = Filter::default();
        for layout in [Layout::Curator, Layout::Kazoo, Layout::Go, Layout::Recipe] {
            let name = layout.name(Role::Lock, ID).unwrap();
            assert!(any.has_id(&format!("{name}0000000012")), "{layout:?}");
        }
        for name in ["lock-0000000001", "report_lock_0000000001", "x-72057858583691264-0000000005"]
        {
            assert!(!any.has_id(name), "{name}");
        }
        let named = Filter { named: Some("report".to_owned()), ..Filter::default() };
        assert!(!named.has_id(&format!("_c_{ID}-report_lock_0000000001")));
    }

    #[test]
    fn custom_names_are_foreign_to_others() {
        let names = Names::new("-lock-").prefix("p-").read_write("-r-lock-", "-w-");
        let filter = Filter { names: Some(names), ..Filter::default() };
        for (role, kind) in [
            (Role::Lock, Some(Kind::Exclusive)),
            (Role::Read, Some(Kind::Read)),
            (Role::Write, Some(Kind::Write)),
            (Role::Lead, None),
            (Role::Lease, None),
        ] {
            let name = Layout::Custom(names).name(role, ID);
            assert_eq!(name.is_some(), kind.is_some(), "{role:?}");
            let Some(name) = name else { continue };
            let read = |filter: &Filter| {
                let entry = filter.read(format!("{name}0000000007")).unwrap();
                (entry.sequence, Some(entry.kind))
            };
            assert_eq!(read(&filter), (7, kind));
            assert_eq!(read(&Filter::default()).0, 7);
        }
        let theirs = filter.read("0123456789abcdef__rlock__0000000003".to_owned()).unwrap();
        assert_eq!(theirs.kind, Kind::Read);
        assert!(filter.read("p-lock-12".to_owned()).is_err());
    }

    #[test]
    fn named_locks_match_by_the_whole_name() {
        let filter = Filter { named: Some("report".to_owned()), ..Filter::default() };
        let counts = |name: &str| filter.read(name.to_owned()).is_ok();
        assert!(counts("report_lock_0000000001"));
        assert!(counts(&format!("_c_{ID}-report_lock_0000000001")));
        // As go-zookeeper writes ids.
        let hex = ID.replace('-', "");
        assert!(counts(&format!("_c_{hex}-report_lock_0000000001")));
        assert!(!counts(&format!("_c_{hex}-my-report_lock_0000000001")));
        assert!(!counts("my-report_lock_0000000001"));
        assert!(!counts("report_lock_report2_lock_0000000001"));
        assert!(!counts("lock-0000000001"));
        assert!(!filter.is_foreign("other_lock_0000000001"));
        assert!(filter.is_foreign("other"));
    }

    /// Numbers so far apart that each is ahead of the next one, and the last of the first, as other programs may have made
    /// them, in any arrangement.
    #[test]
    fn numbers_without_an_order_are_listed() {
        let numbers = [1, i32::MAX - 7, i32::MIN + 7];
        let mut state = 1_u32;
        let mut drawn = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            numbers[usize::try_from(state >> 16).unwrap_or_default() % 3]
        };
        for count in 0..200 {
            let names = (0..count).map(|index| format!("{index}-lock-{:010}", drawn())).collect();
            assert_eq!(Filter::default().queue(names).len(), count);
        }
    }

    #[test]
    fn numbered_foreign_nodes_count_if_awaited() {
        let counts = |foreign_nodes, name: &str| {
            Filter { foreign_nodes, ..Filter::default() }.read(name.to_owned()).is_ok()
        };
        assert!(counts(ForeignNodes::Wait, "member-0000000007"));
        assert!(!counts(ForeignNodes::Ignore, "member-0000000007"));
        assert!(!counts(ForeignNodes::Wait, "member"));
        assert!(counts(ForeignNodes::Ignore, "x-1-0000000007"));
    }
}
