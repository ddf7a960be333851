//! Several locks as one.

use std::time::Duration;

use zk_client::{AclList, CreateMode, Id, Perms};
use zk_locks::{
    AcquireError, Client, Guard, Layout, Lock, Lost, MultiLock, Rejection, SessionEnd, SessionId,
    Status,
};
use zk_proto::OpCode;
use zk_testkit::proxy::{Match, Proxy};
use zk_tests::{
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{
    Setup, client_on, closed, emptied, in_virtual_time, joined, on_each_release,
    on_each_release_timeless, ops, within,
};

/// Scenario 51.
#[test_with(on_each_release)]
async fn missing_path_delays_joining_the_others(setup: Setup) {
    let (there, missing) = (setup.existing("there").await, setup.path("missing/lock"));
    let (proxy, zk) = setup.proxied().await;
    let mark = proxy.mark();
    let first = proxy.on(Match::reply(OpCode::MULTI).once()).hold();
    let both = MultiLock::new(&zk, [&there, &missing]);
    let look = async {
        within(first.fired()).await;
        let (names, _) = setup.outsider.children(&there).await.unwrap();
        assert!(names.is_empty(), "{names:?}");
        first.release();
    };
    let (guards, ()) = within(async { tokio::join!(both.acquire(), look) }).await;
    let guards = guards.unwrap();
    let frames = proxy.frames_since(mark);
    let batch = [OpCode::MULTI, OpCode::GET_CHILDREN2, OpCode::GET_CHILDREN2];
    // That of both is made once.
    let parents = [OpCode::CREATE_CONTAINER; 4];
    assert_eq!(ops(&frames), [&batch[..], &parents, &batch].concat(), "{frames}");
    assert_eq!(frames.round_trips(), 2, "{frames}");
    within(guards.release()).await.unwrap();
    emptied(&setup.outsider, &there).await;
    emptied(&setup.outsider, &missing).await;
}

#[test_with(on_each_release_timeless)]
async fn free_locks_cost_one_round_trip(setup: Setup) {
    let paths = [setup.existing("a").await, setup.existing("b").await];
    let (proxy, zk) = setup.proxied().await;
    let all = MultiLock::new(&zk, [&paths[1], &paths[0], &paths[1]]);
    let mark = proxy.mark();
    let guards = within(all.acquire()).await.unwrap();
    let frames = proxy.frames_since(mark);
    let expected = [OpCode::MULTI, OpCode::GET_CHILDREN2, OpCode::GET_CHILDREN2];
    assert_eq!((ops(&frames), frames.round_trips()), (expected.to_vec(), 1), "{frames}");
    // In the order of asking, each path once.
    assert_eq!(guards.len(), 2);
    assert!(guards.iter().next().unwrap().path().starts_with(&paths[1]));
    for path in &paths {
        let guard: &Guard = guards.get(path).unwrap();
        let stat = setup.outsider.exists(guard.path()).await.unwrap().unwrap();
        assert_eq!(guard.token().get(), stat.czxid.0);
    }
    assert_eq!(within(guards.check()).await, Ok(()));
    let written = guards.transaction().unwrap().set(&paths[0], b"1").await.unwrap();
    assert_eq!(written.map(|results| results.len()), Ok(3));

    let mark = proxy.mark();
    within(guards.release()).await.unwrap();
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::DELETE; 2], "{frames}");
    assert_eq!(frames.round_trips(), 1, "{frames}");
}

/// The nodes of one transaction are too long for one request, but not for one each.
#[test_with(on_each_release)]
async fn oversized_set_is_taken_in_path_order(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let mut paths = Vec::new();
    for name in ["c", "a", "b"] {
        paths.push(setup.existing(name).await);
    }
    let long = "x".repeat(400 << 10);
    let lock = |path: &String| Lock::builder(&zk, path).description(&long).build();
    let all = MultiLock::of(paths.iter().map(lock));
    let mark = proxy.mark();
    let guards = within(all.acquire()).await.unwrap();
    let asked: Vec<_> = guards.iter().filter_map(|it| zk_client::path::parent(it.path())).collect();
    assert_eq!(asked, paths);
    let frames = proxy.frames_since(mark).requests();
    let created = frames.iter().filter(|frame| frame.is_request(OpCode::CREATE2));
    let created: Vec<_> = created.filter_map(|frame| frame.path.clone()).collect();
    assert!(created.is_sorted_by_key(|path| zk_client::path::parent(path)), "{created:?}");
    assert_eq!(created.len(), 3);
    within(guards.release()).await.unwrap();
    within(within(all.try_acquire()).await.unwrap().unwrap().release()).await.unwrap();
}

/// Scenario 45, for several paths of which one is exhausted: nothing is kept while that gets empty.
#[test_with(on_each_release)]
async fn exhausted_path_rejoins_all_queues(setup: Setup) {
    let paths = [setup.existing("fresh").await, setup.existing("exhausted").await];
    let zk = setup.client().await;
    let exhausted = Lock::builder(&zk, &paths[1]).rotate_at(2).build();
    within(within(exhausted.acquire()).await.unwrap().release()).await.unwrap();
    let holder = within(exhausted.acquire()).await.unwrap();
    let last = holder.token();
    let both = MultiLock::of([Lock::new(&zk, &paths[0]), exhausted]);
    let rotating = tokio::spawn(async move { both.acquire().await });
    // It has come to both, and left both again.
    let been = async {
        while setup.outsider.exists(&paths[0]).await.unwrap().unwrap().cversion < 2 {
            tokio::task::yield_now().await;
        }
    };
    within(been).await;
    joined(&setup.outsider, &paths[0], 0).await;
    joined(&setup.outsider, &paths[1], 1).await;
    within(holder.release()).await.unwrap();
    let guards = within(rotating).await.unwrap().unwrap();
    let renewed = guards.get(&paths[1]).unwrap();
    assert!(renewed.path().ends_with("-0000000000"), "{}", renewed.path());
    assert!(renewed.token() > last);
    within(guards.release()).await.unwrap();
}

/// Asks for locks, of which another client deletes the node at this path before it is known that they were made.
async fn deleted_in_doubt(
    setup: &Setup,
    proxy: &Proxy,
    locks: MultiLock,
    path: &str,
) -> Result<(), AcquireError> {
    let created = proxy.on(Match::reply(OpCode::MULTI).once()).hold();
    let asking = tokio::spawn(async move { locks.acquire().await });
    within(created.fired()).await;
    proxy.refuse_connections().await;
    proxy.reset_all();
    let (names, _) = setup.outsider.children(path).await.unwrap();
    setup.outsider.delete(&zk_client::path::join(path, &names[0])).await.unwrap();
    proxy.accept_connections().await;
    within(asking).await.unwrap().map(drop)
}

/// They are made together: one that is missing when that is found out was deleted by another client.
#[test_with(on_each_release)]
async fn node_in_doubt_that_others_delete_is_told(setup: Setup) {
    let paths = [setup.existing("kept").await, setup.existing("deleted").await];
    let (proxy, zk) = setup.proxied().await;
    let failed = deleted_in_doubt(&setup, &proxy, MultiLock::new(&zk, &paths), &paths[1]).await;
    assert_eq!(failed, Err(AcquireError::NodeDeleted));
    joined(&setup.outsider, &paths[0], 0).await;
}

/// A layout without an id in its names, and one with: the first one's cannot be told from another client's by name.
fn with_and_without_ids(zk: &Client, paths: &[String; 2]) -> MultiLock {
    let [plain, unique] = paths;
    let plain = Lock::builder(zk, plain).layout(Layout::Bare).build();
    MultiLock::of([plain, Lock::new(zk, unique)])
}

#[test_with(on_each_release)]
async fn doubt_is_not_resolved_by_others_nodes(setup: Setup) {
    let paths = [setup.existing("plain").await, setup.existing("unique").await];
    let theirs = Lock::builder(&setup.outsider, &paths[0]).layout(Layout::Bare).build();
    let theirs = within(theirs.acquire()).await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let lost = proxy.on(Match::request(OpCode::MULTI).once()).reset();
    let both = with_and_without_ids(&zk, &paths);
    let asking = tokio::spawn(async move { both.acquire().await });
    joined(&setup.outsider, &paths[0], 2).await;
    assert_eq!(lost.times_fired(), 1);
    within(theirs.release()).await.unwrap();
    within(within(asking).await.unwrap().unwrap().release()).await.unwrap();
    emptied(&setup.outsider, &paths[0]).await;
}

/// Any of the nodes shows that all were made.
#[test_with(on_each_release)]
async fn rest_of_a_doubtful_multi_lock_is_deleted(setup: Setup) {
    let paths = [setup.existing("plain").await, setup.existing("unique").await];
    for deleted in &paths {
        let (proxy, zk) = setup.proxied().await;
        let both = with_and_without_ids(&zk, &paths);
        let failed = deleted_in_doubt(&setup, &proxy, both, deleted).await;
        assert_eq!(failed, Err(AcquireError::NodeDeleted), "{deleted}");
        for path in &paths {
            emptied(&setup.outsider, path).await;
        }
    }
}

#[test_with(on_each_release)]
async fn unobtainable_lock_fails_all_at_once(setup: Setup) {
    let path = setup.existing("a").await;
    let node = format!("{path}/leaf");
    setup.outsider.create(&node, b"").mode(CreateMode::Ephemeral).await.unwrap();
    let zk = setup.client().await;
    let refused = within(MultiLock::new(&zk, [&path, &node]).acquire()).await;
    let childless = AcquireError::Rejected(Rejection::NoChildrenForEphemerals);
    assert_eq!(refused.map(drop), Err(childless));
    joined(&setup.outsider, &path, 1).await;
    let none = within(MultiLock::new(&zk, [""; 0]).acquire()).await.unwrap();
    assert!(none.is_empty() && none.transaction().is_none());
}

/// Who has lost a place in one queue does not wait in the others.
#[test_with(on_each_release)]
async fn lost_place_in_one_queue_ends_the_wait_for_all(setup: Setup) {
    let paths = [setup.existing("kept").await, setup.existing("lost").await];
    let held = MultiLock::new(&setup.outsider, &paths);
    let held = within(held.acquire()).await.unwrap();
    let zk = setup.client().await;
    let both = MultiLock::new(&zk, &paths);
    let asking = tokio::spawn(async move { both.acquire().await.map(drop) });
    joined(&setup.outsider, &paths[1], 2).await;
    let contenders = Lock::new(&setup.outsider, &paths[1]).queue().contenders().await.unwrap();
    setup.outsider.delete(&zk_client::path::join(&paths[1], &contenders[1].name)).await.unwrap();
    assert_eq!(within(asking).await.unwrap(), Err(AcquireError::NodeDeleted));
    joined(&setup.outsider, &paths[0], 1).await;
    within(held.release()).await.unwrap();
}

/// Each lives with the session of its own client, and below that one's root.
#[test_with(on_each_release)]
async fn each_lock_belongs_to_its_own_client(setup: Setup) {
    let (one, other) = (setup.client().await, setup.client().await);
    let (root, plain) = (setup.existing("root").await, setup.path("plain"));
    let below = one.chrooted(&root).unwrap();
    let locks =
        || [Lock::new(&other, &plain), Lock::new(&below, "/lock"), Lock::new(&one, "/lock")];
    let lock = MultiLock::of(locks().into_iter().take(2));
    let guards = within(lock.acquire()).await.unwrap();
    let nodes: Vec<Option<SessionId>> = async {
        let mut owners = Vec::new();
        for (zk, guard) in [&other, &below].into_iter().zip(&guards) {
            let stat = zk.exists(guard.path()).await.unwrap();
            owners.push(stat.map(|stat| stat.ephemeral_owner));
        }
        owners
    }
    .await;
    assert_eq!(nodes, [Some(other.session().id()), Some(one.session().id())]);
    joined(&setup.outsider, &format!("{root}/lock"), 1).await;
    assert!(within(lock.try_acquire()).await.unwrap().is_none());
    // The same path below another root is another lock.
    let all = MultiLock::of(locks());
    closed(&other).await;
    let held: Vec<bool> = guards.iter().map(|guard| guard.status() == Status::Held).collect();
    assert_eq!(
        (held, within(guards.lost()).await),
        (vec![false, true], Lost::SessionEnded(SessionEnd::Closed),)
    );
    emptied(&setup.outsider, &plain).await;
    drop(guards);
    emptied(&setup.outsider, &format!("{root}/lock")).await;
    let error = AcquireError::SessionEnded(SessionEnd::Closed);
    assert_eq!(within(all.acquire()).await.map(drop), Err(error));
}

/// The servers' names of their paths say which comes first, and whether it is another lock at all.
#[test_with(on_each_release)]
async fn locks_below_several_roots_are_taken_in_one_order(setup: Setup) {
    let (one, root) = (setup.client().await, setup.existing("root").await);
    let below = one.chrooted(&root).unwrap();
    assert!(below.shares_session(&one) && !below.is_same_view(&one));
    assert!(!one.shares_session(&setup.outsider));
    let [first, second] = ["zz", "zzz"].map(|name| format!("{root}/{name}"));
    let twice = MultiLock::of([Lock::new(&below, "/zz"), Lock::new(&one, &first)]);
    within(within(twice.acquire()).await.unwrap().release()).await.unwrap();
    let held = within(Lock::new(&setup.outsider, &first).acquire()).await.unwrap();
    let both = MultiLock::of([Lock::new(&one, &second), Lock::new(&below, "/zz")]);
    let asking = tokio::spawn(async move { both.acquire().await });
    joined(&setup.outsider, &first, 2).await;
    assert_eq!(setup.outsider.exists(&second).await.unwrap(), None);
    within(held.release()).await.unwrap();
    let guards = within(asking).await.unwrap().unwrap();
    assert_eq!(guards.len(), 2);
}

/// One transaction for all of them, and in it each node as its own lock has it.
#[test_with(on_each_release)]
async fn each_lock_keeps_its_own_settings(setup: Setup) {
    let paths = [setup.existing("open").await, setup.existing("closed").await];
    let few = AclList::from_iter([Id::anyone().may(Perms::READ | Perms::DELETE)]);
    let open = Lock::builder(&setup.outsider, &paths[0]).build();
    let closed = Lock::builder(&setup.outsider, &paths[1]).acl(&few).description("closed").build();
    let guards = within(MultiLock::of([open, closed]).acquire()).await.unwrap();
    let read = async |path: &str| {
        let node = guards.get(path).unwrap().path();
        (setup.outsider.acl(node).await.unwrap().0, setup.outsider.get(node).await.unwrap().0)
    };
    let ((open, _), (closed, told)) = (read(&paths[0]).await, read(&paths[1]).await);
    assert_eq!((open, closed), (AclList::from_iter([Id::anyone().may(Perms::ALL)]), few));
    assert_eq!(told, "closed");
    within(guards.release()).await.unwrap();
}

/// A place at the head of its queue is looked at before the grant: its client may be the last to hear of its end.
#[test_with(in_virtual_time)]
async fn lock_that_was_free_is_looked_at_again_before_the_grant(network: Network) {
    let (zk, second) = (client_on(&network, "one").await, client_on(&network, "two").await);
    let other = client_on(&network, "other").await;
    let held = Lock::new(&other, "/b").acquire().await.unwrap();
    let both = [Lock::new(&zk, "/a"), Lock::new(&second, "/b")];
    let both = tokio::spawn(async move { MultiLock::of(both).acquire().await });
    pass(Duration::from_secs(5)).await;
    network.cut("one");
    let (names, _) = other.children("/a").await.unwrap();
    other.delete(&format!("/a/{}", names[0])).await.unwrap();
    let theirs = Lock::new(&other, "/a").acquire().await.unwrap();
    held.release().await.unwrap();
    pass(Duration::from_secs(1)).await;
    network.heal();
    assert_eq!(within(both).await.unwrap().map(drop), Err(AcquireError::NodeDeleted));
    assert_eq!(theirs.status(), Status::Held);
}

/// A place at the head of its queue is watched while another lock is waited for.
#[test]
fn lost_place_in_front_ends_the_wait_for_the_others() {
    for of_one_client in [true, false] {
        in_virtual_time(async |network| {
            let (zk, second) = (client_on(&network, "one").await, client_on(&network, "two").await);
            let other = client_on(&network, "other").await;
            let held = Lock::new(&other, "/b").acquire().await.unwrap();
            let clients = if of_one_client { [&zk, &zk] } else { [&zk, &second] };
            let both = [Lock::new(clients[0], "/a"), Lock::new(clients[1], "/b")];
            let both = tokio::spawn(async move { MultiLock::of(both).acquire().await });
            pass(Duration::from_secs(3)).await;
            let (names, _) = other.children("/a").await.unwrap();
            let node = format!("/a/{}", names[0]);
            // No end of the wait.
            other.set(&node, b"written").await.unwrap();
            pass(Duration::from_secs(3)).await;
            other.delete(&node).await.unwrap();
            let failed = within(both).await.unwrap().map(drop);
            assert_eq!(failed, Err(AcquireError::NodeDeleted), "{of_one_client}");
            pass(Duration::from_secs(1)).await;
            let (names, _) = other.children("/b").await.unwrap();
            assert_eq!(names.len(), 1, "that of the holder");
            assert_eq!(held.status(), Status::Held);
        });
    }
}

/// What was answered is as new as it gets, however long that took.
#[test_with(in_virtual_time)]
async fn slow_answers_do_not_keep_free_locks(network: Network) {
    let zk = client_on(&network, "ours").await;
    network.direct(|_, op| match op {
        OpCode::GET_CHILDREN2 | OpCode::EXISTS => Disposition::Late(Duration::from_millis(1500)),
        _ => Disposition::Answered,
    });
    let paths = ["/a".to_owned(), "/b".to_owned()];
    let guards = within(with_and_without_ids(&zk, &paths).acquire()).await.unwrap();
    within(guards.release()).await.unwrap();
}

/// They are lost with the first of them.
#[test_with(in_virtual_time)]
async fn several_leases_are_as_long_as_the_shortest(network: Network) {
    let (short, long) = (Duration::from_secs(6), Duration::from_secs(20));
    let one = network.options("one", "", 1).session_timeout(short).connect().await.unwrap();
    let other = network.options("other", "", 2).session_timeout(long).connect().await.unwrap();
    for zks in [[&one, &other], [&other, &one]] {
        let locks = ["/a", "/b"].into_iter().zip(zks).map(|(path, zk)| Lock::new(zk, path));
        let guards = within(MultiLock::of(locks).acquire()).await.unwrap();
        network.cut("one");
        network.cut("other");
        pass(Duration::from_millis(100)).await;
        let Status::Suspect { lease_left } = guards.status() else { panic!("{guards:?}") };
        assert!(lease_left < short, "{lease_left:?}");
        network.heal();
        pass(Duration::from_secs(1)).await;
        within(guards.release()).await.unwrap();
    }
}

/// A lock without a name waits for all on its path, but not for another of the same attempt.
#[test_with(on_each_release)]
async fn locks_with_and_without_a_name_are_taken_together(setup: Setup) {
    let path = setup.existing("named").await;
    let zk = &setup.outsider;
    for named_first in [true, false] {
        let (named, plain) = (Lock::named(zk, &path, "report").build(), Lock::new(zk, &path));
        let locks = if named_first { [named, plain] } else { [plain, named] };
        let both = MultiLock::of(locks);
        let guards = within(both.acquire()).await.unwrap();
        let is_named: Vec<_> = guards.iter().map(|it| it.path().contains("report")).collect();
        assert_eq!(is_named, [named_first, !named_first]);
        within(guards.release()).await.unwrap();
        let guards = within(both.try_acquire()).await.unwrap().expect("they are free");
        within(guards.release()).await.unwrap();
    }
}
