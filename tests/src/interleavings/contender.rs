//! One contender: an acquire, a hold, a release.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::Notify, task::JoinHandle};
use zk_client::Client;
use zk_locks::{
    AcquireError, FencingToken, Guard, Lock, ReadGuard, ReleaseError, RwLock, Semaphore, WriteGuard,
};

use super::scenario::{LOCK, PERMITS, SEMAPHORE, Wish};

/// Where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    Holding {
        token: FencingToken,
        path: String,
    },
    /// It has begun to release.
    Releasing {
        path: String,
    },
    Done(Outcome),
}

/// How it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Released,
    NotReleased(String),
    NotGranted(AcquireError),
    GaveUp,
}

/// One contender.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) client: usize,
    pub(super) wish: Wish,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    phase: Mutex<Phase>,
    release: Notify,
}

impl Shared {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contender {
    /// Begins to ask for what it wants.
    pub(super) fn begin(client: usize, zk: &Client, wish: Wish) -> Self {
        let shared = Arc::new(Shared { phase: Mutex::new(Phase::Waiting), release: Notify::new() });
        let task = tokio::spawn(contend(zk.clone(), wish, shared.clone()));
        Self { client, wish, shared, task }
    }

    pub(super) fn phase(&self) -> Phase {
        self.shared.phase().clone()
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(*self.shared.phase(), Phase::Done(_))
    }

    pub(super) fn release(&self) {
        self.shared.release.notify_one();
    }

    /// Drops the acquire where it is.
    pub(super) fn give_up(&self) {
        self.task.abort();
        *self.shared.phase() = Phase::Done(Outcome::GaveUp);
    }
}

async fn contend(zk: Client, wish: Wish, shared: Arc<Shared>) {
    match wish {
        Wish::Lock => {
            let lock = Lock::builder(&zk, LOCK).recheck(None).build();
            hold(lock.acquire().await, |guard| guard, Guard::release, &shared).await;
        }
        Wish::Read => {
            let lock = RwLock::builder(&zk, LOCK).recheck(None).build();
            hold(lock.read().await, |guard| guard, ReadGuard::release, &shared).await;
        }
        Wish::Write => {
            let lock = RwLock::builder(&zk, LOCK).recheck(None).build();
            hold(lock.write().await, |guard| guard, WriteGuard::release, &shared).await;
        }
        Wish::Permit => {
            let semaphore = Semaphore::builder(&zk, SEMAPHORE).recheck(None).build();
            let semaphore = semaphore.with_permits(PERMITS);
            hold(semaphore.acquire().await, |guard| guard, Guard::release, &shared).await;
        }
    }
}

async fn hold<G, F>(
    acquired: Result<G, AcquireError>,
    plain: impl Fn(&G) -> &Guard,
    release: impl FnOnce(G) -> F,
    shared: &Shared,
) where
    F: Future<Output = Result<(), ReleaseError>>,
{
    let guard = match acquired {
        Ok(guard) => guard,
        Err(error) => {
            *shared.phase() = Phase::Done(Outcome::NotGranted(error));
            return;
        }
    };
    let (token, path) = (plain(&guard).token(), plain(&guard).path().to_owned());
    *shared.phase() = Phase::Holding { token, path: path.clone() };
    shared.release.notified().await;
    *shared.phase() = Phase::Releasing { path };
    let outcome = match release(guard).await {
        Ok(()) => Outcome::Released,
        Err(error) => Outcome::NotReleased(error.to_string()),
    };
    *shared.phase() = Phase::Done(outcome);
}
