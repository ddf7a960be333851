//! What nodes are called and which of the others count: sharing locks with other implementations.

use crate::entry::{Entry, Kind, endings};

/// Whose names a lock's nodes have.
///
/// All who share a lock have to see each other's nodes, and to agree on their order. What others see is a
/// matter of names alone; ours sees the nodes of all of these whatever its own are called.
///
/// | layout | exclusive lock | read, write | seen by |
/// |---|---|---|---|
/// | [`Curator`](Layout::Curator) | `_c_<uuid>-lock-` | `_c_<uuid>-__READ__`, `…__WRIT__` | Curator, go-zookeeper, ZooKeeper's own recipes, kazoo with `extra_lock_patterns=["-lock-"]` |
/// | [`Kazoo`](Layout::Kazoo) | `<hex>__lock__` | `<hex>__rlock__`, `<hex>__lock__` | kazoo |
/// | [`Go`](Layout::Go) | `_c_<hex>-lock-` | `_c_<hex>-__READ__`, `…__WRIT__` | the same as Curator's |
/// | [`Recipe`](Layout::Recipe) | `x-<uuid>-` | none | ZooKeeper's own recipes in Java and C |
/// | [`Custom`](Layout::Custom) | as one likes | as one likes | those who have the same names |
///
/// In an [election](crate::Election) the nodes are `_c_<uuid>-latch-` (Curator's `LeaderLatch`), `<hex>__lock__`
/// (kazoo's `Election`) and `_c_<hex>-latch-`; ZooKeeper's own recipes have none that fits.
///
/// Stock kazoo and stock Curator do not see each other: a path that both use, and ours, needs a kazoo class
/// with Curator's names (`_NODE_NAME` and `_EXCLUDE_NAMES` of a subclass).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// Apache Curator's names, which most others understand.
    #[default]
    Curator,
    /// kazoo's names.
    Kazoo,
    /// go-zookeeper's names.
    Go,
    /// The names of the recipes in ZooKeeper's distribution. There is no read/write lock among them.
    Recipe,
    /// Names of one's own.
    Custom(Names),
}

/// Names of one's own, for [`Layout::Custom`]: `<prefix><uuid><marker><number>`.
///
/// Whoever shares the lock under other names has to count these as contenders. Ours that have another layout
/// wait for them as for [strangers](Strangers), and cannot tell readers from writers.
///
/// ```
/// use zk_locks::{Layout, Names};
///
/// const OURS: Layout = Layout::Custom(
///     Names::new("-mutex-").prefix("job-").read_write("-shared-", "-alone-"),
/// );
/// # let _ = OURS;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Names {
    prefix: &'static str,
    lock: &'static str,
    read_write: Option<(&'static str, &'static str)>,
    lease: Option<&'static str>,
    lead: Option<&'static str>,
}

impl Names {
    /// Names with this marker between id and number, for exclusive locks; for anything else there are none yet.
    ///
    /// # Panics
    /// The marker is empty. So it is with the others.
    pub const fn new(marker: &'static str) -> Self {
        let lock = checked(marker);
        Self { prefix: "", lock, read_write: None, lease: None, lead: None }
    }

    /// The same with something in front of the id.
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

    fn marker(self, role: Role) -> Option<&'static str> {
        match role {
            Role::Lock => Some(self.lock),
            Role::Read => self.read_write.map(|(read, _)| read),
            Role::Write => self.read_write.map(|(_, write)| write),
            Role::Lease => self.lease,
            Role::Lead => self.lead,
        }
    }

    /// What a node of such a name wants, and its number.
    fn numbered(self, name: &str) -> Option<(i32, Kind)> {
        let kinds = [
            (Role::Lock, Kind::Exclusive),
            (Role::Read, Kind::Read),
            (Role::Write, Kind::Write),
            (Role::Lease, Kind::Lease),
            (Role::Lead, Kind::Lead),
        ];
        let read = kinds.into_iter().filter_map(|(role, kind)| {
            let marker = self.marker(role)?;
            let (_, number) = endings(name).find(|(before, _)| before.ends_with(marker))?;
            Some((marker.len(), (number, kind)))
        });
        // One marker may be the end of another.
        read.max_by_key(|(length, _)| *length).map(|(_, numbered)| numbered)
    }
}

const fn checked(marker: &'static str) -> &'static str {
    assert!(!marker.is_empty(), "a marker has at least one character");
    marker
}

/// What becomes of children of a lock's path that are no contenders of any known implementation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strangers {
    /// Who has a sequence number is waited for as an exclusive contender; who has none is reported (as a
    /// `tracing` warning) and does not count. The safe side.
    #[default]
    Wait,
    /// Only names of known implementations count.
    Ignore,
    /// Any stranger is an error, before anything is created. Costs a round trip.
    Refuse,
}

/// What a node is created for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Lock,
    Read,
    Write,
    Lease,
    Lead,
}

impl Layout {
    /// The name of a node up to its sequence number; `None` if there is none for the role. The id makes it
    /// unique.
    pub(crate) fn name(self, role: Role, id: &str) -> Option<String> {
        let hex = || id.replace('-', "");
        let label = match role {
            Role::Lock => "lock-",
            Role::Read => "__READ__",
            Role::Write => "__WRIT__",
            Role::Lease => "lease-",
            Role::Lead => "latch-",
        };
        match (self, role) {
            (Self::Curator, _) => Some(format!("_c_{id}-{label}")),
            (Self::Go, _) => Some(format!("_c_{}-{label}", hex())),
            (Self::Kazoo, Role::Read) => Some(hex() + "__rlock__"),
            (Self::Kazoo, Role::Lock | Role::Write | Role::Lead) => Some(hex() + "__lock__"),
            (Self::Recipe, Role::Lock) => Some(format!("x-{id}-")),
            (Self::Custom(names), role) => {
                Some(format!("{}{id}{}", names.prefix, names.marker(role)?))
            }
            (Self::Kazoo, Role::Lease)
            | (Self::Recipe, Role::Read | Role::Write | Role::Lease | Role::Lead) => None,
        }
    }
}

impl Layout {
    /// The names that nobody knows but who has been told.
    pub(crate) const fn names(self) -> Option<Names> {
        match self {
            Self::Custom(names) => Some(names),
            _ => None,
        }
    }
}

/// Which children of a path have a place in one lock's queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) strangers: Strangers,
    /// Names that are known besides those of known implementations.
    pub(crate) names: Option<Names>,
    /// Of several locks under one path, the one with this name.
    pub(crate) named: Option<String>,
}

impl Filter {
    /// Reads a child's name; gives it back if it has no place in the queue.
    pub(crate) fn read<N: AsRef<str>>(&self, name: N) -> Result<Entry<N>, N> {
        let entry = self.parse(name)?;
        let counts = match &self.named {
            Some(lock) => lock_name(entry.name.as_ref()) == Some(lock),
            None => entry.kind != Kind::Unknown || self.strangers == Strangers::Wait,
        };
        if counts { Ok(entry) } else { Err(entry.name) }
    }

    /// Reads a name, whether or not it counts here; gives it back if it has no number.
    pub(crate) fn parse<N: AsRef<str>>(&self, name: N) -> Result<Entry<N>, N> {
        match self.names.and_then(|names| names.numbered(name.as_ref())) {
            Some((sequence, kind)) => Ok(Entry { name, sequence, kind }),
            None => Entry::parse(name),
        }
    }

    /// Whether a child that has no place in the queue must be told of: it is none of another lock's.
    pub(crate) fn is_strange(&self, name: &str) -> bool {
        self.named.is_none() || lock_name(name).is_none()
    }
}

/// What separates a lock's name from the sequence number where several share a path.
pub(crate) const NAME_END: &str = "_lock_";

/// The lock that a node belongs to where several share a path: `<lock>_lock_<sequence>`, perhaps behind an
/// id.
fn lock_name(name: &str) -> Option<&str> {
    let (lock, _) = name.rsplit_once(NAME_END)?;
    let Some(protected) = lock.strip_prefix("_c_") else { return Some(lock) };
    // The id is a UUID with its dashes.
    protected.get(36..)?.strip_prefix('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3b5f6a0e-0000-4000-8000-0123456789ab";

    #[test]
    fn every_name_that_is_given_is_read_as_what_it_is() {
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
    fn names_of_ones_own_are_read_by_who_knows_them_and_are_strangers_to_others() {
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
    fn locks_that_share_a_path_are_told_apart_by_their_whole_names() {
        let filter = Filter { named: Some("report".to_owned()), ..Filter::default() };
        let counts = |name: &str| filter.read(name.to_owned()).is_ok();
        assert!(counts("report_lock_0000000001"));
        assert!(counts(&format!("_c_{ID}-report_lock_0000000001")));
        assert!(!counts("my-report_lock_0000000001"));
        assert!(!counts("report_lock_report2_lock_0000000001"));
        assert!(!counts("lock-0000000001"));
        assert!(!filter.is_strange("other_lock_0000000001"));
        assert!(filter.is_strange("other"));
    }

    #[test]
    fn strangers_with_a_number_count_only_if_they_are_waited_for() {
        let counts = |strangers, name: &str| {
            Filter { strangers, ..Filter::default() }.read(name.to_owned()).is_ok()
        };
        assert!(counts(Strangers::Wait, "member-0000000007"));
        assert!(!counts(Strangers::Ignore, "member-0000000007"));
        assert!(!counts(Strangers::Wait, "member"));
        assert!(counts(Strangers::Ignore, "x-1-0000000007"));
    }
}
