//! Grants of durable locks: when one is made, and when one is taken away.

use std::time::Duration;

use zk_locks::{AcquireError, Client, DurableLock, Lost};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::test_with;

use crate::locks::support::{Setup, emptied, on_each_release, within};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

fn of(zk: &Client, path: &str, owner: &str) -> DurableLock {
    DurableLock::new(zk, path, owner).lease(LONG)
}

fn grants(path: &str) -> String {
    format!("{path}/grants")
}

/// A path that has been used before, so that an attempt makes no more nodes than its own.
async fn used(setup: &Setup, name: &str) -> String {
    let path = setup.existing(name).await;
    let before = within(of(&setup.outsider, &path, "before").acquire()).await.unwrap();
    within(before.release()).await.unwrap();
    path
}

/// Both owners have seen a free lock, and the second one is the first to take it.
#[test_with(on_each_release)]
async fn grant_is_refused_beside_a_new_one(setup: Setup) {
    let path = used(&setup, "beside").await;
    let (proxy, zk) = setup.proxied().await;
    let lock = of(&zk, &path, "ours");
    let joining = proxy.on(Match::request(OpCode::CREATE2).once()).hold();
    let mut waiting = tokio::spawn(async move { lock.acquire().await.unwrap() });
    within(joining.fired()).await;
    let theirs = within(of(&setup.outsider, &path, "theirs").acquire()).await.unwrap();
    // The grant that is in its way.
    let looks = proxy.on(Match::reply(OpCode::GET_DATA).path(grants(&path)).once()).watch();
    joining.release();
    tokio::select! {
        granted = &mut waiting => panic!("{:?} beside {theirs:?}", granted.unwrap()),
        _ = within(looks.fired()) => {}
    }
    let (names, _) = setup.outsider.children(&grants(&path)).await.unwrap();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(within(theirs.check()).await, Ok(()));
    assert!(!waiting.is_finished());
    let before = theirs.token();
    within(theirs.release()).await.unwrap();
    let ours = within(waiting).await.unwrap();
    assert!(ours.token() > before, "{before} is not followed by {ours:?}");
    within(ours.release()).await.unwrap();
}

/// The place is traded for the grant: without the one there is not the other.
#[test_with(on_each_release)]
async fn no_grant_is_made_for_a_lost_place(setup: Setup) {
    for tries in [false, true] {
        let path = used(&setup, if tries { "tries" } else { "waits" }).await;
        let places = format!("{path}/locks");
        let (proxy, zk) = setup.proxied().await;
        let lock = of(&zk, &path, "ours");
        let taking = proxy.on(Match::request(OpCode::MULTI).once()).hold();
        let many = proxy.on(Match::request(OpCode::MULTI).nth(3)).watch();
        let attempt = tokio::spawn(async move {
            if tries { lock.try_acquire().await.map(drop) } else { lock.acquire().await.map(drop) }
        });
        within(taking.fired()).await;
        let (names, _) = setup.outsider.children(&places).await.unwrap();
        assert_eq!(names.len(), 1, "{names:?}");
        setup.outsider.delete(&format!("{places}/{}", names[0])).await.unwrap();
        taking.release();
        tokio::select! {
            ended = within(attempt) => {
                assert_eq!(ended.unwrap(), Err(AcquireError::NodeDeleted), "tries: {tries}");
            }
            _ = many.fired() => panic!("it asks again and again; tries: {tries}"),
        }
        emptied(&setup.outsider, &grants(&path)).await;
    }
}

/// Nothing has polled it.
#[test_with(on_each_release)]
async fn dropped_release_frees_a_durable_lock(setup: Setup) {
    let (path, zk) = (setup.existing("unpolled").await, setup.client().await);
    let guard = within(of(&zk, &path, "ours").acquire()).await.unwrap();
    drop(guard.release());
    emptied(&setup.outsider, &grants(&path)).await;
    let theirs = within(of(&setup.outsider, &path, "theirs").try_acquire()).await.unwrap();
    within(theirs.expect("it is free").release()).await.unwrap();
}

/// What was seen of a holder is of that hold alone.
#[test_with(on_each_release)]
async fn eviction_from_a_former_grant_is_none(setup: Setup) {
    let (path, zk) = (setup.existing("former").await, setup.client().await);
    let operator = of(&setup.outsider, &path, "operator");
    let guard = within(of(&zk, &path, "ours").acquire()).await.unwrap();
    let released = within(operator.holder()).await.unwrap().expect("it is held");
    within(guard.release()).await.unwrap();
    assert!(!within(operator.evict(&released)).await.unwrap());

    let guard = within(of(&zk, &path, "ours").acquire()).await.unwrap();
    let replaced = within(operator.holder()).await.unwrap().expect("it is held");
    // As another process of the owner does.
    let anew = within(of(&zk, &path, "ours").acquire()).await.unwrap();
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);
    for former in [&released, &replaced] {
        assert!(!within(operator.evict(former)).await.unwrap());
    }
    assert_eq!(within(anew.check()).await, Ok(()));
    within(anew.release()).await.unwrap();
}
