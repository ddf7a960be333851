//! Waiters of each recipe look again, although no event reaches them.
//!
//! Servers tell a client nothing of a node that it may no longer read, and the watch is gone with that.

use std::{future::Future, pin::Pin, time::Duration};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use zk_client::{AclList, Id, Perms};
use zk_locks::{AcquireError, Client, DoubleBarrier, Lock, RwLock, Semaphore, SimpleLock};
use zk_testkit::proxy::{Match, Proxy};
use zk_tests::{
    network::{Network, pass},
    test_with,
};

use crate::locks::support::{Setup, client_on, in_virtual_time, on_each_release, within};

const SOON: Option<Duration> = Some(Duration::from_millis(100));

const SECOND: Duration = Duration::from_secs(1);

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

/// Waiters differ by up to a third, so that they do not all ask at once; so many that one of them waits for all of it.
#[test_with(in_virtual_time)]
async fn waiters_look_again_after_45_seconds(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let paths: Vec<String> = (0..16).map(|number| format!("/lock-{number}")).collect();
    let mut held = Vec::new();
    for path in &paths {
        held.push(within(Lock::new(&other, path).acquire()).await.unwrap());
    }
    let mut waiting = JoinSet::new();
    for path in &paths {
        let lock = Lock::new(&zk, path);
        waiting.spawn(async move {
            let begun = Instant::now();
            drop(lock.acquire().await.unwrap());
            begun.elapsed()
        });
    }
    pass(Duration::from_secs(3)).await;
    let unreadable = AclList::from_iter([Id::anyone().may(Perms::WRITE | Perms::ADMIN)]);
    for guard in held {
        other.set_acl(guard.path(), &unreadable).await.unwrap();
        within(guard.release()).await.unwrap();
    }
    let waits = within(waiting.join_all()).await;
    let (shortest, longest) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    assert!(*shortest >= Duration::from_secs(30), "an event has reached one: {waits:?}");
    let most = Duration::from_secs(45);
    assert!(*longest > most - SECOND && *longest < most + SECOND / 10, "{waits:?}");
}
