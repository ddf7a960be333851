//! What clients fight over: the recipes, and the places at which each is used.

use super::Options;

/// A recipe, or several that share their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recipe {
    /// The exclusive lock, with its tickets.
    Lock,
    /// The exclusive lock whose waiters watch all others, beside exclusive locks.
    HerdLock,
    /// The lock without a queue.
    SimpleLock,
    /// The read/write lock.
    RwLock,
    /// The semaphore, with as many permits as all clients say.
    Semaphore,
    /// The semaphore, with as many permits as a node says.
    CountedSemaphore,
    /// The semaphore of one permit, as a lock.
    SemaphoreMutex,
    /// Several exclusive locks at once, beside single ones.
    MultiLock,
    /// One node for several tasks of a client, beside exclusive locks.
    CohortLock,
    /// Leaders, by campaigns and by latches.
    Election,
    /// Waiting for a sign.
    Barrier,
    /// Waiting for each other.
    DoubleBarrier,
    /// Group membership.
    Group,
    /// A node that comes back.
    PersistentNode,
}

/// A place at which a recipe is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Site {
    pub(crate) recipe: Recipe,
    pub(crate) number: usize,
}

/// Queues that a multi-lock's clients choose from.
pub(crate) const QUEUES: usize = 3;

/// Permits of semaphores whose number is not written to a node.
pub(crate) const PERMITS: u32 = 2;

/// How many meet at a double barrier.
pub(crate) const PARTICIPANTS: usize = 2;

impl Recipe {
    /// All but the exclusive lock, which there always is.
    pub const OTHERS: [Self; 13] = [
        Self::HerdLock,
        Self::SimpleLock,
        Self::RwLock,
        Self::Semaphore,
        Self::CountedSemaphore,
        Self::SemaphoreMutex,
        Self::MultiLock,
        Self::CohortLock,
        Self::Election,
        Self::Barrier,
        Self::DoubleBarrier,
        Self::Group,
        Self::PersistentNode,
    ];

    /// What the paths of its places begin with.
    const fn folder(self) -> &'static str {
        match self {
            Self::Lock => "/locks/l",
            Self::HerdLock => "/herds/h",
            Self::SimpleLock => "/simple/s",
            Self::RwLock => "/rw/r",
            Self::Semaphore => "/permits/fixed",
            Self::CountedSemaphore => "/permits/counted",
            Self::SemaphoreMutex => "/permits/mutex",
            Self::MultiLock => "/multi/m",
            Self::CohortLock => "/cohorts/c",
            Self::Election => "/elections/e",
            Self::Barrier => "/barriers/b",
            Self::DoubleBarrier => "/double/d",
            Self::Group => "/groups/g",
            Self::PersistentNode => "/kept/k",
        }
    }
}

impl Site {
    pub(crate) const fn new(recipe: Recipe, number: usize) -> Self {
        Self { recipe, number }
    }

    /// Its path.
    pub(crate) fn path(self) -> String {
        format!("{}{}", self.recipe.folder(), self.number)
    }

    /// Where waiters have nodes, one behind the other; `None` if they have no order.
    pub(crate) fn queue(self) -> Option<String> {
        match self.recipe {
            Recipe::SimpleLock
            | Recipe::Semaphore
            | Recipe::CountedSemaphore
            | Recipe::SemaphoreMutex
            | Recipe::Barrier
            | Recipe::DoubleBarrier
            | Recipe::Group
            | Recipe::PersistentNode => None,
            _ => Some(self.path()),
        }
    }
}

impl Options {
    /// The exclusive locks of a run, and one place for each of its other recipes.
    pub(crate) fn sites(&self) -> Vec<Site> {
        let locks = (0..self.locks).map(|number| Site::new(Recipe::Lock, number));
        locks.chain(self.recipes.iter().map(|recipe| Site::new(*recipe, 0))).collect()
    }

    /// Whether a client changes nothing.
    pub(crate) fn only_reads(&self, client: u32) -> bool {
        self.readers && client % 5 == 4 && !self.is_keeper(client)
    }

    /// Whether a client does nothing but see to a node that comes back.
    pub(crate) fn is_keeper(&self, client: u32) -> bool {
        let is_last = client + 1 == self.clients;
        is_last && client > 1 && self.recipes.contains(&Recipe::PersistentNode)
    }
}
