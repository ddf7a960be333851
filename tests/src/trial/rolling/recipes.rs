//! A turn under each recipe.

use zk_locks::{
    AcquireError, Client, CohortLock, Election, Guards, LatchState, Lock, MultiLock, RwLock,
    Semaphore, SimpleLock,
};

use super::contender::Turns;
use crate::fenced::{
    Access::{Alone, Shared},
    FencedResource,
};

/// Everything is below this.
pub(super) const ROOT: &str = "/rolling";

/// How many the semaphore lets in.
const PERMITS: u32 = 3;

/// The locks of which each multi-lock takes two.
const ACCOUNTS: [&str; 3] = ["/rolling/accounts/a", "/rolling/accounts/b", "/rolling/accounts/c"];

/// What is contended for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Recipe {
    Lock,
    RwLock,
    Semaphore,
    SemaphoreMutex,
    MultiLock,
    Election,
    LeaderLatch,
    CohortLock,
    SimpleLock,
    HerdLock,
}

impl Recipe {
    pub(super) const ALL: [Self; 10] = [
        Self::Lock,
        Self::RwLock,
        Self::Semaphore,
        Self::SemaphoreMutex,
        Self::MultiLock,
        Self::Election,
        Self::LeaderLatch,
        Self::CohortLock,
        Self::SimpleLock,
        Self::HerdLock,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Lock => "Lock",
            Self::RwLock => "RwLock",
            Self::Semaphore => "Semaphore",
            Self::SemaphoreMutex => "SemaphoreMutex",
            Self::MultiLock => "MultiLock",
            Self::Election => "Election",
            Self::LeaderLatch => "LeaderLatch",
            Self::CohortLock => "CohortLock",
            Self::SimpleLock => "SimpleLock",
            Self::HerdLock => "HerdLock",
        }
    }

    /// How many tasks share a session.
    pub(super) const fn tasks(self) -> usize {
        match self {
            Self::CohortLock => 4,
            _ => 2,
        }
    }

    fn path(self) -> String {
        format!("{ROOT}/{}", self.name())
    }
}

/// What the locks protect: one resource for each recipe that is granted to one at a time, and so on.
#[derive(Debug)]
pub(super) struct Registers {
    lock: FencedResource,
    rw_lock: FencedResource,
    semaphore: FencedResource,
    semaphore_mutex: FencedResource,
    accounts: [FencedResource; ACCOUNTS.len()],
    election: FencedResource,
    latch: FencedResource,
    cohort: FencedResource,
    simple: FencedResource,
    herd: FencedResource,
}

impl Default for Registers {
    fn default() -> Self {
        let alone = FencedResource::default;
        Self {
            lock: alone(),
            rw_lock: FencedResource::shared(usize::MAX),
            semaphore: FencedResource::shared(PERMITS as usize),
            semaphore_mutex: alone(),
            accounts: Default::default(),
            election: alone(),
            latch: alone(),
            cohort: alone(),
            simple: alone(),
            herd: alone(),
        }
    }
}

impl Registers {
    /// How many there were at all of them, and the first of each in words.
    pub(super) fn violations(&self) -> (usize, Vec<String>) {
        let Self { lock, rw_lock, semaphore, semaphore_mutex, accounts, .. } = self;
        let Self { election, latch, cohort, simple, herd, .. } = self;
        let others = [
            ("Lock", lock),
            ("RwLock", rw_lock),
            ("Semaphore", semaphore),
            ("SemaphoreMutex", semaphore_mutex),
            ("Election", election),
            ("LeaderLatch", latch),
            ("CohortLock", cohort),
            ("SimpleLock", simple),
            ("HerdLock", herd),
        ];
        let mut all = 0;
        let mut shown = Vec::new();
        for (name, resource) in ACCOUNTS.into_iter().zip(accounts).chain(others) {
            let (violations, first) = resource.violations();
            all += violations;
            shown.extend(first.into_iter().map(|violation| format!("{name}: {violation}")));
        }
        (all, shown)
    }
}

/// The recipes of one session.
pub(super) struct Kit {
    pub(super) recipe: Recipe,
    lock: Lock,
    ahead_looking_lock: Lock,
    rw_lock: RwLock,
    semaphore: Semaphore,
    semaphore_mutex: Semaphore,
    multi_locks: [MultiLock; ACCOUNTS.len()],
    election: Election,
    cohort: CohortLock,
    simple: SimpleLock,
    herd: Lock,
}

impl Kit {
    pub(super) fn new(zk: &Client, recipe: Recipe) -> Self {
        let path = recipe.path();
        let [a, b, c] = ACCOUNTS;
        Self {
            recipe,
            lock: Lock::new(zk, &path),
            ahead_looking_lock: Lock::builder(zk, &path).look_ahead(true).build(),
            rw_lock: RwLock::new(zk, &path),
            semaphore: Semaphore::new(zk, &path, PERMITS),
            semaphore_mutex: Semaphore::new(zk, &path, 1),
            // In different orders: none of them may wait for another for ever.
            multi_locks: [[a, b], [b, c], [c, a]].map(|paths| MultiLock::new(zk, paths)),
            election: Election::new(zk, &path),
            cohort: CohortLock::new(zk, &path),
            simple: SimpleLock::new(zk, &format!("{path}/node")),
            herd: Lock::builder(zk, &path).herd().build(),
        }
    }
}

impl Turns {
    /// Takes the recipe's lock once.
    pub(super) async fn take_one(&self) -> Result<(), AcquireError> {
        let (kit, registers) = (&*self.kit, &self.arena.registers);
        match kit.recipe {
            Recipe::Lock => {
                let lock = if self.is_one_in(2) { &kit.lock } else { &kit.ahead_looking_lock };
                let guard = self.ask(lock.acquire()).await?;
                self.hold(&guard, &registers.lock, Alone).await;
                self.finish(guard.release()).await
            }
            Recipe::RwLock if self.number % 3 == 0 => self.write().await,
            Recipe::RwLock => self.read().await,
            Recipe::Semaphore => {
                let guards = self.ask(kit.semaphore.acquire_many(1 + self.turn % 2)).await?;
                let held =
                    guards.iter().map(|guard| registers.semaphore.visit(guard.token(), Shared));
                let held: Vec<_> = held.collect();
                if let Err(lost) = guards.scope(tokio::task::yield_now()).await {
                    self.arena.lost(lost);
                }
                drop(held);
                self.finish(guards.release()).await
            }
            Recipe::SemaphoreMutex => {
                let guard = self.ask(kit.semaphore_mutex.acquire()).await?;
                self.hold(&guard, &registers.semaphore_mutex, Alone).await;
                self.finish(guard.release()).await
            }
            Recipe::MultiLock => {
                let both = &kit.multi_locks[self.turn % kit.multi_locks.len()];
                let guards = self.ask(both.acquire()).await?;
                self.hold_all(&guards).await;
                self.finish(guards.release()).await
            }
            Recipe::Election => {
                let leadership = self.ask(kit.election.campaign(b"candidate")).await?;
                self.hold(&leadership, &registers.election, Alone).await;
                self.finish(leadership.resign()).await
            }
            Recipe::LeaderLatch => self.lead().await,
            Recipe::CohortLock => {
                let guard = self.ask(kit.cohort.acquire()).await?;
                self.hold(&guard, &registers.cohort, Alone).await;
                self.finish(guard.release()).await
            }
            Recipe::SimpleLock => {
                let guard = self.ask(kit.simple.acquire()).await?;
                let used = guard.scope(async {
                    let _inside = registers.simple.visit(guard.token(), Alone);
                    tokio::task::yield_now().await;
                });
                if let Err(lost) = used.await {
                    self.arena.lost(lost);
                }
                self.finish(guard.release()).await
            }
            Recipe::HerdLock => {
                let guard = self.ask(kit.herd.acquire()).await?;
                self.hold(&guard, &registers.herd, Alone).await;
                self.finish(guard.release()).await
            }
        }
    }

    /// Writes, and goes on to read now and then.
    async fn write(&self) -> Result<(), AcquireError> {
        let resource = &self.arena.registers.rw_lock;
        let guard = self.ask(self.kit.rw_lock.write()).await?;
        self.hold(&guard, resource, Alone).await;
        if !self.is_one_in(3) {
            return self.finish(guard.release()).await;
        }
        match guard.downgrade().await {
            Ok(guard) => {
                self.hold(&guard, resource, Shared).await;
                self.finish(guard.release()).await
            }
            Err(error) => Err(error.cause),
        }
    }

    /// Reads, and tries to go on to write now and then.
    async fn read(&self) -> Result<(), AcquireError> {
        let resource = &self.arena.registers.rw_lock;
        let guard = self.ask(self.kit.rw_lock.read()).await?;
        self.hold(&guard, resource, Shared).await;
        if !self.is_one_in(3) {
            return self.finish(guard.release()).await;
        }
        match guard.try_upgrade().await {
            Ok(guard) => {
                self.hold(&guard, resource, Alone).await;
                self.finish(guard.release()).await
            }
            Err(error) => match error.cause {
                AcquireError::WouldDeadlock => self.finish(error.guard.release()).await,
                cause => Err(cause),
            },
        }
    }

    async fn hold_all(&self, guards: &Guards) {
        let accounts = ACCOUNTS.into_iter().zip(&self.arena.registers.accounts);
        let inside: Vec<_> = accounts
            .filter_map(|(path, resource)| Some(resource.visit(guards.get(path)?.token(), Alone)))
            .collect();
        if let Err(lost) = guards.scope(tokio::task::yield_now()).await {
            self.arena.lost(lost);
        }
        drop(inside);
    }

    /// Stands for election with a latch until it has led once.
    async fn lead(&self) -> Result<(), AcquireError> {
        let latch = self.kit.election.latch(b"candidate");
        let mut states = latch.subscribe();
        let led = self.ask(async {
            loop {
                match &*states.borrow_and_update() {
                    LatchState::Leading { .. } => return Ok(()),
                    LatchState::Ended(error) => return Err(error.clone()),
                    _ => {}
                }
                if states.changed().await.is_err() {
                    return Err(AcquireError::Used);
                }
            }
        });
        led.await?;
        // Not any more, if it was lost on the way here.
        if let Some(token) = latch.token() {
            let _inside = self.arena.registers.latch.visit(token, Alone);
            tokio::task::yield_now().await;
        }
        if !self.is_one_in(4) {
            latch.resign().await;
        }
        Ok(())
    }
}
