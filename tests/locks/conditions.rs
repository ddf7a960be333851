//! When the end of the one in front proves that the lock is ours, and when it does not.
//!
//! A waiter that is woken takes the lock without listing the queue once more, if it can be sure. Each test is
//! about one thing that keeps it from being sure.

use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::BufMut as _;
use zk_client::CreateMode;
use zk_locks::{Acl, AclList, AcquireError, Client, Lock, Lost, Perms, SessionEnd};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::{
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{
    Setup, Waiter, client_on, emptied, in_virtual_time, joined, on_each_release, ops, within,
};

/// A contender made by hand; its node's path.
async fn contend(zk: &Client, path: &str, name: &str) -> String {
    let prefix = format!("{path}/{name}");
    zk.create(&prefix, b"").mode(CreateMode::EphemeralSequential).await.unwrap().path
}

/// A path, the nodes of contenders there, and a waiter that has fallen asleep behind them.
async fn asleep_behind<const N: usize>(setup: &Setup, name: &str) -> (String, [String; N], Waiter) {
    let path = setup.existing(name).await;
    let mut ahead = [(); N].map(|()| String::new());
    for node in &mut ahead {
        *node = contend(&setup.outsider, &path, "lock-").await;
    }
    let waiter = Waiter::asleep(setup, &path).await;
    (path, ahead, waiter)
}

/// What a waiter has asked for since it fell asleep, by so many requests.
fn since_asleep(waiter: &Waiter, by: usize) -> Vec<OpCode> {
    let ops = ops(&waiter.frames()).into_iter();
    ops.filter(|op| *op != OpCode::SYNC).skip(by).collect()
}

/// Nothing keeps it from being sure: the measure of all others.
#[test_with(on_each_release)]
async fn end_of_the_sole_predecessor_is_proof(setup: Setup) {
    let (_, [ahead], mut waiter) = asleep_behind(&setup, "proof").await;
    setup.outsider.delete(&ahead).await.unwrap();
    let guard = waiter.outcome().await.unwrap();
    assert_eq!(since_asleep(&waiter, 4), []);
    within(guard.release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn end_of_the_nearest_alone_is_no_proof(setup: Setup) {
    let (_, [holder, nearest], mut waiter) = asleep_behind(&setup, "several").await;
    setup.outsider.delete(&nearest).await.unwrap();
    waiter.has_read(3).await;
    assert!(waiter.still_waits().await);
    assert_eq!(since_asleep(&waiter, 4), [OpCode::GET_CHILDREN2, OpCode::GET_DATA]);
    setup.outsider.delete(&holder).await.unwrap();
    within(waiter.outcome().await.unwrap().release()).await.unwrap();
    // The second time there was only one in front.
    let expected = [OpCode::GET_CHILDREN2, OpCode::GET_DATA, OpCode::DELETE];
    assert_eq!(since_asleep(&waiter, 4), expected);
}

/// All those in front may go at once; the order of the events says nothing.
#[test_with(on_each_release)]
async fn end_of_all_predecessors_needs_a_listing(setup: Setup) {
    let (_, [first, second], mut waiter) = asleep_behind(&setup, "all").await;
    setup.outsider.multi().delete(&second).delete(&first).await.unwrap().unwrap();
    let guard = waiter.outcome().await.unwrap();
    assert_eq!(since_asleep(&waiter, 4), [OpCode::GET_CHILDREN2]);
    within(guard.release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn a_write_to_the_node_in_front_is_no_proof(setup: Setup) {
    let (_, [ahead], mut waiter) = asleep_behind(&setup, "write").await;
    setup.outsider.set(&ahead, b"news").await.unwrap();
    waiter.has_read(3).await;
    assert!(waiter.still_waits().await);
    setup.outsider.delete(&ahead).await.unwrap();
    within(waiter.outcome().await.unwrap().release()).await.unwrap();
}

/// The waiter behind the deleted node watches the holder's by then: two would be granted at once.
#[test_with(on_each_release)]
async fn deleted_waiter_fails_and_next_is_granted(setup: Setup) {
    let (path, [ahead], mut unlucky) = asleep_behind(&setup, "own").await;
    let mut next = Waiter::asleep(&setup, &path).await;
    setup.outsider.delete(&unlucky.node()).await.unwrap();
    assert_eq!(unlucky.outcome().await.map(drop), Err(AcquireError::NodeDeleted));
    next.has_read(3).await;
    assert!(next.still_waits().await);
    setup.outsider.delete(&ahead).await.unwrap();
    within(next.outcome().await.unwrap().release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// Behind several, a waiter does not watch its own node at first: the listing that it needs in any case shows that it is
/// gone, and if nothing moves, the watch that it asks for after a while does.
#[test_with(on_each_release)]
async fn deletion_of_an_unwatched_node_is_noticed(setup: Setup) {
    let path = setup.existing("unwatched").await;
    for moves in [false, true] {
        let holder = contend(&setup.outsider, &path, "lock-").await;
        let nearest = contend(&setup.outsider, &path, "lock-").await;
        let proxy = setup.proxy().await;
        // It does not get to know that it watches the one in front, so it cannot ask for more.
        let read = proxy.on(Match::reply(OpCode::GET_DATA).once()).hold();
        let mut unlucky = Waiter::joining(proxy, &path).await;
        within(read.fired()).await;
        let mut names = setup.outsider.children(&path).await.unwrap().0;
        names.retain(|name| !holder.ends_with(name) && !nearest.ends_with(name));
        let own = format!("{path}/{}", names.pop().unwrap());
        assert!(names.is_empty());
        setup.outsider.delete(&own).await.unwrap();
        if moves {
            setup.outsider.delete(&nearest).await.unwrap();
        }
        read.release();
        assert_eq!(unlucky.outcome().await.map(drop), Err(AcquireError::NodeDeleted));
        let last = match moves {
            true => OpCode::GET_CHILDREN2,
            false => OpCode::GET_DATA,
        };
        assert_eq!(since_asleep(&unlucky, 3), [last]);
        for node in [&holder, &nearest] {
            setup.outsider.delete(node).if_exists().await.unwrap();
        }
    }
}

/// It cannot hear of the end of its node, and so has to look.
#[test_with(on_each_release)]
async fn waiter_with_unreadable_node_must_list(setup: Setup) {
    let path = setup.existing("unreadable").await;
    let unreadable = Acl { perms: Perms::WRITE, ..Acl::open_unsafe() };
    let acl = AclList::from_iter([unreadable]);
    for is_deleted in [false, true] {
        let ahead = contend(&setup.outsider, &path, "lock-").await;
        let (proxy, zk) = setup.proxied().await;
        let lock = Lock::builder(&zk, &path).acl(&acl).build();
        let mut waiter = Waiter::of(proxy, zk, lock);
        waiter.has_read(2).await;
        if is_deleted {
            setup.outsider.delete(&waiter.node()).await.unwrap();
        }
        setup.outsider.delete(&ahead).await.unwrap();
        match waiter.outcome().await {
            Ok(guard) if !is_deleted => within(guard.release()).await.unwrap(),
            Err(AcquireError::NodeDeleted) if is_deleted => {}
            outcome => panic!("{outcome:?} although it is {is_deleted} that it was deleted"),
        }
        assert_eq!(since_asleep(&waiter, 4)[0], OpCode::GET_CHILDREN2);
    }
    emptied(&setup.outsider, &path).await;
}

/// It asks for its own node once in a while at most, however long it waits.
#[test_with(in_virtual_time)]
async fn waiter_with_unreadable_node_rests(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    other.create("/rests", b"").await.unwrap();
    let mut ahead = Vec::new();
    for _ in 0..4 {
        ahead.push(contend(&other, "/rests", "lock-").await);
    }
    let reads = Arc::new(AtomicUsize::new(0));
    network.direct({
        let reads = reads.clone();
        move |name, op| {
            reads.fetch_add(usize::from(name == "ours" && op == OpCode::GET_DATA), SeqCst);
            Disposition::Answered
        }
    });
    let unreadable = Acl { perms: Perms::WRITE, ..Acl::open_unsafe() };
    let lock = Lock::builder(&zk, "/rests").acl(&AclList::from_iter([unreadable])).build();
    let waiting = tokio::spawn(async move { lock.acquire().await });
    pass(Duration::from_secs(30)).await;
    let count = reads.load(SeqCst);
    assert!(count <= 3, "{count} reads");
    for node in ahead {
        other.delete(&node).await.unwrap();
    }
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
}

/// One transaction of an outsider takes both nodes; the events come one after the other all the same.
#[test_with(on_each_release)]
async fn own_node_gone_before_predecessor_fails(setup: Setup) {
    let (path, [ahead], mut unlucky) = asleep_behind(&setup, "both").await;
    let mut next = Waiter::asleep(&setup, &path).await;
    let second = unlucky.proxy.on(Match::notification().nth(2)).hold();
    let own = unlucky.node();
    setup.outsider.multi().delete(&own).delete(&ahead).await.unwrap().unwrap();
    within(second.fired()).await;
    second.release();
    assert_eq!(unlucky.outcome().await.map(drop), Err(AcquireError::NodeDeleted));
    within(next.outcome().await.unwrap().release()).await.unwrap();
}

/// The other way round it cannot know better: for all it can see it had the lock for a moment, and was then
/// deprived of it as any holder can be.
#[test_with(on_each_release)]
async fn own_node_gone_after_predecessor_is_loss(setup: Setup) {
    let (path, [ahead], mut unlucky) = asleep_behind(&setup, "both").await;
    let mut next = Waiter::asleep(&setup, &path).await;
    let second = unlucky.proxy.on(Match::notification().nth(2)).hold();
    let own = unlucky.node();
    setup.outsider.multi().delete(&ahead).delete(&own).await.unwrap().unwrap();
    let guard = unlucky.outcome().await.unwrap();
    second.release();
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);
    let next = next.outcome().await.unwrap();
    assert!(next.token() > guard.token());
    within(next.release()).await.unwrap();
}

/// All nodes of a session go at once when it ends, and the events are in no order: here only one of them arrives, before
/// the waiter can know that its session is over. It goes on until it has been each of the two.
#[test_with(on_each_release)]
async fn waiter_behind_its_own_session_fails(setup: Setup) {
    let path = setup.existing("session").await;
    let mut seen = BTreeSet::new();
    while seen.len() < 2 {
        let mut waiter = Waiter::asleep_behind_its_own_session(&setup, &path).await;
        let (node, mark) = (waiter.node(), waiter.proxy.mark());
        let second = waiter.proxy.on(Match::notification().nth(2)).hold();
        // To the client it is a request as any other.
        let ends = waiter.proxy.on(Match::request(OpCode::EXISTS).once()).rewrite(end_of_session);
        let zk = waiter.zk.clone();
        let asks = tokio::spawn(async move { zk.exists("/").await });
        let held = within(second.fired()).await;
        waiter.lists_since(mark).await;
        seen.insert(held.path == Some(node));
        second.release();
        let expired = AcquireError::SessionEnded(SessionEnd::Expired);
        assert_eq!(waiter.outcome().await.map(drop), Err(expired));
        within(asks).await.unwrap().unwrap_err();
        assert_eq!(ends.times_fired(), 1);
        emptied(&setup.outsider, &path).await;
    }
}

/// Rewrites a request, so that the server ends the session.
fn end_of_session(request: &mut Vec<u8>) {
    request.truncate(4);
    request.put_i32(OpCode::CLOSE_SESSION.0);
}

/// Events that were missed come in no particular order, after a reconnect.
#[test_with(on_each_release)]
async fn predecessor_gone_offline_needs_a_listing(setup: Setup) {
    let (_, [ahead], mut waiter) = asleep_behind(&setup, "missed").await;
    waiter.proxy.refuse_connections().await;
    waiter.proxy.reset_all();
    setup.outsider.delete(&ahead).await.unwrap();
    waiter.proxy.accept_connections().await;
    let guard = waiter.outcome().await.unwrap();
    assert_eq!(since_asleep(&waiter, 4), [OpCode::SET_WATCHES, OpCode::GET_CHILDREN2]);
    within(guard.release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn waiter_whose_node_went_offline_fails(setup: Setup) {
    let path = setup.existing("missed-both").await;
    // Names that sort before the waiter's own and behind it: missed events come in the order in which
    // a client names its watches.
    for name in ["_a-lock-", "lock-"] {
        let ahead = contend(&setup.outsider, &path, name).await;
        let mut waiter = Waiter::asleep(&setup, &path).await;
        waiter.proxy.refuse_connections().await;
        waiter.proxy.reset_all();
        setup.outsider.delete(&ahead).await.unwrap();
        setup.outsider.delete(&waiter.node()).await.unwrap();
        waiter.proxy.accept_connections().await;
        assert_eq!(waiter.outcome().await.map(drop), Err(AcquireError::NodeDeleted));
    }
    emptied(&setup.outsider, &path).await;
}

/// A listing that is older than the end of the one in front names it still. The read that is to watch it
/// finds out.
#[test_with(on_each_release)]
async fn stale_listing_revives_no_predecessor(setup: Setup) {
    let (_, [holder, nearest], mut waiter) = asleep_behind(&setup, "stale").await;
    let listing = waiter.proxy.on(Match::reply(OpCode::GET_CHILDREN2).once()).hold();
    setup.outsider.delete(&nearest).await.unwrap();
    within(listing.fired()).await;
    // The listing shows the holder, which is gone when it arrives.
    setup.outsider.delete(&holder).await.unwrap();
    listing.release();
    let guard = waiter.outcome().await.unwrap();
    within(guard.release()).await.unwrap();
}

/// A Curator writer that goes on as a reader puts a node in front of all waiters, with the number
/// that its write lock has.
#[test_with(on_each_release)]
async fn end_of_a_write_lock_is_no_proof(setup: Setup) {
    let path = setup.existing("downgrade").await;
    let write = contend(&setup.outsider, &path, "_c_6e9a-__WRIT__").await;
    let mut waiter = Waiter::asleep(&setup, &path).await;
    let read = format!("{path}/_c_51b0-__READ__{}", &write[write.len() - 10..]);
    setup.outsider.create(&read, b"").mode(CreateMode::Ephemeral).await.unwrap();
    setup.outsider.delete(&write).await.unwrap();
    waiter.has_read(3).await;
    assert!(waiter.still_waits().await);
    setup.outsider.delete(&read).await.unwrap();
    within(waiter.outcome().await.unwrap().release()).await.unwrap();
}

/// Servers send no deletion event to a client that may no longer read the node, and the watch is gone with it.
#[test_with(on_each_release)]
async fn waiter_with_a_lost_watch_rechecks(setup: Setup) {
    let path = setup.existing("silence").await;
    let ahead = contend(&setup.outsider, &path, "lock-").await;
    let (proxy, zk) = setup.proxied().await;
    let lock = Lock::builder(&zk, &path).recheck(Some(Duration::from_millis(100))).build();
    let silence = proxy.on(Match::notification()).drop_frame();
    let mut waiting = pin!(lock.acquire());
    let asleep = async {
        joined(&setup.outsider, &path, 2).await;
        proxy.wait_for(|frame| frame.is_reply(OpCode::GET_DATA)).await;
    };
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("granted before the one in front was gone"),
        () = within(asleep) => {}
    }
    let gone = async {
        setup.outsider.delete(&ahead).await.unwrap();
        silence.fired().await;
    };
    let (guard, ()) = within(async { tokio::join!(waiting, gone) }).await;
    within(guard.unwrap().release()).await.unwrap();
}
