//! A turn under each recipe.

use std::collections::BTreeMap;

use zk_locks::{
    AcquireError, Client, CohortLock, Election, Guard, Guards, LatchState, Lock, MultiLock,
    ReleaseError, RwLock, Semaphore, SimpleLock,
};

use super::contender::Turns;
use crate::fenced::{
    Access::{Alone, Shared},
    FencedResource, Visit,
};

/// Everything is below this.
pub(in crate::soak) const ROOT: &str = "/rolling";

/// How many the semaphore lets in.
const PERMITS: u32 = 3;

/// The locks of which each multi-lock takes two.
const ACCOUNTS: [&str; 3] = ["/rolling/accounts/a", "/rolling/accounts/b", "/rolling/accounts/c"];

/// What is contended for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::soak) enum Recipe {
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
    pub(in crate::soak) const ALL: [Self; 10] = [
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

    /// How many tasks share a session.
    pub(super) const fn tasks(self) -> usize {
        match self {
            Self::CohortLock => 4,
            _ => 2,
        }
    }

    /// How many may share what it protects.
    const fn sharers(self) -> usize {
        match self {
            Self::RwLock => usize::MAX,
            Self::Semaphore => PERMITS as usize,
            _ => 0,
        }
    }
}

/// What the locks protect: one resource for each recipe, and one for each account.
#[derive(Debug)]
pub(super) struct Resources {
    of: BTreeMap<Recipe, FencedResource>,
    accounts: BTreeMap<&'static str, FencedResource>,
}

impl Default for Resources {
    fn default() -> Self {
        let of = |recipe: Recipe| (recipe, FencedResource::shared(recipe.sharers()));
        Self {
            of: Recipe::ALL.map(of).into(),
            accounts: ACCOUNTS.map(|path| (path, FencedResource::default())).into(),
        }
    }
}

impl Resources {
    /// How many violations there were at all of them, and the first of each in words.
    pub(super) fn violations(&self) -> (usize, Vec<String>) {
        let of = self.of.iter().map(|(recipe, resource)| (format!("{recipe:?}"), resource));
        let accounts = self.accounts.iter().map(|(path, resource)| ((*path).to_owned(), resource));
        let (mut all, mut shown) = (0, Vec::new());
        for (name, resource) in accounts.chain(of) {
            let (violations, first) = resource.violations();
            all += violations;
            shown.extend(first.into_iter().map(|violation| format!("{name}: {violation}")));
        }
        (all, shown)
    }
}

/// What the tasks of one session contend with.
pub(super) struct Kit {
    pub(super) recipe: Recipe,
    zk: Client,
    path: String,
    /// The only lock that is of all tasks together.
    cohort: CohortLock,
}

impl Kit {
    pub(super) fn new(zk: &Client, recipe: Recipe) -> Self {
        let path = format!("{ROOT}/{recipe:?}");
        Self { recipe, zk: zk.clone(), cohort: CohortLock::new(zk, &path), path }
    }
}

impl Turns {
    fn resource(&self) -> &FencedResource {
        &self.shared.resources.of[&self.kit.recipe]
    }

    /// Takes the recipe's lock once.
    pub(super) async fn take_one(&self) -> Result<(), AcquireError> {
        let Kit { recipe, zk, path, cohort } = &*self.kit;
        match recipe {
            Recipe::Lock => {
                let lock = Lock::builder(zk, path).look_ahead(!self.is_one_in(2)).build();
                self.alone(lock.acquire(), |guard| guard, |guard| guard.release()).await
            }
            Recipe::RwLock if self.number % 3 == 0 => self.write(&RwLock::new(zk, path)).await,
            Recipe::RwLock => self.read(&RwLock::new(zk, path)).await,
            Recipe::Semaphore => {
                let semaphore = Semaphore::new(zk, path, PERMITS);
                let guards = self.ask(semaphore.acquire_many(1 + self.turn % 2)).await?;
                let visit = |guard: &Guard| self.resource().visit(guard.token(), Shared);
                let inside = guards.iter().map(visit).collect();
                self.hold_all(guards, inside).await
            }
            Recipe::SemaphoreMutex => {
                let mutex = Semaphore::new(zk, path, 1);
                self.alone(mutex.acquire(), |guard| guard, |guard| guard.release()).await
            }
            Recipe::MultiLock => {
                // In different orders: none of them may wait for another for ever.
                let [one, other] =
                    [0, 1].map(|number| ACCOUNTS[(self.turn + number) % ACCOUNTS.len()]);
                let guards = self.ask(MultiLock::new(zk, [one, other]).acquire()).await?;
                let accounts = &self.shared.resources.accounts;
                let visit = |path| Some(accounts[path].visit(guards.get(path)?.token(), Alone));
                let inside = [one, other].into_iter().filter_map(visit).collect();
                self.hold_all(guards, inside).await
            }
            Recipe::Election => {
                let election = Election::new(zk, path);
                let campaign = election.campaign(b"candidate");
                self.alone(campaign, |leadership| leadership, |leadership| leadership.resign())
                    .await
            }
            Recipe::LeaderLatch => self.lead(&Election::new(zk, path)).await,
            Recipe::CohortLock => {
                self.alone(cohort.acquire(), |guard| guard, |guard| guard.release()).await
            }
            Recipe::SimpleLock => {
                let lock = SimpleLock::new(zk, &format!("{path}/node"));
                let guard = self.ask(lock.acquire()).await?;
                let used = guard.scope(async {
                    let _inside = self.resource().visit(guard.token(), Alone);
                    self.shared.pace.hold().await;
                });
                if let Err(lost) = used.await {
                    self.shared.lost(lost);
                }
                self.finish(guard.release()).await
            }
            Recipe::HerdLock => {
                let lock = Lock::builder(zk, path).herd().build();
                self.alone(lock.acquire(), |guard| guard, |guard| guard.release()).await
            }
        }
    }

    /// Holds what only one may hold.
    async fn alone<G, R: Future<Output = Result<(), ReleaseError>>>(
        &self,
        acquire: impl Future<Output = Result<G, AcquireError>>,
        guard: fn(&G) -> &Guard,
        release: fn(G) -> R,
    ) -> Result<(), AcquireError> {
        let held = self.ask(acquire).await?;
        self.hold(guard(&held), self.resource(), Alone).await;
        self.finish(release(held)).await
    }

    /// Holds several guards, whose holder is inside of what they protect.
    async fn hold_all(&self, guards: Guards, inside: Vec<Visit<'_>>) -> Result<(), AcquireError> {
        if let Err(lost) = guards.scope(self.shared.pace.hold()).await {
            self.shared.lost(lost);
        }
        drop(inside);
        self.finish(guards.release()).await
    }

    /// Writes, and goes on to read now and then.
    async fn write(&self, lock: &RwLock) -> Result<(), AcquireError> {
        let guard = self.ask(lock.write()).await?;
        self.hold(&guard, self.resource(), Alone).await;
        if !self.is_one_in(3) {
            return self.finish(guard.release()).await;
        }
        let guard = guard.downgrade().await?;
        self.hold(&guard, self.resource(), Shared).await;
        self.finish(guard.release()).await
    }

    /// Reads, and tries to go on to write now and then.
    async fn read(&self, lock: &RwLock) -> Result<(), AcquireError> {
        let guard = self.ask(lock.read()).await?;
        self.hold(&guard, self.resource(), Shared).await;
        if !self.is_one_in(3) {
            return self.finish(guard.release()).await;
        }
        match guard.try_upgrade().await {
            Ok(guard) => {
                self.hold(&guard, self.resource(), Alone).await;
                self.finish(guard.release()).await
            }
            Err(error) => match error.cause {
                AcquireError::WouldDeadlock => self.finish(error.guard.release()).await,
                cause => Err(cause),
            },
        }
    }

    /// Stands for election with a latch until it has led once.
    async fn lead(&self, election: &Election) -> Result<(), AcquireError> {
        let latch = election.latch(b"candidate");
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
            let _inside = self.resource().visit(token, Alone);
            self.shared.pace.hold().await;
        }
        if !self.is_one_in(4) {
            latch.resign().await;
        }
        Ok(())
    }
}
