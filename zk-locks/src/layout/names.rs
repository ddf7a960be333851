//! Names of one's own.

use super::Role;
use crate::entry::{Kind, endings};

/// Names of one's own, for [`Layout::Custom`](crate::Layout::Custom): `<prefix><uuid><marker><number>`, if not told otherwise.
///
/// Whoever shares the lock under other names has to count these as contenders. Ours that have another layout
/// wait for them as for [strangers](crate::Strangers), and cannot tell readers from writers.
///
/// ```
/// use zk_locks::{Layout, Names};
///
/// const OURS: Layout = Layout::Custom(
///     Names::new("-mutex-").prefix("job-").read_write("-shared-", "-alone-"),
/// );
/// // As those have them who call their nodes read-<host>-<number> and write-<host>-<number>.
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

/// What stands first in a name, behind the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum First {
    /// `<prefix><uuid><marker>`.
    Uuid,
    /// The same, with no dashes in the id.
    Hex,
    /// `<prefix><marker><hex>`, and once more what the marker ends with.
    Marker,
    /// `<prefix><marker>`, and no id.
    Nothing,
}

/// The names of [`Layout::HostType`](crate::Layout::HostType).
pub(super) const HOST_TYPE: Names = Names::new("-W-").read_write("-R-", "-W-").id_without_dashes();

/// The names of [`Layout::Bare`](crate::Layout::Bare).
pub(super) const BARE: Names = Names::new("lock-").read_write("read_", "write_").without_id();

impl Names {
    /// Names with this marker between id and number, for exclusive locks; for anything else there are none yet.
    ///
    /// # Panics
    /// The marker is empty. So it is with the others.
    pub const fn new(marker: &'static str) -> Self {
        let lock = checked(marker);
        let (read_write, lease, lead, first) = (None, None, None, First::Uuid);
        Self { prefix: "", lock, read_write, lease, lead, first }
    }

    /// The same with something in front of the id, or of the [marker](Names::marker_first).
    pub const fn prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    /// The same with names for the sides of a read/write lock, whose markers must differ.
    pub const fn read_write(mut self, read: &'static str, write: &'static str) -> Self {
        self.read_write = Some((checked(read), checked(write)));
        self
    }

    /// The same with names for the permits of a semaphore.
    pub const fn lease(mut self, marker: &'static str) -> Self {
        self.lease = Some(checked(marker));
        self
    }

    /// The same with names for candidates in an election.
    pub const fn lead(mut self, marker: &'static str) -> Self {
        self.lead = Some(checked(marker));
        self
    }

    /// The same with ids of 32 digits without dashes, for those who split names at dashes.
    pub const fn id_without_dashes(mut self) -> Self {
        self.first = First::Hex;
        self
    }

    /// The same with the marker in front of the id, which has no dashes and is followed by what the marker ends with:
    /// `read_<hex>_<number>` for the marker `read_`. What begins so is taken for it, whatever follows.
    pub const fn marker_first(mut self) -> Self {
        self.first = First::Marker;
        self
    }

    /// The same without ids: `<prefix><marker><number>`, and what is not called exactly so is none of these. The id is
    /// then in the data, in front of the [description](crate::Builder::description), and a node costs one read more to
    /// give back, as another one may have its name by then.
    ///
    /// For locks and read/write locks, which cannot be [downgraded](crate::WriteGuard::downgrade) then.
    pub const fn without_id(mut self) -> Self {
        self.first = First::Nothing;
        self
    }

    pub(super) fn has_ids(self) -> bool {
        self.first != First::Nothing
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

    /// Whether what stands before a number is a name with this marker.
    fn is_marked(self, before: &str, marker: &str) -> bool {
        match self.first {
            First::Uuid | First::Hex => before.ends_with(marker),
            First::Marker => {
                before.strip_prefix(self.prefix).is_some_and(|rest| rest.starts_with(marker))
            }
            First::Nothing => before.strip_prefix(self.prefix) == Some(marker),
        }
    }

    /// What a node of such a name wants, and its number.
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
            let (_, number) = endings(name).find(|(before, _)| self.is_marked(before, marker))?;
            Some((marker.len(), (number, kind)))
        });
        // One marker may be the end of another, or its beginning. Of two that are the same the writer's counts.
        read.max_by_key(|(length, _)| *length).map(|(_, numbered)| numbered)
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
    fn names_are_in_the_order_that_was_asked_for() {
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
    fn a_marker_in_front_is_read_there_and_nowhere_else() {
        let names = Names::new("lock-").read_write("read-", "read-write-").marker_first();
        let read = |name: &str| names.numbered(name).map(|(_, kind)| kind);
        assert_eq!(read("read-web-1-0000000007"), Some(Kind::Read));
        assert_eq!(read("read-write-web-1-0000000007"), Some(Kind::Write));
        assert_eq!(read("read-0000000007"), Some(Kind::Read));
        assert_eq!(read("web-read-0000000007"), None);
        assert_eq!(read("read-web"), None);
        assert_eq!(names.prefix("x").numbered("read-web-1-0000000007"), None);
    }
}
