//! Naming schemes of lock nodes: those of every known implementation.

use super::{
    Role,
    names::{BARE, HOST_TYPE, Names},
};

/// The naming scheme of a lock's nodes.
///
/// All contenders for a lock must see each other's nodes, and agree on their order. What others see depends on names
/// alone.
///
/// | layout | exclusive lock | read, write | seen by |
/// |---|---|---|---|
/// | [`Curator`](Layout::Curator) | `_c_<uuid>-lock-` | `_c_<uuid>-__READ__`, `…__WRIT__` | Curator, go-zookeeper, ZooKeeper's own recipes, kazoo with `extra_lock_patterns=["-lock-"]` |
/// | [`Kazoo`](Layout::Kazoo) | `<hex>__lock__` | `<hex>__rlock__`, `<hex>__lock__` | kazoo |
/// | [`Go`](Layout::Go) | `_c_<hex>-lock-` | `_c_<hex>-__READ__`, `…__WRIT__` | the same as Curator's |
/// | [`Recipe`](Layout::Recipe) | `x-<uuid>-` | none | ZooKeeper's own recipes in Java and C |
/// | [`HostType`](Layout::HostType) | `<hex>-W-` | `<hex>-R-`, `<hex>-W-` | programs whose names are `<host>-R-` and `<host>-W-` |
/// | [`Bare`](Layout::Bare) | `lock-` | `read_`, `write_` | programs whose names are a kind and a number |
/// | [`Custom`](Layout::Custom) | configurable | configurable | programs with the same names |
///
/// The sequence number follows each. What this crate makes of others' names:
///
/// | name in front of the number | counts as | in which layouts |
/// |---|---|---|
/// | ends with `lock-`, `__lock__` or `_lock_`; begins with `x-` and ends with `-` | exclusive | all |
/// | ends with `__WRIT__` | a writer | all |
/// | ends with `__READ__` or `__rlock__` | a reader | all |
/// | ends with `latch-`; with `lease-` | a candidate; a permit: waited for like an exclusive lock | all |
/// | ends with `-R-`; with `-W-` | a reader; a writer | `HostType` |
/// | is `read_`; is `write_` | a reader; a writer | `Bare` |
/// | matches the [`Names`] | the kind that they give | `Custom` with these names |
/// | is anything else | a [stranger](crate::ForeignNodes) | all |
///
/// A name without a number, of ten digits (or a minus sign and at least nine), has no place in any queue. Of several
/// locks under [one path](crate::Lock::named) only the nodes of the one name count, and of those all, in any layout.
///
/// What else there are names for. A recipe without names in its layout fails with
/// [`NoSuchName`](crate::AcquireError::NoSuchName), before it writes anything:
///
/// | layout | [`Lock`](crate::Lock) | [`RwLock`](crate::RwLock) | permit of a [`Semaphore`](crate::Semaphore) | candidate in an [`Election`](crate::Election) |
/// |---|---|---|---|---|
/// | `Curator` | yes | yes | `_c_<uuid>-lease-` | `_c_<uuid>-latch-`, as of Curator's `LeaderLatch` |
/// | `Go` | yes | yes | `_c_<hex>-lease-` | `_c_<hex>-latch-` |
/// | `Kazoo` | yes | yes | none | `<hex>__lock__`, as of kazoo's `Election` |
/// | `Recipe` | yes | none | none | none |
/// | `HostType` | yes | yes | none | none |
/// | `Bare` | yes | yes | none | none |
/// | `Custom` | yes | with [`read_write`](Names::read_write) | with [`lease`](Names::lease) | with [`lead`](Names::lead) |
///
/// `Custom` names [without ids](Names::without_id) are for locks and read/write locks alone.
///
/// Stock kazoo and stock Curator do not see each other: a path shared by both and this crate needs a kazoo class with
/// Curator's names (`_NODE_NAME` and `_EXCLUDE_NAMES` of a subclass).
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
    /// The names of the recipes in ZooKeeper's distribution, which have no read/write lock.
    Recipe,
    /// A host, a kind and the number, with dashes in between: as textbooks describe the read/write lock. An id of the
    /// attempt stands for the host. Programs whose own host has a dash in its name may not be able to read their own
    /// names; this crate reads them.
    HostType,
    /// The kind and the number, without an id: see [`Names::without_id`], also for what that costs. For programs that
    /// sort names as text.
    Bare,
    /// Custom names.
    Custom(Names),
}

impl Layout {
    /// The name of a node up to its sequence number; `None` if the layout has none for the role. The id makes it
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
            (Self::HostType, role) => HOST_TYPE.name(role, id),
            (Self::Bare, role) => BARE.name(role, id),
            (Self::Custom(names), role) => names.name(role, id),
            (Self::Kazoo, Role::Lease)
            | (Self::Recipe, Role::Read | Role::Write | Role::Lease | Role::Lead) => None,
        }
    }

    /// The names that other layouts do not know.
    pub(crate) const fn names(self) -> Option<Names> {
        match self {
            Self::HostType => Some(HOST_TYPE),
            Self::Bare => Some(BARE),
            Self::Custom(names) => Some(names),
            Self::Curator | Self::Kazoo | Self::Go | Self::Recipe => None,
        }
    }
}
