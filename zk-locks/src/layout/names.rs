//! Custom names.

use super::{Role, id::begins_with_id};
use crate::entry::{Entry, Kind, endings};

/// Custom names, for [`Layout::Custom`](crate::Layout::Custom): `<prefix><uuid><marker><number>` by default.
///
/// Contenders that share the lock under other names have to count these as contenders. Contenders of this crate with
/// another layout wait for them as for [strangers](crate::ForeignNodes), and cannot tell readers from writers.
///
/// Attempts fail with [`Cause::InvalidArgument`](zk_client::Cause::InvalidArgument), before they write anything, if some
/// names would have two meanings:
/// * A marker is another one and hexadecimal digits on the side of the id, as `b-` is beside `-`. Its last dash may be
///   missing, since it passes for the sign in front of a number of ten digits.
/// * A marker is one that [all layouts](crate::Layout) know and a dash, as `lock--` is.
///
/// ```
/// use zk_locks::{Layout, Names};
///
/// const OURS: Layout = Layout::Custom(
///     Names::new("-mutex-").prefix("job-").read_write("-shared-", "-alone-"),
/// );
/// // For programs that call their nodes read-<host>-<number> and write-<host>-<number>.
/// const THEIRS: Layout =
///     Layout::Custom(Names::new("lock-").read_write("read-", "write-").marker_first());
/// # let _ = (OURS, THEIRS);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Names {
    prefix: &'static str,
    lock: &'static str,
    read_write: Option<(&'static str, &'static str)>,
    lease: Option<&'static str>,
    lead: Option<&'static str>,
    first: First,
}

/// The first part of a name, after the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum First {
    /// `<prefix><uuid><marker>`.
    Uuid,
    /// `<prefix><hex><marker>`: the id without dashes.
    Hex,
    /// `<prefix><marker><hex>`, and the last character of the marker again.
    Marker,
    /// `<prefix><marker>`, without an id.
    Nothing,
}

/// The names of [`Layout::HostType`](crate::Layout::HostType).
pub(super) const HOST_TYPE: Names = Names::new("-W-").read_write("-R-", "-W-").id_without_dashes();

/// The names of [`Layout::Bare`](crate::Layout::Bare).
pub(super) const BARE: Names = Names::new("lock-").read_write("read_", "write_").without_id();

impl Names {
    /// Creates names for exclusive locks, with this marker between id and number; other roles have none yet.
    ///
    /// # Panics
    /// If the marker is empty. The same holds for the other methods.
    pub const fn new(marker: &'static str) -> Self {
        let lock = checked(marker);
        let (read_write, lease, lead, first) = (None, None, None, First::Uuid);
        Self { prefix: "", lock, read_write, lease, lead, first }
    }

    /// Sets the text in front of the id, or of the [marker](Names::marker_first).
    pub const fn prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    /// Sets the markers of a read/write lock's two sides, which must differ.
    ///
    /// A write lock whose marker ends as other [layouts](crate::Layout)' locks do, such as `write-lock-`, is not
    /// [downgraded](crate::WriteGuard::downgrade): contenders without these names expect no reader behind it.
    pub const fn read_write(mut self, read: &'static str, write: &'static str) -> Self {
        self.read_write = Some((checked(read), checked(write)));
        self
    }

    /// Sets the marker of the permits of a semaphore.
    pub const fn lease(mut self, marker: &'static str) -> Self {
        self.lease = Some(checked(marker));
        self
    }

    /// Sets the marker of the candidates in an election.
    pub const fn lead(mut self, marker: &'static str) -> Self {
        self.lead = Some(checked(marker));
        self
    }

    /// Uses ids of 32 digits without dashes, for programs that split names at dashes.
    pub const fn id_without_dashes(mut self) -> Self {
        self.first = First::Hex;
        self
    }

    /// Puts the marker in front of the id, which has no dashes and is followed by the marker's last character:
    /// `read_<hex>_<number>` for the marker `read_`. Any name with this beginning counts, whatever follows.
    pub const fn marker_first(mut self) -> Self {
        self.first = First::Marker;
        self
    }

    /// Leaves out ids: `<prefix><marker><number>`, matched exactly. The id is then in the data, in front of the
    /// [description](crate::Builder::description). When the path is deleted and its numbers begin anew, another node may
    /// have the name: so a release costs one more read, as does a grant that goes by a listing, and there are no
    /// [transactions](crate::Guard::transaction), since servers can check a name but not whose node it is.
    ///
    /// For locks and read/write locks, which cannot be [downgraded](crate::WriteGuard::downgrade) then.
    pub const fn without_id(mut self) -> Self {
        self.first = First::Nothing;
        self
    }

    pub(super) fn has_ids(self) -> bool {
        self.first != First::Nothing
    }

    /// Whether such a name contains an id, as ours do.
    pub(super) fn has_id(self, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(self.prefix) else { return false };
        match self.first {
            First::Uuid | First::Hex => begins_with_id(rest),
            First::Marker => {
                self.markers().filter_map(|marker| rest.strip_prefix(marker)).any(begins_with_id)
            }
            First::Nothing => false,
        }
    }

    fn marker(self, role: Role) -> Option<&'static str> {
        match role {
            Role::Lock => Some(self.lock),
            Role::Read => self.read_write.map(|(read, _)| read),
            Role::Write => self.read_write.map(|(_, write)| write),
            Role::Lease | Role::Lead if !self.has_ids() => None,
            Role::Lease => self.lease,
            Role::Lead => self.lead,
        }
    }

    /// The name of a node up to its sequence number.
    pub(super) fn name(self, role: Role, id: &str) -> Option<String> {
        let (Self { prefix, .. }, marker) = (self, self.marker(role)?);
        let hex = || id.replace('-', "");
        Some(match self.first {
            First::Uuid => format!("{prefix}{id}{marker}"),
            First::Hex => format!("{prefix}{}{marker}", hex()),
            First::Marker => {
                let end = marker.chars().next_back().unwrap_or('-');
                format!("{prefix}{marker}{}{end}", hex())
            }
            First::Nothing => format!("{prefix}{marker}"),
        })
    }

    fn markers(self) -> impl Iterator<Item = &'static str> {
        let (read, write) = self.read_write.unzip();
        [Some(self.lock), read, write, self.lease, self.lead].into_iter().flatten()
    }

    /// Whether some names, with the ids that they happen to have, are of another marker too, which is the first one and the
    /// digits next to it. Without its last dash as well: that passes for the sign of a number.
    pub(super) fn is_ambiguous(self) -> bool {
        let is_of_an_id = |text: &str| {
            !text.is_empty() && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_other = |marker: &str, other: &str| match self.first {
            First::Uuid | First::Hex => [Some(marker), marker.strip_suffix('-')]
                .into_iter()
                .flatten()
                .any(|marker| other.strip_suffix(marker).is_some_and(is_of_an_id)),
            First::Marker => other.strip_prefix(marker).is_some_and(is_of_an_id),
            First::Nothing => false,
        };
        self.markers().any(|marker| self.markers().any(|other| is_other(marker, other)))
    }

    /// Whether others take the dash at the end of some marker for the number's sign, since what is in front of it is a
    /// name too: `lock--2000000000` is one of `lock-` and a negative number, ahead of those that were there before it.
    pub(super) fn ends_in_a_sign(self) -> bool {
        let roles = [Role::Lock, Role::Read, Role::Write, Role::Lease, Role::Lead];
        roles.into_iter().filter_map(|role| self.name(role, "0")).any(|before| {
            // Only numbers of ten digits may have a sign in front.
            let name = format!("{before}{}", i32::MAX);
            Entry::parse(name).is_ok_and(|entry| entry.sequence < 0)
        })
    }

    /// Whether the part before a number is a name with this marker.
    fn is_marked(self, before: &str, marker: &str) -> bool {
        match self.first {
            First::Uuid | First::Hex => before.ends_with(marker),
            First::Marker => {
                before.strip_prefix(self.prefix).is_some_and(|rest| rest.starts_with(marker))
            }
            First::Nothing => before.strip_prefix(self.prefix) == Some(marker),
        }
    }

    /// Whether such a part ends where the number begins, and not in front of a dash before that.
    fn ends(self, before: &str, marker: &str) -> bool {
        self.first != First::Marker || before.chars().next_back() == marker.chars().next_back()
    }

    /// The number of a node with such a name, and its kind.
    pub(super) fn numbered(self, name: &str) -> Option<(i32, Kind)> {
        let kinds = [
            (Role::Lock, Kind::Exclusive),
            (Role::Read, Kind::Read),
            (Role::Write, Kind::Write),
            (Role::Lease, Kind::Lease),
            (Role::Lead, Kind::Lead),
        ];
        let read = kinds.into_iter().filter_map(|(role, kind)| {
            let marker = self.marker(role)?;
            let is_marked = |(before, number): &(&str, i32)| {
                self.is_marked(before, marker) && (*number >= 0 || self.ends(before, marker))
            };
            let (_, number) = endings(name).find(is_marked)?;
            Some((marker.len(), (number, kind)))
        });
        // One marker may be a suffix or prefix of another: the longest wins. Of two equal ones the reader's does not count.
        read.max_by_key(|(length, (_, kind))| (*length, *kind != Kind::Read))
            .map(|(_, numbered)| numbered)
    }
}

const fn checked(marker: &'static str) -> &'static str {
    assert!(!marker.is_empty(), "a marker has at least one character");
    marker
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3b5f6a0e-0000-4000-8000-0123456789ab";

    #[test]
    fn names_have_the_configured_order() {
        let names = Names::new("lock_").prefix("p-").read_write("-R-", "write_");
        let name = |names: Names, role| names.name(role, ID);
        let hex = "3b5f6a0e0000400080000123456789ab";
        assert_eq!(name(names, Role::Read), Some(format!("p-{ID}-R-")));
        assert_eq!(name(names.id_without_dashes(), Role::Read), Some(format!("p-{hex}-R-")));
        assert_eq!(name(names.marker_first(), Role::Write), Some(format!("p-write_{hex}_")));
        assert_eq!(name(names.marker_first(), Role::Read), Some(format!("p--R-{hex}-")));
        assert_eq!(name(names, Role::Lease), None);
    }

    #[test]
    fn leading_marker_is_read_only_in_front() {
        let names = Names::new("lock-").read_write("read-", "read-write-").marker_first();
        let read = |name: &str| names.numbered(name).map(|(_, kind)| kind);
        assert_eq!(read("read-web-1-0000000007"), Some(Kind::Read));
        assert_eq!(read("read-write-web-1-0000000007"), Some(Kind::Write));
        assert_eq!(read("read-0000000007"), Some(Kind::Read));
        assert_eq!(read("web-read-0000000007"), None);
        assert_eq!(read("read-web"), None);
        assert_eq!(names.prefix("x").numbered("read-web-1-0000000007"), None);
    }

    #[test]
    fn markers_that_an_id_completes_are_known() {
        let names = |lock, read| Names::new(lock).read_write(read, "w-");
        let id = ID.replace('-', "");
        // Such as these.
        assert_eq!(names("-", "b-").numbered(&format!("{ID}-0000000007")), Some((7, Kind::Read)));
        let first = names("r", "r3b").marker_first();
        assert_eq!(first.numbered(&format!("r{id}r0000000007")), Some((7, Kind::Read)));
        for (names, is_so) in [
            (names("-", "b-"), true),
            (names("-", "b-").id_without_dashes(), true),
            (first, true),
            (names("-", "b-").without_id(), false),
            // With a dash that passes for a sign.
            (names("r-", "br"), true),
            (names("-", "b"), true),
            (names("r-", "br").marker_first(), false),
            (Names::new("-").lead("b-"), true),
            (names("-lock-", "-r-lock-"), false),
            (names("-lock-", "-lock-"), false),
            (names("read-write-", "read-").marker_first(), false),
            (Names::new("-"), false),
        ] {
            assert_eq!(names.is_ambiguous(), is_so, "{names:?}");
        }
    }

    #[test]
    fn markers_whose_dash_passes_for_a_sign_are_known() {
        let job = Names::new("-mutex-").prefix("job-").read_write("-shared-", "-alone-");
        let of_recipe = Names::new("-mutex-").prefix("x-");
        for (names, is_so) in [
            (job, false),
            (of_recipe, false),
            (Names::new("lock-"), false),
            (Names::new("--"), false),
            (Names::new("lock--"), true),
            (Names::new("lock--").without_id(), true),
            // The name ends in the last character of the marker alone.
            (Names::new("lock--").marker_first(), false),
            (job.lead("__READ__-"), true),
            (of_recipe.lease("--"), true),
            // The longer one counts, and to others neither is known.
            (Names::new("mine").read_write("read", "mine-"), false),
            (HOST_TYPE, false),
            (BARE, false),
        ] {
            assert_eq!(names.ends_in_a_sign(), is_so, "{names:?}");
        }
    }

    /// Who takes a writer for a reader reads beside it.
    #[test]
    fn of_two_equal_markers_the_writers_counts() {
        let names = Names::new("lock-").read_write("rw-", "rw-");
        let read = |names: Names, name: &str| names.numbered(name);
        let name = format!("{ID}rw-0000000007");
        assert_eq!(read(names, &name), Some((7, Kind::Write)));
        assert_eq!(read(names.marker_first(), "rw-web-1-0000000007"), Some((7, Kind::Write)));
        // Nor who takes a lock for one.
        let names = Names::new("lock-").read_write("lock-", "w-");
        assert_eq!(read(names, &format!("{ID}lock-0000000007")), Some((7, Kind::Exclusive)));
    }
}
