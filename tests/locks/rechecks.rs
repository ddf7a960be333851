//! Waiters of each recipe look again, although no event reaches them.
//!
//! Servers tell a client nothing of a node that it may no longer read, and the watch is gone with that.

use std::{future::Future, pin::Pin, time::Duration};

use tokio::time::sleep;
use zk_locks::{AcquireError, Client, DoubleBarrier, Lock, RwLock, Semaphore, SimpleLock};
use zk_testkit::proxy::{Match, Proxy};
use zk_tests::test_with;

use crate::locks::support::{Setup, on_each_release, within};

const SOON: Option<Duration> = Some(Duration::from_millis(100));

/// A waiter of one recipe, to which no event is told.
struct Deaf<'a> {
    setup: &'a Setup,
    proxy: Proxy,
    zk: Client,
    path: String,
}

impl<'a> Deaf<'a> {
    async fn new(setup: &'a Setup, name: &str) -> Self {
        let (proxy, zk) = setup.proxied().await;
        let path = setup.existing(&format!("{name}-recheck")).await;
        Self { setup, proxy, zk, path: format!("{path}/{name}") }
    }

    /// Lets it fall asleep, ends what it waits for, and sees it wake.
    fn wakes<'b, T: 'b>(
        &'b self,
        wait: impl Future<Output = Result<T, AcquireError>> + 'b,
        end: impl Future<Output = ()> + 'b,
    ) -> Pin<Box<dyn Future<Output = ()> + 'b>> {
        Box::pin(self.wakes_itself(wait, end))
    }

    async fn wakes_itself<T>(
        &self,
        wait: impl Future<Output = Result<T, AcquireError>>,
        end: impl Future<Output = ()>,
    ) {
        let silence = self.proxy.on(Match::notification()).drop_frame();
        let ended = async {
            while !self.setup.watched().await.iter().any(|it| it.starts_with(&self.path)) {
                sleep(Duration::from_millis(20)).await;
            }
            end.await;
            silence.fired().await;
        };
        let (woken, ()) = within(async { tokio::join!(wait, ended) }).await;
        drop(woken.unwrap());
    }
}

#[test_with(on_each_release)]
async fn waiters_of_locks_look_again(setup: Setup) {
    let there = &setup.outsider;
    let waiter = Deaf::new(&setup, "herd").await;
    let held = within(Lock::new(there, &waiter.path).acquire()).await.unwrap();
    let lock = Lock::builder(&waiter.zk, &waiter.path).herd().recheck(SOON).build();
    waiter.wakes(lock.acquire(), async { held.release().await.unwrap() }).await;

    let waiter = Deaf::new(&setup, "simple").await;
    let held = within(SimpleLock::new(there, &waiter.path).acquire()).await.unwrap();
    let lock = SimpleLock::builder(&waiter.zk, &waiter.path).recheck(SOON).build();
    waiter.wakes(lock.acquire(), async { held.release().await.unwrap() }).await;

    let waiter = Deaf::new(&setup, "read").await;
    let held = within(RwLock::new(there, &waiter.path).write()).await.unwrap();
    let lock = RwLock::builder(&waiter.zk, &waiter.path).recheck(SOON).build();
    waiter.wakes(lock.read(), async { held.release().await.unwrap() }).await;
}

#[test_with(on_each_release)]
async fn waiters_of_counts_look_again(setup: Setup) {
    let there = &setup.outsider;
    let waiter = Deaf::new(&setup, "permits").await;
    let held = within(Semaphore::new(there, &waiter.path, 1).acquire()).await.unwrap();
    let semaphore = Semaphore::builder(&waiter.zk, &waiter.path).recheck(SOON).build();
    waiter.wakes(semaphore.acquire(), async { held.release().await.unwrap() }).await;

    let (waiter, count) = (Deaf::new(&setup, "counted").await, setup.path("count"));
    let counted = Semaphore::new(there, &waiter.path, 0).counted_at(&count);
    counted.resize(0).await.unwrap();
    let semaphore = Semaphore::builder(&waiter.zk, &waiter.path).recheck(SOON).build();
    let semaphore = semaphore.counted_at(&count);
    waiter.wakes(semaphore.acquire(), async { counted.resize(1).await.unwrap() }).await;

    let waiter = Deaf::new(&setup, "double").await;
    let theirs = DoubleBarrier::new(there, &waiter.path, 2);
    let ours = DoubleBarrier::builder(&waiter.zk, &waiter.path).recheck(SOON).build();
    let ours = ours.of(2);
    let enter = async { drop(within(theirs.enter()).await.unwrap()) };
    waiter.wakes(ours.enter(), enter).await;
}
