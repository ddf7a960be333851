//! Locks that stay locked when their holders die, and how they come free again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::task::JoinSet;
use zk_client::{AclList, CreateMode, Id, Perms, Rejection};
use zk_locks::{AcquireError, Client, DurableLock, Layout, Lost, Status};
use zk_proto::OpCode;
use zk_testkit::{proxy::Match, server::Member};
use zk_tests::{
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{
    Setup, client_on, closed, emptied, in_virtual_time, joined, on_each_release,
    on_each_release_threaded, within,
};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

fn of(zk: &Client, path: &str, owner: &str) -> DurableLock {
    DurableLock::new(zk, path, owner).lease(LONG)
}

fn grants(path: &str) -> String {
    format!("{path}/grants")
}

/// Attempts through one value know of each other.
#[test_with(on_each_release)]
async fn clones_of_one_lock_exclude_each_other(setup: Setup) {
    let path = setup.existing("clones").await;
    let lock = of(&setup.outsider, &path, "job");
    let guard = within(lock.acquire()).await.unwrap();
    assert!(within(lock.try_acquire()).await.unwrap().is_none());
    let second = lock.acquire_timeout(Duration::from_millis(50)).await;
    assert_eq!(second.map(drop).unwrap_err(), AcquireError::TimedOut);
    guard.check().await.unwrap();
    let waiting = tokio::spawn(async move { lock.acquire().await });
    joined(&setup.outsider, &format!("{path}/locks"), 1).await;
    within(guard.release()).await.unwrap();
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
    emptied(&setup.outsider, &grants(&path)).await;
}

/// What one owner holds is taken for another, and goes on for the one that holds it.
#[test_with(on_each_release)]
async fn lock_can_be_asked_for_in_another_owners_name(setup: Setup) {
    let path = setup.existing("owners").await;
    let lock = of(&setup.outsider, &path, "ann");
    let other = lock.clone().owned_by("bob");
    let guard = within(lock.acquire()).await.unwrap();
    assert!(within(other.try_acquire()).await.unwrap().is_none());
    let first = guard.token();
    drop(guard);
    assert!(within(other.try_acquire()).await.unwrap().is_none());
    // Another process of hers.
    let again = within(of(&setup.outsider, &path, "ann").acquire()).await.unwrap();
    assert!(again.token() > first);
    assert_eq!(other.holder().await.unwrap().unwrap().owner, "ann");
    within(again.release()).await.unwrap();
    let guard = within(other.acquire()).await.unwrap();
    assert_eq!(other.holder().await.unwrap().unwrap().owner, "bob");
    within(guard.release()).await.unwrap();
}

/// A transaction that fails since something has changed is tried again, with the place that it had.
#[test_with(on_each_release)]
async fn attempt_that_meets_a_change_looks_again(setup: Setup) {
    let path = setup.existing("changing").await;
    let (proxy, zk) = setup.proxied().await;
    let lock = of(&zk, &path, "job");
    within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
    let taking = proxy.on(Match::request(OpCode::MULTI).once()).hold();
    let attempt = tokio::spawn(async move { lock.try_acquire().await });
    within(taking.fired()).await;
    setup.outsider.set(&grants(&path), b"").await.unwrap();
    taking.release();
    let guard = within(attempt).await.unwrap().unwrap().expect("nobody else has it");
    within(guard.release()).await.unwrap();
    emptied(&setup.outsider, &grants(&path)).await;
    emptied(&setup.outsider, &format!("{path}/locks")).await;
}

/// Others count from the transaction that made it.
#[test_with(on_each_release)]
async fn lease_counts_from_before_the_grant_was_asked_for(setup: Setup) {
    let path = setup.existing("late").await;
    let (proxy, zk) = setup.proxied().await;
    let late = Duration::from_millis(300);
    let _slow = proxy.on(Match::reply(OpCode::MULTI).once()).delay(late);
    let guard = within(of(&zk, &path, "job").acquire()).await.unwrap();
    let left = guard.lease_left();
    assert!(left <= LONG - late, "{left:?} of {LONG:?}");
    within(guard.release()).await.unwrap();
}

/// Without a lease it is held until an operator evicts it.
#[test_with(on_each_release_threaded)]
async fn without_lease_only_eviction_frees_a_lock(setup: Setup) {
    let path = setup.existing("by-hand").await;
    let zk = setup.client().await;
    let lock = DurableLock::new(&zk, &path, "gone").without_lease();
    let guard = within(lock.acquire()).await.unwrap();
    assert_eq!(guard.lease_left(), Duration::MAX);
    drop(guard);
    closed(&zk).await;
    let waits = of(&setup.outsider, &path, "waits");
    let early = waits.acquire_timeout(Duration::from_millis(200)).await;
    assert_eq!(early.map(drop).unwrap_err(), AcquireError::TimedOut);
    let waiting = tokio::spawn({
        let lock = waits.clone();
        async move { lock.acquire().await }
    });
    let holder = waits.holder().await.unwrap().unwrap();
    assert_eq!((&*holder.owner, holder.lease), ("gone", None));
    assert!(waits.evict(&holder).await.unwrap());
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
    assert_eq!(waits.holder().await.unwrap(), None);
}

/// Nothing is taken from an unknown holder.
#[test_with(on_each_release)]
async fn foreign_grant_is_waited_for(setup: Setup) {
    let path = setup.existing("stranger").await;
    let stranger = format!("{path}/grants/stranger");
    setup.outsider.create(&stranger, b"?").parents().await.unwrap();
    let lock = of(&setup.outsider, &path, "job").lease(Duration::from_millis(1));
    let early = lock.acquire_timeout(Duration::from_millis(200)).await;
    assert_eq!(early.map(drop).unwrap_err(), AcquireError::TimedOut);
    let holder = lock.holder().await.unwrap().unwrap();
    assert_eq!((&*holder.owner, &*holder.description), ("", "?"));
    setup.outsider.delete(&stranger).await.unwrap();
    within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
}

/// What it costs, as its documentation says.
#[test_with(on_each_release)]
async fn a_durable_lock_costs_what_it_says(setup: Setup) {
    let path = setup.existing("costs").await;
    within(of(&setup.outsider, &path, "before").acquire()).await.unwrap().release().await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let before = proxy.mark();
    let guard = within(of(&zk, &path, "job").acquire()).await.unwrap();
    // The end of the place, and the listing that tells of the end of the grant.
    let ended = |frame: &zk_testkit::proxy::Frame| frame.is_reply(OpCode::DELETE);
    within(proxy.wait_for_since(before, ended)).await;
    zk.sync("/").await.unwrap();
    let counts = proxy.frames_since(before).counts();
    let requests = [
        OpCode::GET_CHILDREN2,
        OpCode::CREATE2,
        OpCode::MULTI,
        OpCode::DELETE,
        OpCode::GET_DATA,
        OpCode::SET_DATA,
    ]
    .map(|op| counts.requests(op));
    assert_eq!(requests, [3, 1, 1, 1, 0, 0]);
    let before = proxy.mark();
    within(guard.release()).await.unwrap();
    assert_eq!(proxy.frames_since(before).counts().requests(OpCode::DELETE), 1);
}

/// A lock that was lost has no lease left, however long it was.
#[test_with(on_each_release)]
async fn evicted_lock_has_no_lease_left(setup: Setup) {
    let path = setup.existing("evicted").await;
    let zk = setup.client().await;
    let guard = within(of(&zk, &path, "job").acquire()).await.unwrap();
    assert!(!guard.lease_left().is_zero());
    let operator = of(&setup.outsider, &path, "operator");
    let holder = operator.holder().await.unwrap().unwrap();
    assert!(operator.evict(&holder).await.unwrap());
    within(guard.lost()).await;
    assert_eq!(guard.lease_left(), Duration::ZERO);
}

/// While it waits for another owner, its own one takes the lock elsewhere: then there is nothing to wait for.
#[test_with(on_each_release)]
async fn grant_of_the_same_owner_ends_the_wait(setup: Setup) {
    let (path, outsider) = (setup.existing("elsewhere").await, &setup.outsider);
    let grant = async || {
        let (names, _) = outsider.children(&grants(&path)).await.unwrap();
        assert_eq!(names.len(), 1, "{names:?}");
        format!("{}/{}", grants(&path), names[0])
    };
    let before = within(of(outsider, &path, "job").acquire()).await.unwrap();
    let ours = grant().await;
    let (data, _) = outsider.get(&ours).await.unwrap();
    within(before.release()).await.unwrap();
    let _other = within(of(outsider, &path, "other").acquire()).await.unwrap();
    let zk = setup.client().await;
    let lock = of(&zk, &path, "job");
    let waiting = tokio::spawn(async move { lock.acquire().await });
    joined(outsider, &format!("{path}/locks"), 1).await;
    let (theirs, all) = (grant().await, grants(&path));
    let changed = outsider.multi().set(&all, b"").delete(&theirs).create(
        &ours,
        &data,
        CreateMode::Persistent,
    );
    changed.await.unwrap().unwrap();
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
    emptied(outsider, &grants(&path)).await;
}

#[test_with(on_each_release)]
async fn grants_that_may_not_be_listed_are_an_error(setup: Setup) {
    let path = setup.existing("unseen").await;
    let blind = Perms::CREATE | Perms::WRITE | Perms::DELETE | Perms::ADMIN;
    let blind = AclList::from_iter([Id::anyone().may(blind)]);
    setup.outsider.create(&grants(&path), b"").acl(&blind).await.unwrap();
    let unseen = within(of(&setup.outsider, &path, "job").acquire()).await;
    assert_eq!(unseen.map(drop).unwrap_err(), AcquireError::Rejected(Rejection::NoAuth));
}

/// The first in line learns of the end of its place while the lock is held, and of nothing else.
#[test_with(in_virtual_time)]
async fn lost_place_in_front_ends_the_wait_for_the_holder(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let held = DurableLock::new(&other, "/job", "holder").without_lease();
    let held = within(held.acquire()).await.unwrap();
    let lock = of(&zk, "/job", "waits");
    // A wait that has heard of a write to its node, and the node.
    let waits = async || {
        let lock = lock.clone();
        let waiting = tokio::spawn(async move { lock.acquire().await });
        pass(Duration::from_secs(3)).await;
        let (names, _) = other.children("/job/locks").await.unwrap();
        let node = format!("/job/locks/{}", names[0]);
        other.set(&node, b"written").await.unwrap();
        pass(Duration::from_secs(3)).await;
        assert!(!waiting.is_finished());
        (waiting, node)
    };
    let (waiting, node) = waits().await;
    other.delete(&node).await.unwrap();
    let ended = within(waiting).await.unwrap();
    assert_eq!(ended.map(drop), Err(AcquireError::NodeDeleted));
    assert_eq!(held.status(), Status::Held);

    let (waiting, _) = waits().await;
    within(held.release()).await.unwrap();
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
}

/// Servers tell nothing to those who may not list the grants, and without a lease no renewal finds out.
#[test_with(in_virtual_time)]
async fn grants_that_could_not_be_watched_are_watched_later(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let lock = DurableLock::new(&zk, "/job", "holder").without_lease();
    let guard = within(lock.acquire()).await.unwrap();
    let all = grants("/job");
    let (acl, _) = other.acl(&all).await.unwrap();
    let blind = Perms::CREATE | Perms::WRITE | Perms::DELETE | Perms::ADMIN;
    other.set_acl(&all, &AclList::from_iter([Id::anyone().may(blind)])).await.unwrap();
    // What its watch is used up for, unheard.
    let stray = format!("{all}/stray");
    other.create(&stray, b"").await.unwrap();
    other.delete(&stray).await.unwrap();
    pass(Duration::from_secs(3)).await;
    other.set_acl(&all, &acl).await.unwrap();
    assert_eq!(guard.status(), Status::Held);
    other.delete(guard.path()).await.unwrap();
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);
}

/// The grant is there, and the attempt that made it does not know yet.
#[test_with(in_virtual_time)]
async fn clones_exclude_each_other_while_a_grant_is_in_doubt(network: Network) {
    let zk = client_on(&network, "ours").await;
    let lock = of(&zk, "/durable", "job");
    let (mut is_lost, mut busy) = (false, 5);
    network.direct(move |_, op| match op {
        OpCode::MULTI if !is_lost => {
            is_lost = true;
            Disposition::AnswerLost
        }
        OpCode::EXISTS if is_lost && busy > 0 => {
            busy -= 1;
            Disposition::Throttled
        }
        _ => Disposition::Answered,
    });
    let attempt = {
        let lock = lock.clone();
        tokio::spawn(async move { lock.acquire().await })
    };
    let is_granted = || {
        network.look(|ensemble| {
            let tree = ensemble.tree(Member(0)).expect("the only member");
            tree.iter().any(|(path, _)| path.starts_with("/durable/grants/"))
        })
    };
    while !is_granted() {
        pass(Duration::from_millis(1)).await;
    }
    assert!(lock.try_acquire().await.unwrap().is_none());
    assert!(!attempt.is_finished(), "it knows already");
    let guard = attempt.await.unwrap().unwrap();
    guard.check().await.unwrap();
    guard.release().await.unwrap();
    lock.try_acquire().await.unwrap().expect("it is free").release().await.unwrap();
}

/// What is released is no business of those behind others, also if they are its owner's.
#[test_with(in_virtual_time)]
async fn release_wakes_the_first_waiter_only(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let asked = Arc::new(AtomicUsize::new(0));
    network.direct({
        let asked = asked.clone();
        move |name, _| {
            asked.fetch_add(usize::from(name == "ours"), SeqCst);
            Disposition::Answered
        }
    });
    let mut costs = Vec::new();
    for count in [1, 5] {
        let lock = of(&zk, "/job", "ours");
        let guard = within(lock.acquire()).await.unwrap();
        let mut waiting = JoinSet::new();
        for _ in 0..count {
            let lock = lock.clone();
            waiting.spawn(async move { lock.acquire().await });
        }
        joined(&other, "/job/locks", count).await;
        pass(Duration::from_secs(3)).await;
        let before = asked.load(SeqCst);
        within(guard.release()).await.unwrap();
        pass(Duration::from_millis(100)).await;
        costs.push(asked.load(SeqCst) - before);
        while let Some(guard) = waiting.join_next().await {
            within(guard.unwrap().unwrap().release()).await.unwrap();
        }
    }
    // The second one learns that nobody is ahead of it any more, and looks at the grants.
    assert!(costs[1] <= costs[0] + 4, "{costs:?}");
}

/// As others read it, however long or odd it is.
#[test_with(in_virtual_time)]
async fn lease_is_that_of_the_record(network: Network) {
    let zk = client_on(&network, "ours").await;
    let cases = [
        (Duration::MAX, Duration::from_millis(u64::MAX)),
        (Duration::from_nanos(1_999_999), Duration::from_millis(1)),
        (Duration::ZERO, Duration::from_millis(1)),
    ];
    for (wished, meant) in cases {
        let lock = DurableLock::new(&zk, "/job", "job").lease(wished);
        let guard = within(lock.acquire()).await.unwrap();
        let left = guard.lease_left();
        // Centuries are for ever.
        assert!(left <= meant || wished == Duration::MAX && left == wished, "{wished:?}: {left:?}");
        assert_eq!(within(lock.holder()).await.unwrap().unwrap().lease, Some(meant));
        drop(guard);
        let again = within(lock.try_acquire()).await.unwrap().expect("it is its owner's");
        within(again.release()).await.unwrap();
    }
}

/// Appending to a path that is none might make one.
#[test_with(in_virtual_time)]
async fn invalid_path_makes_no_node(network: Network) {
    let zk = client_on(&network, "ours").await;
    let (before, _) = zk.children("/").await.unwrap();
    for path in ["", "/a/", "a", "/a//b"] {
        let lock = DurableLock::new(&zk, path, "job");
        for ended in [lock.acquire().await.map(drop), lock.try_acquire().await.map(drop)] {
            let error = ended.unwrap_err();
            assert!(matches!(error, AcquireError::InvalidPath(_)), "{path:?}: {error:?}");
        }
        assert!(lock.holder().await.is_err(), "{path:?}");
    }
    assert_eq!(zk.children("/").await.unwrap().0, before);
}

/// The name of a place without an id can be another contender's, once the path was made anew.
#[test_with(on_each_release)]
async fn grant_deletes_no_other_contenders_place(setup: Setup) {
    let path = setup.existing("nameless").await;
    let (proxy, zk) = setup.proxied().await;
    let lock = DurableLock::builder(&zk, &path).layout(Layout::Bare).build().owned_by("ours");
    within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
    let taking = proxy.on(Match::request(OpCode::MULTI).once()).hold();
    let attempt = tokio::spawn(async move { lock.acquire().await });
    within(taking.fired()).await;
    let other = &setup.outsider;
    let (names, _) = other.children(&format!("{path}/locks")).await.unwrap();
    let place = format!("{path}/locks/{}", names[0]);
    other.delete(&place).await.unwrap();
    other.create(&place, b"theirs").await.unwrap();
    taking.release();
    within(within(attempt).await.unwrap().unwrap().release()).await.unwrap();
    assert_eq!(other.get(&place).await.unwrap().0, "theirs");
}
