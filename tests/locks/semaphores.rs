//! So many at a time.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use zk_client::CreateMode;
use zk_locks::{AcquireError, Client, Layout, Semaphore, Status};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::{
    network::{Network, pass},
    test_with,
};

use crate::locks::support::{
    Setup, client_on, closed, emptied, in_virtual_time, joined, on_each_release,
    on_each_release_threaded, ops, within,
};

async fn leases(zk: &Client, path: &str) -> usize {
    zk.children(&format!("{path}/leases")).await.unwrap().0.len()
}

/// Adds to the leases as Curator does: in front of the queue, and before it knows that there is room.
async fn curator_lease(zk: &Client, path: &str) -> String {
    let name = format!("{path}/leases/_c_3b5f6a0e-0000-4000-8000-0123456789ab-lease-");
    zk.create(&name, b"127.0.0.1").mode(CreateMode::EphemeralSequential).await.unwrap().path
}

/// What was read of the permits while others were ahead counts no more in front: they have taken some.
#[test_with(on_each_release)]
async fn permits_are_read_again_in_front(setup: Setup) {
    let path = setup.path("ahead");
    let theirs = {
        let name = format!("{path}/locks/_c_0f5a9e0e-0000-4000-8000-0123456789ab-lock-");
        let create = setup.outsider.create(&name, b"").mode(CreateMode::EphemeralSequential);
        within(create.parents()).await.unwrap().path
    };
    setup.outsider.create(&format!("{path}/leases"), b"").await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let semaphore = Semaphore::new(&zk, &path, 1);
    let mut waiting = tokio::spawn(async move { semaphore.acquire().await.unwrap() });
    joined(&setup.outsider, &format!("{path}/locks"), 2).await;
    let lease = curator_lease(&setup.outsider, &path).await;
    // It watches the permits, in front of the queue.
    let looks = proxy.on(Match::request(OpCode::GET_CHILDREN2).path("/leases").once()).watch();
    setup.outsider.delete(&theirs).await.unwrap();
    tokio::select! {
        granted = &mut waiting => panic!("{:?} with a permit that is taken", granted.unwrap()),
        _ = within(looks.fired()) => {}
    }
    setup.outsider.delete(&lease).await.unwrap();
    within(within(waiting).await.unwrap().release()).await.unwrap();
}

/// The waiters in the queue watch their predecessor; only the first one watches the permits.
#[test_with(on_each_release)]
async fn released_permit_wakes_only_the_first(setup: Setup) {
    let path = setup.path("quiet");
    let held = within(Semaphore::new(&setup.outsider, &path, 1).acquire()).await.unwrap();
    let mut waiting = Vec::new();
    for number in 1..=3 {
        let (proxy, zk) = setup.proxied().await;
        let reads = match number {
            1 => proxy.on(Match::reply(OpCode::GET_CHILDREN2).nth(3)).watch(),
            _ => proxy.on(Match::reply(OpCode::GET_DATA).nth(2)).watch(),
        };
        let semaphore = Semaphore::new(&zk, &path, 1);
        let waiter = tokio::spawn(async move { semaphore.acquire().await.unwrap() });
        within(reads.fired()).await;
        waiting.push((proxy, zk, waiter));
    }
    let marks: Vec<_> = waiting.iter().map(|(proxy, ..)| proxy.mark()).collect();
    let looks = waiting[1].0.on(Match::reply(OpCode::GET_CHILDREN2).once()).watch();
    within(held.release()).await.unwrap();
    let (_, _, first) = &mut waiting[0];
    let permit = within(first).await.unwrap();
    // The second is in front now, sees that there is no room, and waits for that.
    within(looks.fired()).await;
    let third = &waiting[2];
    third.1.sync("/").await.unwrap();
    let frames = third.0.frames_since(marks[2]);
    assert_eq!(ops(&frames), [OpCode::SYNC], "{frames}");
    within(permit.release()).await.unwrap();
    for (_, _, waiter) in waiting.drain(1..) {
        within(within(waiter).await.unwrap().release()).await.unwrap();
    }
    emptied(&setup.outsider, &format!("{path}/leases")).await;
}

/// Scenario 47.
#[test_with(on_each_release_threaded)]
async fn counted_permits_can_be_resized_in_use(setup: Setup) {
    let (path, count) = (setup.path("resized"), setup.path("count"));
    let semaphore = |zk: &Client| Semaphore::new(zk, &path, 3).counted_at(&count);
    let owner = semaphore(&setup.outsider);
    within(owner.resize(3)).await.unwrap();
    // As Curator's `SharedCount` writes it.
    assert_eq!(setup.outsider.get(&count).await.unwrap().0[..], [0, 0, 0, 3]);
    let mut permits = within(owner.acquire_many(2)).await.unwrap().into_guards();
    let theirs = curator_lease(&setup.outsider, &path).await;

    let (release, _) = tokio::sync::broadcast::channel::<()>(1);
    let granted = Arc::new(tokio::sync::Semaphore::new(0));
    let mut running = JoinSet::new();
    for _ in 0..10 {
        let (zk, granted) = (setup.client().await, granted.clone());
        let (semaphore, mut release) = (semaphore(&zk), release.subscribe());
        running.spawn(async move {
            let permit = semaphore.acquire().await.unwrap();
            granted.add_permits(1);
            let _ = release.recv().await;
            permit.release().await.unwrap();
        });
    }
    joined(&setup.outsider, &format!("{path}/locks"), 10).await;
    assert_eq!((leases(&setup.outsider, &path).await, granted.available_permits()), (3, 0));
    // More: two of the waiters are woken.
    within(owner.resize(5)).await.unwrap();
    within(granted.acquire_many(2)).await.unwrap().forget();
    joined(&setup.outsider, &format!("{path}/leases"), 5).await;
    // Fewer: no holder loses anything, and no waiter is granted until enough have gone.
    within(owner.resize(1)).await.unwrap();
    assert!(permits.iter().all(|permit| permit.status() == Status::Held));
    within(permits.pop().unwrap().release()).await.unwrap();
    within(permits.pop().unwrap().release()).await.unwrap();
    setup.outsider.delete(&theirs).await.unwrap();
    assert!(within(owner.try_acquire()).await.unwrap().is_none());
    assert_eq!((leases(&setup.outsider, &path).await, granted.available_permits()), (2, 0));
    drop(release);
    within(running.join_all()).await;
    assert_eq!(granted.available_permits(), 8);
    emptied(&setup.outsider, &format!("{path}/leases")).await;
}

#[test_with(on_each_release)]
async fn permit_is_not_granted_on_a_stale_count(setup: Setup) {
    let (path, count) = (setup.path("raced"), setup.path("count"));
    let (proxy, zk) = setup.proxied().await;
    let semaphore = Semaphore::new(&zk, &path, 1).counted_at(&count);
    within(semaphore.resize(1)).await.unwrap();
    let create = proxy.on(Match::request(OpCode::MULTI).once()).hold();
    let resize = async {
        within(create.fired()).await;
        setup.outsider.set(&count, &[0, 0, 0, 0]).await.unwrap();
        create.release();
    };
    let acquire = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire().await.unwrap() }
    });
    resize.await;
    // It looks again, and waits.
    joined(&setup.outsider, &format!("{path}/locks"), 1).await;
    assert!(within(semaphore.try_acquire()).await.unwrap().is_none());
    assert!(!acquire.is_finished());
    within(semaphore.resize(1)).await.unwrap();
    within(within(acquire).await.unwrap().release()).await.unwrap();
    setup.outsider.set(&count, b"several").await.unwrap();
    let error = AcquireError::NotACount { path: count.clone() };
    assert_eq!(within(semaphore.acquire()).await.map(drop), Err(error));
    emptied(&zk, &format!("{path}/locks")).await;
}

/// Without its node the semaphore's own number counts.
#[test_with(on_each_release)]
async fn permit_is_granted_though_its_count_is_deleted(setup: Setup) {
    let (path, count) = (setup.path("uncounted"), setup.path("count"));
    let (proxy, zk) = setup.proxied().await;
    let semaphore = Semaphore::new(&zk, &path, 1).counted_at(&count);
    within(semaphore.resize(1)).await.unwrap();
    let create = proxy.on(Match::request(OpCode::MULTI).once()).hold();
    let deleted = async {
        within(create.fired()).await;
        setup.outsider.delete(&count).await.unwrap();
        create.release();
    };
    let (permit, ()) = tokio::join!(within(semaphore.acquire()), deleted);
    within(permit.unwrap().release()).await.unwrap();
    emptied(&zk, &format!("{path}/locks")).await;
}

/// A count that is created between the read that misses it and the watch for its creation is read before it is waited for.
#[test_with(on_each_release)]
async fn count_created_meanwhile_is_read(setup: Setup) {
    let (path, count) = (setup.path("between"), setup.path("new-count"));
    let held = within(Semaphore::new(&setup.outsider, &path, 1).acquire()).await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let looks = proxy.on(Match::request(OpCode::EXISTS).path(&count).once()).hold();
    // It would look again by itself in the end.
    let semaphore = Semaphore::builder(&zk, &path).recheck(None).build().with_permits(1);
    let semaphore = semaphore.counted_at(&count);
    let acquire = tokio::spawn(async move { semaphore.acquire().await.unwrap() });
    within(looks.fired()).await;
    setup.outsider.create(&count, &[0, 0, 0, 2]).await.unwrap();
    looks.release();
    within(within(acquire).await.unwrap().release()).await.unwrap();
    within(held.release()).await.unwrap();
}

/// It has asked before all others, and nothing that changes on the way alters that.
#[test_with(on_each_release)]
async fn first_in_queue_stays_first_on_resize(setup: Setup) {
    let (path, count) = (setup.path("busy"), setup.path("count"));
    let (proxy, zk) = setup.proxied().await;
    let semaphore = Semaphore::new(&zk, &path, 1).counted_at(&count);
    within(semaphore.resize(2)).await.unwrap();
    let mut create = proxy.on(Match::request(OpCode::MULTI).once()).hold();
    let acquire = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire().await }
    });
    let mut places = Vec::new();
    for number in 1..=7 {
        within(create.fired()).await;
        places.extend(setup.outsider.children(&format!("{path}/locks")).await.unwrap().0);
        setup.outsider.set(&count, &[0, 0, 0, number]).await.unwrap();
        let next = proxy.on(Match::request(OpCode::MULTI).once()).hold();
        create.release();
        create = next;
    }
    within(create.fired()).await;
    create.release();
    within(within(acquire).await.unwrap().unwrap().release()).await.unwrap();
    places.dedup();
    assert_eq!(places.len(), 1, "{places:?}");
    emptied(&zk, &format!("{path}/locks")).await;
}

#[test_with(on_each_release)]
async fn resize_wakes_waiters_of_the_semaphore(setup: Setup) {
    let zk = setup.client().await;
    let path = setup.path("local");
    let semaphore = Semaphore::new(&zk, &path, 0);
    let waiter = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire_many(2).await.unwrap() }
    });
    let locks = format!("{path}/locks");
    while setup.outsider.children(&locks).await.map_or(0, |(names, _)| names.len()) == 0 {}
    semaphore.resize(1).await.unwrap();
    semaphore.resize(2).await.unwrap();
    let both = within(waiter).await.unwrap();
    assert_eq!(leases(&zk, &path).await, 2);
    // Each is a value of its own.
    for permit in both.into_guards() {
        within(permit.release()).await.unwrap();
    }
}

/// Scenario 48.
#[test_with(on_each_release)]
async fn dead_waiter_and_holder_free_their_nodes(setup: Setup) {
    let path = setup.path("crash");
    let semaphore = Semaphore::new(&setup.outsider, &path, 1);
    within(within(semaphore.acquire()).await.unwrap().release()).await.unwrap();
    let dying = setup.client().await;
    let lock = format!("{path}/locks/_c_3b5f6a0e-0000-4000-8000-0123456789ab-lock-");
    dying.create(&lock, b"").mode(CreateMode::EphemeralSequential).await.unwrap();
    curator_lease(&dying, &path).await;
    let waiter = tokio::spawn(async move { semaphore.acquire().await.unwrap() });
    joined(&setup.outsider, &format!("{path}/locks"), 2).await;
    closed(&dying).await;
    within(within(waiter).await.unwrap().release()).await.unwrap();
    emptied(&setup.outsider, &format!("{path}/leases")).await;
}

/// Scenario 49: given up before it is in front, while it waits for room, and while its permit is under way,
/// with the reply and without.
#[test_with(on_each_release)]
async fn abandoned_acquire_leaves_no_permit(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.path("given-up");
    let semaphore = Semaphore::new(&zk, &path, 1);
    let permit = within(semaphore.acquire()).await.unwrap();
    let acquire = || {
        let semaphore = semaphore.clone();
        tokio::spawn(async move { semaphore.acquire().await.map(drop) })
    };
    let (locks, all) = (format!("{path}/locks"), format!("{path}/leases"));
    let (first, second) = (acquire(), acquire());
    joined(&setup.outsider, &locks, 2).await;
    second.abort();
    joined(&setup.outsider, &locks, 1).await;
    first.abort();
    joined(&setup.outsider, &locks, 0).await;
    assert_eq!(leases(&zk, &path).await, 1);
    within(permit.release()).await.unwrap();

    for lost in [false, true] {
        let reply = Match::reply(OpCode::MULTI).once();
        let rule = if lost { proxy.on(reply).reset() } else { proxy.on(reply).hold() };
        let third = acquire();
        within(rule.fired()).await;
        third.abort();
        assert!(within(third).await.unwrap_err().is_cancelled());
        rule.release();
        zk.resolve_in_doubt().await.unwrap();
        emptied(&zk, &all).await;
        emptied(&zk, &locks).await;
    }
    within(within(semaphore.acquire()).await.unwrap().release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn waiter_with_deleted_node_gets_no_permit(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.path("place");
    let create = proxy.on(Match::request(OpCode::MULTI).once()).hold();
    let semaphore = Semaphore::new(&zk, &path, 1);
    let delete = async {
        within(create.fired()).await;
        let (names, _) = setup.outsider.children(&format!("{path}/locks")).await.unwrap();
        setup.outsider.delete(&format!("{path}/locks/{}", names[0])).await.unwrap();
        create.release();
    };
    let (permit, ()) = within(async { tokio::join!(semaphore.acquire(), delete) }).await;
    assert_eq!(permit.map(drop), Err(AcquireError::NodeDeleted));
    assert_eq!(leases(&zk, &path).await, 0);
}

/// The caller is told before anything is written, and before a wait.
#[test_with(on_each_release)]
async fn layout_without_permits_is_refused_at_once(setup: Setup) {
    for layout in [Layout::Kazoo, Layout::Recipe, Layout::HostType, Layout::Bare] {
        let path = setup.path(&format!("{layout:?}"));
        let semaphore = Semaphore::builder(&setup.outsider, &path).layout(layout).build();
        let nameless = AcquireError::NoSuchName { layout };
        assert_eq!(within(semaphore.acquire()).await.map(drop), Err(nameless.clone()));
        assert_eq!(within(semaphore.try_acquire()).await.map(drop), Err(nameless.clone()));
        assert_eq!(within(semaphore.acquire_many(2)).await.map(drop), Err(nameless.clone()));
        assert_eq!(setup.outsider.exists(&path).await.unwrap(), None, "{layout:?}");

        let held = within(Semaphore::new(&setup.outsider, &path, 1).acquire()).await.unwrap();
        assert_eq!(within(semaphore.acquire()).await.map(drop), Err(nameless.clone()));
        assert_eq!(within(semaphore.try_acquire()).await.map(drop), Err(nameless));
        within(held.release()).await.unwrap();
        // It has no need of names for that.
        assert!(within(semaphore.acquire_many(0)).await.unwrap().is_empty());
        within(semaphore.resize(2)).await.unwrap();
    }
}

/// The first in line learns of the end of its place while there is no permit, and of nothing else.
#[test_with(in_virtual_time)]
async fn lost_place_in_front_ends_the_wait_for_permits(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let held = Semaphore::new(&other, "/permits", 1).acquire().await.unwrap();
    let semaphore = Semaphore::new(&zk, "/permits", 1);
    for is_deleted in [true, false] {
        let semaphore = semaphore.clone();
        let waiting = tokio::spawn(async move { semaphore.acquire().await.map(drop) });
        pass(Duration::from_secs(3)).await;
        let (names, _) = other.children("/permits/locks").await.unwrap();
        let node = format!("/permits/locks/{}", names[0]);
        other.set(&node, b"written").await.unwrap();
        pass(Duration::from_secs(3)).await;
        if is_deleted {
            other.delete(&node).await.unwrap();
            assert_eq!(within(waiting).await.unwrap(), Err(AcquireError::NodeDeleted));
        } else {
            assert!(!waiting.is_finished());
            waiting.abort();
        }
    }
    assert_eq!(held.status(), Status::Held);
}
