//! Durable locks on members that are cut off from the others: they refuse what has to pass the leader.

use std::time::Duration;

use zk_locks::{Client, DurableLock, Lost, Status};
use zk_proto::{ErrorCode, OpCode};
use zk_testkit::proxy::Match;
use zk_tests::{busy::refuse_with, test_with};

use crate::locks::support::{Setup, closed, emptied, on_each_release, within};

/// A grant whose reply was lost is found, whether or not its caller still waits.
#[test_with(on_each_release)]
async fn grant_in_doubt_is_found_behind_refused_syncs(setup: Setup) {
    for waits in [true, false] {
        let path = setup.existing(if waits { "waited" } else { "dropped" }).await;
        let (proxy, zk) = setup.proxied().await;
        let lost = proxy.on(Match::reply(OpCode::MULTI).once()).reset();
        let refused = proxy.on(Match::reply(OpCode::SYNC).once());
        let refused = refused.rewrite(|reply| refuse_with(reply, ErrorCode::NOT_READ_ONLY));
        let lock = DurableLock::new(&zk, &path, "job").without_lease();
        let acquiring = tokio::spawn({
            let lock = lock.clone();
            async move { lock.acquire().await }
        });
        within(lost.fired()).await;
        if waits {
            let guard = within(acquiring).await.unwrap().unwrap();
            within(guard.release()).await.unwrap();
        } else {
            acquiring.abort();
        }
        within(refused.fired()).await;
        emptied(&setup.outsider, &format!("{path}/grants")).await;
    }
}

/// The guard that another client carries on is renewed, and hears of its end.
#[test_with(on_each_release)]
async fn guard_is_carried_on_behind_refused_syncs(setup: Setup) {
    let carried_on = async |lock: fn(&Client, &str) -> DurableLock, name| {
        let path = setup.existing(name).await;
        let first = setup.client().await;
        let mut guard = within(lock(&first, &path).acquire()).await.unwrap();
        closed(&first).await;
        let (proxy, next) = setup.proxied().await;
        let refused = proxy.on(Match::reply(OpCode::SYNC).once());
        let refused = refused.rewrite(|reply| refuse_with(reply, ErrorCode::NOT_READ_ONLY));
        guard.carry_on(&next);
        within(refused.fired()).await;
        (guard, path, (proxy, next))
    };

    let (guard, path, _served) =
        carried_on(|zk, path| DurableLock::new(zk, path, "job").without_lease(), "evicted").await;
    let theirs = DurableLock::new(&setup.outsider, &path, "theirs");
    let holder = within(theirs.holder()).await.unwrap().unwrap();
    assert!(within(theirs.evict(&holder)).await.unwrap());
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);

    let brief =
        |zk: &Client, path: &str| DurableLock::new(zk, path, "job").lease(Duration::from_secs(1));
    let (guard, _, _served) = carried_on(brief, "renewed").await;
    let lost = tokio::time::timeout(Duration::from_secs(2), guard.lost()).await;
    assert!(lost.is_err(), "{lost:?}");
    assert!(!matches!(guard.status(), Status::Lost(_)));
    within(guard.release()).await.unwrap();
}
