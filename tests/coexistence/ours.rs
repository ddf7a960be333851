//! Ours, as they are set up beside a class of theirs.

use std::pin::Pin;

use zk_client::{Client, path::join};
use zk_locks::{CohortLock, Guard, Layout, Lock, RwLock, SimpleLock};

use crate::coexistence::theirs::{Class, Mode, NAME};

/// One of ours, with its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ours {
    Simple,
    Named,
    Lock(Layout),
    Herd(Layout),
    Cohort(Layout),
    RwLock(Layout),
    RwHerd(Layout),
}

/// Gives a lock back.
pub(crate) type Release = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Ours that go with a class: the rows of the page for migrating users.
pub(crate) const fn matching(class: Class) -> &'static [Ours] {
    match class {
        Class::SimpleLock | Class::ExclusiveLock => &[Ours::Simple],
        Class::DistributedLock | Class::GuidHerd | Class::GuidNearest => &[
            Ours::Lock(Layout::Curator),
            Ours::Lock(Layout::Go),
            Ours::Lock(Layout::Recipe),
            Ours::Herd(Layout::Curator),
            Ours::Cohort(Layout::Curator),
        ],
        Class::ZooKeeperLock => &[Ours::Named],
        Class::InterProcessMutex => {
            &[Ours::Lock(Layout::Curator), Ours::Lock(Layout::Go), Ours::Herd(Layout::Curator)]
        }
        Class::GoLock => &[Ours::Lock(Layout::Go), Ours::Lock(Layout::Curator)],
        Class::InterProcessReadWriteLock => {
            &[Ours::RwLock(Layout::Curator), Ours::RwHerd(Layout::Go)]
        }
        Class::BareReadWrite => &[Ours::RwLock(Layout::Bare), Ours::RwHerd(Layout::Bare)],
        Class::BareText => &[Ours::Lock(Layout::Bare), Ours::Herd(Layout::Bare)],
        Class::KazooLocks => &[Ours::RwLock(Layout::Kazoo), Ours::RwHerd(Layout::Kazoo)],
        Class::HostHerd | Class::HostNearest => {
            &[Ours::RwLock(Layout::HostType), Ours::RwHerd(Layout::HostType)]
        }
    }
}

impl Ours {
    /// Waits for the lock.
    pub(crate) async fn acquire(
        self,
        zk: &Client,
        path: &str,
        mode: Mode,
        class: Class,
    ) -> Release {
        let guard: Guard = match self {
            Self::Simple => {
                let path = match class {
                    Class::ExclusiveLock => join(path, "lock"),
                    _ => path.to_owned(),
                };
                let guard = SimpleLock::new(zk, &path).acquire().await.unwrap();
                return Box::new(|| Box::pin(async { guard.release().await.unwrap() }));
            }
            Self::Cohort(layout) => {
                let lock = CohortLock::builder(zk, path).recheck(None).layout(layout).build();
                let guard = lock.acquire().await.unwrap();
                return Box::new(|| Box::pin(async { guard.release().await.unwrap() }));
            }
            Self::Named => {
                let lock = Lock::named(zk, path, NAME).recheck(None).build();
                lock.acquire().await.unwrap()
            }
            Self::Lock(layout) => {
                let lock = Lock::builder(zk, path).recheck(None).layout(layout).build();
                lock.acquire().await.unwrap()
            }
            Self::Herd(layout) => {
                let lock = Lock::builder(zk, path).herd().recheck(None).layout(layout).build();
                lock.acquire().await.unwrap()
            }
            Self::RwLock(layout) | Self::RwHerd(layout) => {
                let builder = RwLock::builder(zk, path).recheck(None).layout(layout);
                let lock = match self {
                    Self::RwHerd(_) => builder.herd().build(),
                    _ => builder.build(),
                };
                match mode {
                    Mode::Read => lock.read().await.unwrap().into(),
                    Mode::Write => lock.write().await.unwrap().into(),
                }
            }
        };
        Box::new(|| Box::pin(async { guard.release().await.unwrap() }))
    }
}
