//! Deletes under conditions, and of all that is below a node: what happens meanwhile, and what servers do not show yet.

use std::{mem, time::Duration};

use zk_client::{Error, OpCode, Rejection, SafeToRetry as _, WriteError};
use zk_testkit::{
    proxy::Match,
    server::{Config, Member},
};
use zk_tests::{network::Disposition, patience::within, test_with};

use super::promises::{ME, connected, play};
use crate::api::{Place, behind_proxy, client, on_each_release};

#[test_with(on_each_release)]
async fn delete_if_exists_keeps_its_version(server: &Place) {
    let zk = client(server).await;
    let stale = Err(WriteError::Rejected(Rejection::BadVersion));
    zk.create("/a", b"").await.unwrap();
    zk.set("/a", b"x").await.unwrap();
    assert_eq!(zk.delete("/a").version(0).if_exists().await, stale);
    assert!(zk.exists("/a").await.unwrap().is_some());
    assert_eq!(zk.delete("/a").version(1).if_exists().await, Ok(true));
    assert_eq!(zk.exists("/a").await, Ok(None));
    assert_eq!(zk.delete("/a").version(1).if_exists().await, Ok(false));
}

/// Sent again, it comes upon the node of another client.
#[test_with(on_each_release)]
async fn repeated_delete_keeps_its_version(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    zk.create("/a", b"").await.unwrap();
    zk.set("/a", b"x").await.unwrap();
    let dialed = proxy.on(Match::connect_request()).hold();
    let lost = proxy.on(Match::reply(OpCode::DELETE).once()).reset();
    let delete = zk.delete("/a").version(1).if_exists().submit();
    within(dialed.fired()).await;
    assert_eq!(lost.times_fired(), 1);
    other.create("/a", b"").await.unwrap();
    for data in [b"other", b"their"] {
        other.set("/a", data).await.unwrap();
    }
    drop(dialed);
    assert_eq!(within(delete).await, Err(WriteError::Rejected(Rejection::BadVersion)));
    assert_eq!(other.get("/a").await.unwrap().0, "their");
    assert_eq!(proxy.counts().requests(OpCode::DELETE), 2);
}

#[test_with(on_each_release)]
async fn recursive_delete_takes_newcomers(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    zk.create("/t/a/b", b"").parents().await.unwrap();
    let held = proxy.on(Match::request(OpCode::DELETE).once()).hold();
    let created = async {
        within(held.fired()).await;
        other.create("/t/a/new", b"").await.unwrap();
        held.release();
    };
    let (deleted, ()) = tokio::join!(within(zk.delete_recursive("/t")), created);
    assert_eq!(deleted, Ok(4));
    assert_eq!(other.exists("/t").await, Ok(None));
}

#[test]
fn recursive_delete_waits_for_lagging_server() {
    let mut config = Config::default();
    (config.members, config.lag) = (3, Duration::from_secs(1));
    play(config, async |network| {
        let leader = network.look(|server| server.leader()).unwrap();
        network.reach_by("other", leader);
        network.reach_by(ME, Member((leader.0 + 1) % 3));
        let zk = connected(network).await;
        let other = network.options("other", "", 8).connect().await.unwrap();
        other.create("/t/a", b"").parents().await.unwrap();
        assert_eq!(zk.exists("/t").await, Ok(None), "it lags");
        assert_eq!(within(zk.delete_recursive("/t")).await, Ok(2));
        assert_eq!(other.exists("/t").await, Ok(None));
    });
}

/// Those that were under way are gone when one of them is refused.
#[test]
fn failed_recursive_delete_tells_of_all_that_is_gone() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        for path in ["/t", "/t/a", "/t/b", "/t/c"] {
            zk.create(path, b"").await.unwrap();
        }
        let mut is_first = true;
        network.direct(move |_, op| match op == OpCode::DELETE && mem::take(&mut is_first) {
            true => Disposition::Throttled,
            false => Disposition::Answered,
        });
        let failed = zk.delete_recursive("/t").await.unwrap_err();
        let Error::DeleteRecursive { deleted, .. } = &failed else { panic!("{failed}") };
        assert_eq!(*deleted, 2);
        assert_eq!(zk.children("/t").await.unwrap().0.len(), 1);
        assert!(!failed.is_safe_to_retry());
    });
}
