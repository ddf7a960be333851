//! Whose names a lock's nodes have: those of every implementation that is known.

use super::{
    Role,
    names::{BARE, HOST_TYPE, Names},
};

/// Whose names a lock's nodes have.
///
/// All who share a lock have to see each other's nodes, and to agree on their order. What others see is a
/// matter of names alone.
///
/// | layout | exclusive lock | read, write | seen by |
/// |---|---|---|---|
/// | [`Curator`](Layout::Curator) | `_c_<uuid>-lock-` | `_c_<uuid>-__READ__`, `…__WRIT__` | Curator, go-zookeeper, ZooKeeper's own recipes, kazoo with `extra_lock_patterns=["-lock-"]` |
/// | [`Kazoo`](Layout::Kazoo) | `<hex>__lock__` | `<hex>__rlock__`, `<hex>__lock__` | kazoo |
/// | [`Go`](Layout::Go) | `_c_<hex>-lock-` | `_c_<hex>-__READ__`, `…__WRIT__` | the same as Curator's |
/// | [`Recipe`](Layout::Recipe) | `x-<uuid>-` | none | ZooKeeper's own recipes in Java and C |
/// | [`HostType`](Layout::HostType) | `<hex>-W-` | `<hex>-R-`, `<hex>-W-` | those whose names are `<host>-R-` and `<host>-W-` |
/// | [`Bare`](Layout::Bare) | `lock-` | `read_`, `write_` | those whose names are a kind and a number |
/// | [`Custom`](Layout::Custom) | as one likes | as one likes | those who have the same names |
///
/// Behind each is the sequence number. What ours sees of others:
///
/// | name in front of the number | counts as | in which layouts |
/// |---|---|---|
/// | ends with `lock-`, `__lock__` or `_lock_`; begins with `x-` and ends with `-` | exclusive | all |
/// | ends with `__WRIT__` | a writer | all |
/// | ends with `__READ__` or `__rlock__` | a reader | all |
/// | ends with `latch-`; with `lease-` | a candidate; a permit: waited for like an exclusive lock | all |
/// | ends with `-R-`; with `-W-` | a reader; a writer | `HostType` |
/// | is `read_`; is `write_` | a reader; a writer | `Bare` |
/// | is as [`Names`] say | what they say | `Custom` with these names |
/// | is anything else | a [stranger](crate::Strangers) | all |
///
/// A name without a number, of ten digits (or a minus sign and at least nine), has no place in any queue. Of several locks under
/// [one path](crate::Lock::named) only the nodes of the one name count, and of those all.
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
    /// Who asks, for what, and the number, with dashes in between: as textbooks describe the read/write lock. An id of
    /// the attempt stands for who asks. Those whose own host has a dash in its name may not be able to read their own
    /// names; ours reads them.
    HostType,
    /// What is asked for and the number, and no id: see [`Names::without_id`], which says what that costs. For those who
    /// sort names as texts.
    Bare,
    /// Names of one's own.
    Custom(Names),
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
            (Self::HostType, role) => HOST_TYPE.name(role, id),
            (Self::Bare, role) => BARE.name(role, id),
            (Self::Custom(names), role) => names.name(role, id),
            (Self::Kazoo, Role::Lease)
            | (Self::Recipe, Role::Read | Role::Write | Role::Lease | Role::Lead) => None,
        }
    }

    /// The names that nobody knows but who has been told.
    pub(crate) const fn names(self) -> Option<Names> {
        match self {
            Self::HostType => Some(HOST_TYPE),
            Self::Bare => Some(BARE),
            Self::Custom(names) => Some(names),
            Self::Curator | Self::Kazoo | Self::Go | Self::Recipe => None,
        }
    }
}
