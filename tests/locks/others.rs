//! The lock that is one node, the one whose waiters watch all others, and locks that are taken twice.

use std::time::Duration;

use zk_client::{CreateMode, SessionState};
use zk_locks::{
    Acl, AclList, AcquireError, CheckError, Lock, Lost, SharedGuard, SimpleLock, Status,
};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::test_with;

use crate::locks::support::{
    Setup, Waiter, closed, emptied, joined, on_each_release, on_each_release_timeless, ops, within,
};

/// Waits until a node is gone.
async fn gone(setup: &Setup, path: &str) {
    while let (Some(_), changed) = setup.outsider.exists(path).watch().await.unwrap() {
        within(changed).await.unwrap();
    }
}

#[test_with(on_each_release_timeless)]
async fn simple_lock_request_counts(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.path("simple");
    let lock = SimpleLock::builder(&zk, &path).description("who").build();
    assert_eq!(within(lock.holder()).await, Ok(None));
    let mark = proxy.mark();
    let guard = within(lock.acquire()).await.unwrap();
    assert!(within(lock.try_acquire()).await.unwrap().is_none());
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::MULTI; 2], "{frames}");
    let holder = within(lock.holder()).await.unwrap().unwrap();
    let seen = (holder.token.get(), holder.session, &*holder.description());
    assert_eq!(seen, (guard.token().get(), zk.session().id(), "who"));
    let mark = proxy.mark();
    assert_eq!(within(guard.check()).await, Ok(()));
    within(guard.release()).await.unwrap();
    let frames = proxy.frames_since(mark);
    let (check, release) = ([OpCode::MULTI, OpCode::GET_DATA], [OpCode::EXISTS, OpCode::DELETE]);
    let expected = [check, release].concat();
    assert_eq!(ops(&frames), expected, "{frames}");
}

/// An outsider deletes the node by hand, and another client takes the lock: before the look, as ours do, and
/// between the look and the delete, in that of the others, who merely create a node.
#[test_with(on_each_release)]
async fn release_spares_another_simple_holder(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.path("window");
    let lock = SimpleLock::new(&zk, &path);
    let guard = within(lock.acquire()).await.unwrap();
    let look = proxy.on(Match::request(OpCode::EXISTS).once()).hold();
    let release = guard.release();
    within(look.fired()).await;
    setup.outsider.delete(&path).await.unwrap();
    let theirs = within(SimpleLock::new(&setup.outsider, &path).acquire()).await.unwrap();
    look.release();
    within(release).await.unwrap();
    assert_eq!(within(theirs.check()).await, Ok(()));
    within(theirs.release()).await.unwrap();

    let guard = within(lock.acquire()).await.unwrap();
    let delete = proxy.on(Match::request(OpCode::DELETE).once()).hold();
    let release = guard.release();
    within(delete.fired()).await;
    setup.outsider.delete(&path).await.unwrap();
    let create = setup.outsider.create(&path, b"them").mode(CreateMode::Ephemeral);
    let theirs = create.await.unwrap().stat;
    delete.release();
    within(release).await.unwrap();
    let there = setup.outsider.exists(&path).await.unwrap();
    assert_eq!(there.map(|there| there.czxid), Some(theirs.czxid));
}

/// A delete that was not answered may still be on its way: only behind a `sync` is a look the last word.
#[test_with(on_each_release)]
async fn release_in_doubt_checks_behind_a_sync(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.path("unanswered");
    for part in [Match::reply(OpCode::DELETE), Match::request(OpCode::DELETE)] {
        let guard = within(SimpleLock::new(&zk, &path).acquire()).await.unwrap();
        let lost = proxy.on(part.once()).reset();
        let mark = proxy.mark();
        within(guard.release()).await.unwrap();
        assert_eq!(lost.times_fired(), 1);
        gone(&setup, &path).await;
        let frames = proxy.frames_since(mark);
        let asked = ops(&frames);
        assert_eq!(
            asked[..4],
            [OpCode::EXISTS, OpCode::DELETE, OpCode::SYNC, OpCode::EXISTS],
            "{frames}"
        );
    }
}

/// The reply to a delete is lost, and another client has taken the lock before it is repeated.
#[test_with(on_each_release)]
async fn repeated_release_spares_the_next_holder(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.path("unwanted");
    let lock = SimpleLock::new(&zk, &path);
    let guard = within(lock.acquire()).await.unwrap();
    let lost = proxy.on(Match::reply(OpCode::DELETE).once()).reset();
    let greeting = proxy.on(Match::connect_response().once()).hold();
    let release = guard.release();
    within(lost.fired()).await;
    let theirs = within(SimpleLock::new(&setup.outsider, &path).acquire()).await.unwrap();
    greeting.release();
    within(release).await.unwrap();
    assert_eq!(within(theirs.check()).await, Ok(()));
    within(theirs.release()).await.unwrap();
}

/// A node of the same name is not the same node.
#[test_with(on_each_release)]
async fn evicted_and_retaken_simple_lock_is_lost(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.path("broken");
    let lock = SimpleLock::new(&zk, &path);
    let first = within(lock.acquire()).await.unwrap();
    let waiter = tokio::spawn(async move { lock.acquire().await });
    let replaced = || async {
        setup.outsider.delete(&path).await.unwrap();
        let create = setup.outsider.create(&path, b"x");
        create.mode(CreateMode::Ephemeral).await
    };
    // Both while it cannot hear of it: what it hears then is not of a deletion.
    let mut session = zk.session();
    proxy.refuse_connections().await;
    proxy.reset_all();
    while session.state() != SessionState::Disconnected {
        within(session.changed()).await;
    }
    replaced().await.unwrap();
    proxy.accept_connections().await;
    assert_eq!(within(first.lost()).await, Lost::NodeDeleted);
    assert_eq!(first.status(), Status::Lost(Lost::NodeDeleted));
    assert_eq!(within(first.check()).await, Err(CheckError::Lost(Lost::NodeDeleted)));
    within(first.release()).await.unwrap();
    assert!(setup.outsider.exists(&path).await.unwrap().is_some(), "it was not ours to delete");
    setup.outsider.delete(&path).await.unwrap();
    let next = within(waiter).await.unwrap().unwrap();
    let short = Duration::from_millis(20);
    let behind = SimpleLock::new(&setup.outsider, &path).acquire_timeout(short).await;
    assert!(matches!(behind, Err(AcquireError::TimedOut)));
    closed(&zk).await;
    assert!(matches!(next.status(), Status::Lost(Lost::SessionEnded(_))));
    assert!(within(next.release()).await.is_err());
    gone(&setup, &path).await;
}

/// Scenario 54.
#[test_with(on_each_release_timeless)]
async fn reentrant_lock_is_held_by_its_last_guard(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.existing("again").await;
    let outer: SharedGuard = within(Lock::new(&zk, &path).acquire()).await.unwrap().share();
    let mark = proxy.mark();
    let inner = outer.reenter().unwrap();
    assert_eq!((inner.token(), outer.count()), (outer.token(), 2));
    within(inner.release()).await.unwrap();
    assert_eq!(outer.count(), 1);
    assert_eq!(within(outer.check()).await, Ok(()));
    let inner = outer.reenter().unwrap();
    drop(outer);
    assert_eq!(within(inner.check()).await, Ok(()));
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::MULTI; 2], "{frames}");
    within(inner.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;

    let outer = within(Lock::new(&zk, &path).acquire()).await.unwrap().share();
    setup.outsider.delete(outer.path()).await.unwrap();
    assert_eq!(within(outer.lost()).await, Lost::NodeDeleted);
    assert_eq!(outer.reenter().map(drop), Err(Lost::NodeDeleted));
}

/// The transaction was carried out, and the session ends before the read behind it is answered.
#[test_with(on_each_release)]
async fn check_whose_session_ends_meanwhile_tells_of_the_loss(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let guard = within(SimpleLock::new(&zk, &setup.path("simple")).acquire()).await.unwrap();
    let read = proxy.on(Match::request(OpCode::GET_DATA)).hold();
    let (checked, closed) = within(async {
        tokio::join!(guard.check(), async {
            read.fired().await;
            zk.close().await
        })
    })
    .await;
    let Status::Lost(lost) = guard.status() else { panic!("it is held after {closed:?}") };
    assert_eq!(checked, Err(CheckError::Lost(lost)));
}

/// The node that was checked was another contender's, and is gone when its owner is looked for.
#[test_with(on_each_release_timeless)]
async fn check_is_not_passed_by_what_is_gone(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.path("between");
    let guard = within(SimpleLock::new(&zk, &path).acquire()).await.unwrap();
    setup.outsider.delete(&path).await.unwrap();
    let theirs = within(SimpleLock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let read = proxy.on(Match::request(OpCode::GET_DATA).once()).hold();
    let (checked, ()) = within(async {
        tokio::join!(guard.check(), async {
            read.fired().await;
            theirs.release().await.unwrap();
            read.release();
        })
    })
    .await;
    assert_eq!(checked, Err(CheckError::Lost(Lost::NodeDeleted)));
}

/// All that it needs is to list the path.
#[test_with(on_each_release)]
async fn herd_waits_for_nodes_that_it_may_not_read(setup: Setup) {
    let path = setup.existing("private").await;
    let theirs = setup.options().auth("digest", "holder:secret").connect().await.unwrap();
    let acl = AclList::from_iter([Acl::creator_all()]);
    let theirs = Lock::builder(&theirs, &path).acl(&acl).build();
    for look_ahead in [false, true] {
        let holder = within(theirs.acquire()).await.unwrap();
        let nearest = within(theirs.enqueue()).await.unwrap();
        let (proxy, zk) = setup.proxied().await;
        let lock = Lock::builder(&zk, &path).herd().look_ahead(look_ahead).build();
        let mut waiter = Waiter::of(proxy, zk, lock);
        joined(&setup.outsider, &path, 3).await;
        assert!(waiter.still_waits().await, "{look_ahead}");
        drop(nearest);
        joined(&setup.outsider, &path, 2).await;
        assert!(waiter.still_waits().await, "{look_ahead}");
        within(holder.release()).await.unwrap();
        within(waiter.outcome().await.unwrap().release()).await.unwrap();
    }
}
