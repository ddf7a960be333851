//! Limits of the time for which a lock is held, of locks that are lost by then, or that have become others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use zk_locks::{DurableLock, Lock, Lost, Metrics, RwLock, Semaphore, Status};
use zk_proto::OpCode;
use zk_tests::{
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{client_on, in_virtual_time};

/// Of each test.
const LIMIT: Duration = Duration::from_secs(8);

/// Counts the deletes of one client.
fn count_deletes(network: &Network, of: &'static str) -> Arc<AtomicUsize> {
    let deletes = Arc::new(AtomicUsize::new(0));
    let counted = deletes.clone();
    network.direct(move |name, op| {
        if name == of && op == OpCode::DELETE {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        Disposition::Answered
    });
    deletes
}

/// A lock that is lost is held no longer: neither is that reported, nor is there anything to take away.
#[test_with(in_virtual_time)]
async fn nothing_is_reported_of_a_lock_that_was_lost(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let metrics = Arc::new(Metrics::default());
    let lock = Lock::builder(&zk, "/lock").max_hold(LIMIT / 2).release_after(LIMIT);
    let guard = lock.observer(metrics.clone()).build().acquire().await.unwrap();
    let permits = Semaphore::builder(&zk, "/permits").max_hold(LIMIT / 2).release_after(LIMIT);
    let permit = permits.observer(metrics.clone()).build().acquire().await.unwrap();
    let deletes = count_deletes(&network, "ours");
    other.delete(guard.path()).await.unwrap();
    other.delete(permit.path()).await.unwrap();
    assert_eq!((guard.lost().await, permit.lost().await), (Lost::NodeDeleted, Lost::NodeDeleted));
    pass(3 * LIMIT).await;
    assert_eq!(metrics.alarms(), 0);
    assert_eq!(deletes.load(Ordering::SeqCst), 0);
    drop((guard, permit));
    assert_eq!(metrics.losses(), 2);
}

/// It is lost because servers were not heard of for too long; the session lives on, and with it the node, which others
/// would wait for.
#[test_with(in_virtual_time)]
async fn limit_frees_what_was_lost_with_the_lease(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let metrics = Arc::new(Metrics::default());
    let lock = Lock::builder(&zk, "/lock").max_hold(LIMIT - LIMIT / 8).release_after(LIMIT);
    let guard = lock.observer(metrics.clone()).build().acquire().await.unwrap();
    network.cut("ours");
    assert_eq!(guard.lost().await, Lost::LeaseRanOut);
    network.heal();
    pass(LIMIT).await;
    assert_eq!(metrics.alarms(), 0);
    let next = Lock::new(&other, "/lock").try_acquire().await.unwrap();
    assert!(next.is_some(), "although the guard is still there");
    assert_eq!(guard.status(), Status::Lost(Lost::LeaseRanOut));
}

/// A holder of a durable lock renews it, however often something happens beside its grant.
#[test_with(in_virtual_time)]
async fn changes_beside_a_grant_do_not_put_its_renewal_off(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let guard = DurableLock::new(&zk, "/lock", "me").lease(LIMIT).acquire().await.unwrap();
    let beside = "/lock/grants/beside";
    for _ in 0..6 * 8 {
        other.create(beside, b"").await.unwrap();
        pass(LIMIT / 16).await;
        other.delete(beside).await.unwrap();
        pass(LIMIT / 16).await;
    }
    assert_eq!(guard.status(), Status::Held);
    guard.release().await.unwrap();
}

/// An upgrade is a grant of its own: what is held for writing may be held for as long as any other write lock.
#[test_with(in_virtual_time)]
async fn limit_of_an_upgraded_lock_begins_anew(network: Network) {
    let zk = client_on(&network, "ours").await;
    let metrics = Arc::new(Metrics::default());
    let lock = RwLock::builder(&zk, "/lock").release_after(LIMIT).observer(metrics.clone());
    let reading = lock.build().read().await.unwrap();
    pass(LIMIT * 3 / 4).await;
    let writing = reading.try_upgrade().await.unwrap();
    pass(LIMIT * 3 / 4).await;
    assert_eq!(writing.status(), Status::Held);
    let reading = writing.downgrade().await.unwrap();
    pass(LIMIT / 2).await;
    assert_eq!(reading.status(), Status::Lost(Lost::HeldTooLong));
    assert_eq!((metrics.grants(), metrics.alarms()), (2, 1));
}

/// What was not reported of a lock that was lost with its lease is reported as soon as it is held again, by a downgrade that
/// was under way: before it is taken away.
#[test_with(in_virtual_time)]
async fn limits_that_strike_without_a_lease_are_reported_with_the_next(network: Network) {
    let zk = client_on(&network, "ours").await;
    for releases in [false, true] {
        let metrics = Arc::new(Metrics::default());
        let lock = RwLock::builder(&zk, "/lock").max_hold(LIMIT * 7 / 8).observer(metrics.clone());
        let lock = if releases { lock.release_after(LIMIT) } else { lock };
        let writing = lock.build().write().await.unwrap();
        let limits_strike = async {
            network.cut("ours");
            pass(LIMIT + LIMIT / 16).await;
            assert_eq!(metrics.alarms(), 0, "the lease has run out");
            network.heal();
        };
        let (reading, ()) = tokio::join!(writing.downgrade(), limits_strike);
        let reading = reading.unwrap();
        if releases {
            assert_eq!(reading.lost().await, Lost::HeldTooLong);
        } else {
            pass(LIMIT / 4).await;
            assert_eq!(reading.status(), Status::Held);
        }
        assert_eq!(metrics.alarms(), 1 + u64::from(releases));
    }
}
