//! What is counted of requests and events: whatever a program has asked for, once.

use zk_tests::{patience::within, test_with};

use crate::api::{Place, client, on_each_release};

/// Neither the end of a watch is an event, nor what nobody listens to.
#[test_with(on_each_release)]
async fn only_events_that_are_heard_count(server: &Place) {
    let (zk, other) = (client(server).await, client(server).await);
    other.create("/w", b"").await.unwrap();
    let (_, dropped) = zk.get("/w").watch().await.unwrap();
    drop(dropped);
    other.set("/w", b"1").await.unwrap();
    zk.sync("/w").await.unwrap();
    assert_eq!(zk.stats().watch_events, 0);
    let (_, heard) = zk.get("/w").watch().await.unwrap();
    other.set("/w", b"2").await.unwrap();
    within(heard).await.unwrap();
    assert_eq!(zk.stats().watch_events, 1);
    let (_, unheard) = zk.get("/w").watch().await.unwrap();
    zk.close().await.unwrap();
    within(unheard).await.unwrap_err();
    assert_eq!(zk.stats().watch_events, 1);
}
