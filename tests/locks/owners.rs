//! Whose a durable lock is: attempts of its owner, and what becomes of those that are given up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use zk_locks::{AcquireError, Client, DurableLock, Lock};
use zk_proto::OpCode;
use zk_tests::{
    network::{Disposition, Network, pass},
    polls::dropped_when_woken,
    test_with,
};

use crate::locks::support::{client_on, emptied, in_virtual_time, joined, within};

/// At any point, also between the grant and the next look of its caller, and while the session is being left.
#[test_with(in_virtual_time)]
async fn dropped_acquire_leaves_no_grant(network: Network) {
    let outsider = client_on(&network, "outsider").await;
    for leaves in [false, true] {
        let mut wakes = 0;
        loop {
            wakes += 1;
            let zk = client_on(&network, "ours").await;
            let lock = DurableLock::new(&zk, "/job", "job").without_lease();
            let ended = dropped_when_woken(wakes, lock.acquire()).await;
            drop(lock);
            if leaves {
                within(zk.detach()).await;
            }
            pass(Duration::from_secs(1)).await;
            if let Some(ended) = ended {
                assert!(wakes > 3, "it was never dropped");
                within(outsider.delete(ended.unwrap().path())).await.unwrap();
                break;
            }
            emptied(&outsider, "/job/grants").await;
        }
    }
}

/// Its owner's attempts are behind no other's, also those that had to wait at first.
#[test_with(in_virtual_time)]
async fn owner_that_drops_its_guard_waits_for_no_other(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let lock = DurableLock::new(&zk, "/job", "ours").without_lease();
    let theirs = DurableLock::new(&other, "/job", "theirs").without_lease();
    for is_first in [false, true] {
        let guard = within(lock.acquire()).await.unwrap();
        let waits = |lock: &DurableLock| {
            let lock = lock.clone();
            tokio::spawn(async move { lock.acquire().await })
        };
        let mut waiting = Vec::new();
        for lock in if is_first { [&lock, &theirs] } else { [&theirs, &lock] } {
            waiting.push(waits(lock));
            joined(&other, "/job/locks", waiting.len()).await;
        }
        pass(Duration::from_secs(3)).await;
        drop(guard);
        let (theirs, ours) = if is_first { (1, 0) } else { (0, 1) };
        pass(Duration::from_secs(1)).await;
        assert!(waiting[ours].is_finished() && !waiting[theirs].is_finished(), "{is_first}");
        for index in [ours, theirs] {
            within((&mut waiting[index]).await.unwrap().unwrap().release()).await.unwrap();
        }
    }
}

/// A change that leaves the lock its owner's costs one more look, and not the lock.
#[test_with(in_virtual_time)]
async fn waiter_takes_its_owners_lock_over_a_change(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let lock = DurableLock::new(&zk, "/job", "ours").without_lease();
    let theirs = DurableLock::new(&other, "/job", "theirs").without_lease();
    let guard = within(lock.acquire()).await.unwrap();
    let _theirs = tokio::spawn(async move { theirs.acquire().await });
    joined(&other, "/job/locks", 1).await;
    let ours = tokio::spawn(async move { lock.acquire().await });
    joined(&other, "/job/locks", 2).await;
    pass(Duration::from_secs(3)).await;
    // Between its look and its transaction.
    let busy = Arc::new(AtomicUsize::new(1));
    network.direct({
        let busy = busy.clone();
        move |name, op| match op {
            OpCode::MULTI if name == "ours" && busy.load(SeqCst) > 0 => Disposition::Throttled,
            _ => Disposition::Answered,
        }
    });
    drop(guard);
    pass(Duration::from_millis(100)).await;
    assert!(!ours.is_finished(), "it was throttled");
    other.set("/job/grants", b"").await.unwrap();
    busy.store(0, SeqCst);
    within(within(ours).await.unwrap().unwrap().release()).await.unwrap();
}

/// An attempt of the owner that is given up, at any point, leaves the lock as it was.
#[test_with(in_virtual_time)]
async fn abandoned_attempt_leaves_the_owner_its_lock(network: Network) {
    let [died, other] = ["died", "theirs"].map(|name| client_on(&network, name));
    let (died, other) = (died.await, other.await);
    let ours = |zk: &Client| DurableLock::new(zk, "/job", "ours").without_lease();
    drop(within(ours(&died).acquire()).await.unwrap());
    let theirs = DurableLock::new(&other, "/job", "theirs").without_lease();
    let waiting = tokio::spawn(async move { theirs.acquire().await });
    joined(&other, "/job/locks", 1).await;
    for leaves in [false, true] {
        let mut wakes = 0;
        loop {
            wakes += 1;
            let zk = client_on(&network, "ours").await;
            let lock = ours(&zk);
            let ended = dropped_when_woken(wakes, lock.acquire()).await;
            drop(lock);
            if leaves {
                within(zk.detach()).await;
            }
            pass(Duration::from_secs(1)).await;
            assert!(
                !waiting.is_finished(),
                "released by an attempt that was dropped when woken {wakes} times"
            );
            if ended.is_some() {
                assert!(wakes > 2, "it was never dropped");
                break;
            }
        }
    }
    within(within(ours(&died).acquire()).await.unwrap().release()).await.unwrap();
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
}

/// The node above the grants is made anew, and comes to the version that was seen before.
#[test_with(in_virtual_time)]
async fn no_grant_is_made_by_a_look_at_what_was_there_before(network: Network) {
    let [a, b, other] = ["ours", "theirs", "others"].map(|name| client_on(&network, name));
    let (a, b, other) = (a.await, b.await, other.await);
    let lock = |zk: &Client, owner| DurableLock::new(zk, "/job", owner).without_lease();
    within(within(lock(&other, "before").acquire()).await.unwrap().release()).await.unwrap();
    let first = within(Lock::new(&other, "/job/locks").acquire()).await.unwrap();
    let theirs = tokio::spawn({
        let theirs = lock(&b, "theirs");
        async move { theirs.acquire().await }
    });
    joined(&other, "/job/locks", 2).await;
    let ours = tokio::spawn({
        let ours = lock(&a, "ours");
        async move { ours.acquire().await }
    });
    joined(&other, "/job/locks", 3).await;
    other.delete("/job/grants").await.unwrap();
    within(first.release()).await.unwrap();
    let theirs = within(theirs).await.unwrap().unwrap();
    pass(Duration::from_secs(60)).await;
    within(theirs.check()).await.unwrap();
    assert_eq!(other.children("/job/grants").await.unwrap().0.len(), 1);
    if ours.is_finished() {
        assert_eq!(ours.await.unwrap().map(drop), Err(AcquireError::NodeDeleted));
    } else {
        within(theirs.release()).await.unwrap();
        within(within(ours).await.unwrap().unwrap().release()).await.unwrap();
    }
}
