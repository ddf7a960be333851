//! Read locks that become write locks, and the other way round: what becomes of the old one meanwhile.

use std::time::Duration;

use tokio::time::Instant;
use zk_locks::{AcquireError, Client, Lost, RwLock, Status};
use zk_tests::{
    network::{Network, pass},
    test_with,
};

use crate::locks::support::{Setup, client_on, in_virtual_time, joined, on_each_release, within};

/// Others may write from then on, and it is not to wait for a lock that it would not get.
#[test_with(in_virtual_time)]
async fn waiting_upgrade_ends_with_its_read_lock(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let reading = within(RwLock::new(&zk, "/rw").read()).await.unwrap();
    let theirs = within(RwLock::new(&other, "/rw").read()).await.unwrap();
    let node = reading.path().to_owned();
    // From then on its node is watched.
    pass(Duration::from_secs(2)).await;
    let upgrade = tokio::spawn(reading.try_upgrade());
    joined(&other, "/rw", 3).await;
    pass(Duration::from_secs(2)).await;
    assert!(!upgrade.is_finished(), "another one reads");
    other.delete(&node).await.unwrap();
    let deleted = Instant::now();
    let refused = within(upgrade).await.unwrap().unwrap_err();
    let took = deleted.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(refused.cause, AcquireError::NodeDeleted);
    assert_eq!(refused.guard.status(), Status::Lost(Lost::NodeDeleted));
    // Its place to write is given up, too.
    joined(&other, "/rw", 1).await;
    assert_eq!(within(theirs.check()).await, Ok(()));
}

/// All users of the lock have promised not to downgrade it.
#[test_with(on_each_release)]
async fn downgrade_against_the_promise_changes_nothing(setup: Setup) {
    let path = setup.existing("promised").await;
    let zk = setup.client().await;
    let lock = |zk: &Client| RwLock::builder(zk, &path).no_downgrade().build();
    let writing = within(lock(&setup.outsider).write()).await.unwrap();
    let token = writing.token();
    let mut reads = within(lock(&zk).enqueue_read()).await.unwrap();
    let mut writes = within(lock(&zk).enqueue_write()).await.unwrap();
    let refused = within(writing.downgrade()).await.unwrap_err();
    assert_eq!(refused.cause, AcquireError::NoDowngrade);
    assert_eq!((refused.guard.status(), refused.guard.token()), (Status::Held, token));
    assert_eq!(within(refused.guard.check()).await, Ok(()));
    assert!(within(reads.try_wait()).await.unwrap().is_none());
    assert!(within(writes.try_wait()).await.unwrap().is_none());
    within(refused.guard.release()).await.unwrap();
    within(within(reads.wait()).await.unwrap().release()).await.unwrap();
    within(within(writes.wait()).await.unwrap().release()).await.unwrap();
}
