//! Many at once, and many who give up.

use std::sync::Arc;

use tokio::task::JoinSet;
use zk_locks::{FencingToken, Guard, Lock};
use zk_proto::OpCode;
use zk_tests::{fenced::FencedResource, test_with};

use crate::locks::support::{Setup, dropped_after, emptied, on_each_release_threaded, within};

/// Works under a lock, as far as whatever checks tokens is concerned.
async fn work(resource: &FencedResource, guard: Guard) -> FencingToken {
    let token = guard.token();
    resource.enter(token.get());
    tokio::task::yield_now().await;
    resource.leave(token.get());
    within(guard.release()).await.unwrap();
    token
}

const CONTENDERS: u64 = 200;
const SESSIONS: usize = 10;
const ROUNDS: u64 = 5;

/// A number that looks made up, and is the same every time.
const fn made_up(contender: u64, round: u64) -> u64 {
    let mixed = (contender * ROUNDS + round + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 29
}

/// Scenario 2.
#[test_with(on_each_release_threaded)]
async fn remaining_contenders_are_all_granted(setup: Setup) {
    let path = setup.existing("crowd").await;
    let resource = Arc::new(FencedResource::default());
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        clients.push(setup.client().await);
    }
    let mut crowd = JoinSet::new();
    for contender in 0..CONTENDERS {
        let zk = &clients[usize::try_from(contender).unwrap() % SESSIONS];
        let (lock, resource) = (Lock::new(zk, &path), resource.clone());
        crowd.spawn(async move {
            let mut granted = 0;
            for round in 0..ROUNDS {
                let chance = made_up(contender, round);
                let guard = match chance % 5 {
                    0 => dropped_after((chance / 5 % 8) as usize, lock.acquire()).await,
                    _ => Some(within(lock.acquire()).await),
                };
                if let Some(guard) = guard {
                    work(&resource, guard.unwrap()).await;
                    granted += 1;
                }
            }
            granted
        });
    }
    let granted: usize = crowd.join_all().await.into_iter().sum();
    resource.assert_clean();
    assert_eq!(resource.entered(), granted);
    let patient = (0..CONTENDERS)
        .flat_map(|contender| (0..ROUNDS).map(move |round| made_up(contender, round)))
        .filter(|chance| chance % 5 != 0);
    assert!(granted >= patient.count());
    emptied(&setup.outsider, &path).await;
}

/// Scenario 56, which other clients lose (kazoo #732).
#[test_with(on_each_release_threaded)]
async fn ten_thousand_failed_tries_write_nothing(setup: Setup) {
    let path = setup.existing("tried").await;
    let holder = Lock::new(&setup.outsider, &path).acquire().await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let lock = Lock::new(&zk, &path);
        tasks.spawn(async move {
            for _ in 0..1000 {
                assert!(lock.try_acquire().await.unwrap().is_none());
            }
        });
    }
    tasks.join_all().await;
    let requests = proxy.counts();
    assert_eq!(requests.requests(OpCode::GET_CHILDREN2), 10_000);
    assert_eq!(requests.requests(OpCode::CREATE2), 0);
    assert_eq!(setup.outsider.children(&path).await.unwrap().0.len(), 1);
    // A holder of one second watches its own node.
    assert!(setup.watched().await.iter().all(|path| path == holder.path()));
    within(holder.release()).await.unwrap();
}
