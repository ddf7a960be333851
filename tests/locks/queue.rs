//! The order of grants.

use std::sync::Arc;

use tokio::task::JoinSet;
use zk_client::path::parse_sequence;
use zk_locks::{Acl, AclList, AcquireError, Lock, Rejection};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::{fenced::FencedResource, test_with};

use crate::locks::support::{
    Setup, Waiter, closed, emptied, joined, on_each_release, on_each_release_threaded,
    on_each_release_timeless, ops, within,
};

const CONTENDERS: i32 = 50;

#[test_with(on_each_release_threaded)]
async fn fifty_sessions_are_granted_in_order(setup: Setup) {
    let path = setup.path("fifo");
    let resource = Arc::new(FencedResource::default());
    let mut running = JoinSet::new();
    for _ in 0..CONTENDERS {
        let zk = setup.client().await;
        let (path, resource) = (path.clone(), resource.clone());
        running.spawn(async move {
            let guard = Lock::new(&zk, &path).acquire().await.unwrap();
            let token = guard.token().get();
            resource.enter(token);
            let number = parse_sequence(&guard.path()[guard.path().len() - 10..]).unwrap();
            resource.leave(token);
            guard.release().await.unwrap();
            closed(&zk).await;
            (token, number)
        });
    }
    let mut granted = within(running.join_all()).await;
    // Tokens have grown from grant to grant, so their order is that of the grants.
    resource.assert_clean();
    granted.sort_unstable();
    let numbers: Vec<i32> = granted.into_iter().map(|(_, number)| number).collect();
    assert!(numbers.iter().copied().eq(0..CONTENDERS), "{numbers:?}");
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release)]
async fn waiter_skips_predecessor_that_gave_up(setup: Setup) {
    let path = setup.existing("gives-up").await;
    let holder = Lock::new(&setup.outsider, &path).acquire().await.unwrap();
    let mut middle = Waiter::asleep(&setup, &path).await;
    let mut last = Waiter::asleep(&setup, &path).await;
    middle.give_up().await;
    // It reads the holder's node now.
    last.has_read(3).await;
    assert!(last.still_waits().await);
    let frames = last.frames();
    let last_read = frames.requests().iter().rfind(|f| f.is_request(OpCode::GET_DATA)).cloned();
    assert_eq!(last_read.and_then(|frame| frame.path).as_deref(), Some(holder.path()));
    let token = holder.token();
    within(holder.release()).await.unwrap();
    let guard = last.outcome().await.unwrap();
    assert!(guard.token() > token);
    within(guard.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// The read that was to watch the predecessor finds nothing, and arms nothing.
#[test_with(on_each_release)]
async fn sole_predecessor_gone_early_is_proof(setup: Setup) {
    let path = setup.existing("vanishes").await;
    let holder = Lock::new(&setup.outsider, &path).acquire().await.unwrap();
    let proxy = setup.proxy().await;
    let listing = proxy.on(Match::reply(OpCode::GET_CHILDREN2).once()).hold();
    let mut waiter = Waiter::joining(proxy, &path).await;
    within(listing.fired()).await;
    within(holder.release()).await.unwrap();
    listing.release();
    let guard = waiter.outcome().await.unwrap();
    let frames = waiter.frames();
    let expected = [OpCode::CREATE2, OpCode::GET_CHILDREN2, OpCode::GET_DATA, OpCode::GET_DATA];
    assert_eq!(ops(&frames), expected, "{frames}");
    within(guard.release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn waiter_moves_up_behind_a_gone_one(setup: Setup) {
    let path = setup.existing("vanishes-in-line").await;
    let holder = Lock::new(&setup.outsider, &path).acquire().await.unwrap();
    let mut middle = Waiter::asleep(&setup, &path).await;
    let proxy = setup.proxy().await;
    let listing = proxy.on(Match::reply(OpCode::GET_CHILDREN2).once()).hold();
    let mut last = Waiter::joining(proxy, &path).await;
    within(listing.fired()).await;
    middle.give_up().await;
    joined(&setup.outsider, &path, 2).await;
    listing.release();
    // The one that is gone, its own, and the holder's.
    last.has_read(3).await;
    assert!(last.still_waits().await);
    within(holder.release()).await.unwrap();
    within(last.outcome().await.unwrap().release()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn acquires_of_one_session_exclude_in_order(setup: Setup) {
    let path = setup.existing("twice").await;
    let (proxy, zk) = setup.proxied().await;
    let lock = Lock::new(&zk, &path);
    let first = within(lock.acquire()).await.unwrap();
    let mark = proxy.mark();
    let armed = proxy.on(Match::reply(OpCode::GET_DATA).nth(2)).watch();
    let token = first.token();
    let release = async {
        within(armed.fired()).await;
        within(first.release()).await.unwrap();
    };
    let (second, ()) = within(async { tokio::join!(Box::pin(lock.acquire()), release) }).await;
    let second = second.unwrap();
    assert!(second.token() > token);
    // A session that ends takes both nodes at once: only a listing proves that ours is still there.
    let expected = [
        OpCode::CREATE2,
        OpCode::GET_CHILDREN2,
        OpCode::GET_DATA,
        OpCode::GET_DATA,
        OpCode::DELETE,
        OpCode::GET_CHILDREN2,
    ];
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), expected, "{frames}");
    within(second.release()).await.unwrap();
}

/// Numbers begin again with the path, tokens do not.
#[test_with(on_each_release)]
async fn tokens_grow_after_the_path_is_deleted(setup: Setup) {
    let zk = setup.client().await;
    let path = setup.path("deleted");
    let lock = Lock::new(&zk, &path);
    let mut last = None;
    for _ in 0..3 {
        let guard = within(lock.acquire()).await.unwrap();
        assert!(guard.path().ends_with("-0000000000"), "{}", guard.path());
        assert!(Some(guard.token()) > last);
        last = Some(guard.token());
        within(guard.release()).await.unwrap();
        setup.outsider.delete(&path).await.unwrap();
    }
}

#[test_with(on_each_release)]
async fn unreadable_predecessor_fails_the_waiter(setup: Setup) {
    let path = setup.existing("private").await;
    let zk = setup.options().auth("digest", "holder:secret").connect().await.unwrap();
    let acl = AclList::from_iter([Acl::creator_all()]);
    let lock = Lock::builder(&zk, &path).acl(&acl).build();
    let guard = within(lock.acquire()).await.unwrap();
    let outcome = within(Lock::new(&setup.outsider, &path).acquire()).await;
    assert_eq!(outcome.map(drop), Err(AcquireError::Rejected(Rejection::NoAuth)));
    joined(&setup.outsider, &path, 1).await;
    assert_eq!(guard.check().await, Ok(()));
    // A contender with the holder's identity waits as usual.
    let friend = setup.options().auth("digest", "holder:secret").connect().await.unwrap();
    let friend = Lock::builder(&friend, &path).acl(&acl).build();
    let release = async {
        joined(&setup.outsider, &path, 2).await;
        guard.release().await.unwrap();
    };
    let (next, ()) = within(async { tokio::join!(friend.acquire(), release) }).await;
    within(next.unwrap().release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn acquire_without_permission_is_rejected(setup: Setup) {
    let path = setup.path("closed");
    let readable = AclList::from_iter([Acl::world_readable()]);
    setup.outsider.create(&path, b"").acl(&readable).await.unwrap();
    for path in [path.clone(), format!("{path}/below")] {
        let outcome = within(Lock::new(&setup.outsider, &path).acquire()).await;
        assert_eq!(outcome.map(drop), Err(AcquireError::Rejected(Rejection::NoAuth)), "{path}");
    }
}
