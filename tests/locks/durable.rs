//! Locks that stay locked when their holders die, and how they come free again.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::task::JoinSet;
use zk_locks::{
    AcquireError, CheckError, Client, DurableLock, Lost, ReleaseError, SessionEnd, Status,
};
use zk_proto::{ErrorCode, OpCode};
use zk_testkit::{
    TestServer,
    proxy::{Forward, Match, Proxy, Reaction},
};
use zk_tests::{fenced::FencedResource, test_with};

use crate::support::{
    Stage, dropped_after, emptied, end_session_behind, joined, on_each_release,
    on_each_release_threaded, options_for, within,
};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// Of locks that are to be broken.
const SHORT: Duration = Duration::from_secs(1);

fn of(zk: &Client, path: &str, owner: &str) -> DurableLock {
    DurableLock::new(zk, path, owner).lease(LONG)
}

fn grants(path: &str) -> String {
    format!("{path}/grants")
}

#[test_with(on_each_release)]
async fn owners_exclude_in_queue_order(stage: Stage) {
    let path = stage.path("missing/order");
    let resource = Arc::new(FencedResource::default());
    let first = within(of(&stage.outsider, &path, "first").acquire()).await.unwrap();
    let mut waiting = Vec::new();
    for number in 1..=3 {
        let zk = stage.client().await;
        let (at, resource) = (path.clone(), resource.clone());
        waiting.push(tokio::spawn(async move {
            let guard = of(&zk, &at, &format!("owner {number}")).acquire().await.unwrap();
            resource.enter(guard.token());
            guard.check().await.unwrap();
            resource.leave(guard.token());
            let token = guard.token();
            guard.release().await.unwrap();
            token
        }));
        joined(&stage.outsider, &format!("{path}/locks"), number).await;
    }
    let mut last = first.token();
    within(first.release()).await.unwrap();
    for waiting in waiting {
        let token = within(waiting).await.unwrap();
        assert!(token > last);
        last = token;
    }
    resource.assert_clean();
    emptied(&stage.outsider, &grants(&path)).await;
    emptied(&stage.outsider, &format!("{path}/locks")).await;
}

/// A guard that is dropped, a session that is closed, another process of the same owner.
#[test_with(on_each_release)]
async fn lock_outlives_its_holder_for_its_owner(stage: Stage) {
    let path = stage.existing("owner").await;
    let zk = stage.client().await;
    let guard = within(of(&zk, &path, "job").acquire()).await.unwrap();
    let first = guard.token();
    drop(guard);
    zk.close().await.unwrap();
    joined(&stage.outsider, &grants(&path), 1).await;

    let other = stage.client().await;
    assert!(within(of(&other, &path, "other").try_acquire()).await.unwrap().is_none());
    let waiting = tokio::spawn({
        let lock = of(&other, &path, "other");
        async move { lock.acquire().await }
    });
    joined(&stage.outsider, &format!("{path}/locks"), 1).await;

    // Past the waiters.
    let zk = stage.client().await;
    let second = within(of(&zk, &path, "job").acquire()).await.unwrap();
    assert!(second.token() > first);
    let holder = of(&other, &path, "other").holder().await.unwrap().unwrap();
    assert_eq!((&*holder.owner, holder.token), ("job", second.token()));

    // A second process in the same name takes it from the first one, which hears.
    let third = within(of(&stage.client().await, &path, "job").try_acquire()).await;
    let third = third.unwrap().unwrap();
    assert_eq!(within(second.lost()).await, Lost::NodeDeleted);
    assert_eq!(second.status(), Status::Lost(Lost::NodeDeleted));
    assert_eq!(second.check().await, Err(CheckError::Lost(Lost::NodeDeleted)));
    // What it does now harms no other client.
    within(second.release()).await.unwrap();
    third.check().await.unwrap();
    within(third.release()).await.unwrap();
    let next = within(waiting).await.unwrap().unwrap();
    within(next.release()).await.unwrap();
    emptied(&stage.outsider, &grants(&path)).await;
}

/// Attempts through one value know of each other.
#[test_with(on_each_release)]
async fn clones_of_one_lock_exclude_each_other(stage: Stage) {
    let path = stage.existing("clones").await;
    let lock = of(&stage.outsider, &path, "job");
    let guard = within(lock.acquire()).await.unwrap();
    assert!(within(lock.try_acquire()).await.unwrap().is_none());
    let second = lock.acquire_timeout(Duration::from_millis(50)).await;
    assert_eq!(second.map(drop).unwrap_err(), AcquireError::TimedOut);
    guard.check().await.unwrap();
    let waiting = tokio::spawn(async move { lock.acquire().await });
    joined(&stage.outsider, &format!("{path}/locks"), 1).await;
    within(guard.release()).await.unwrap();
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
    emptied(&stage.outsider, &grants(&path)).await;
}

/// The holder is cut off: by its own clock it has lost the lock when the next one is granted.
#[test_with(on_each_release_threaded)]
async fn silent_holder_is_lost_before_takeover(stage: Stage) {
    let path = stage.existing("silent").await;
    let (proxy, zk) = stage.proxied().await;
    let guard = within(of(&zk, &path, "silent").lease(SHORT).acquire()).await.unwrap();
    // Renewed at least once.
    within(proxy.wait_for(|frame| frame.is_reply(OpCode::SET_DATA))).await;
    assert_eq!(guard.status(), Status::Held);
    let guard = Arc::new(guard);
    let working = guard.clone();
    let work = tokio::spawn(async move { working.scope(std::future::pending::<()>()).await });
    proxy.silence();
    let next = within(of(&stage.outsider, &path, "next").acquire()).await.unwrap();
    // By the clock, whichever is woken first.
    assert_eq!(guard.status(), Status::Lost(Lost::LeaseRanOut));
    assert_eq!(within(work).await.unwrap(), Err(Lost::LeaseRanOut));
    let guard = Arc::into_inner(guard).unwrap();
    assert_eq!(guard.lease_left(), Duration::ZERO);
    assert!(next.token() > guard.token());
    // What it still has to say when it is heard again changes nothing.
    proxy.resume();
    drop(within(guard.release()).await);
    next.check().await.unwrap();
    within(next.release()).await.unwrap();
}

/// A live holder keeps its lock for as long as it wants to, although another client waits.
#[test_with(on_each_release_threaded)]
async fn a_holder_that_renews_its_lock_keeps_it(stage: Stage) {
    let path = stage.existing("renewed").await;
    let (proxy, zk) = stage.proxied().await;
    let lease = Duration::from_secs(2);
    let guard = within(of(&zk, &path, "lives").lease(lease).acquire()).await.unwrap();
    let waiting = tokio::spawn({
        let lock = of(&stage.outsider, &path, "waits");
        async move { lock.acquire().await }
    });
    let renewals = proxy.on(Match::reply(OpCode::SET_DATA)).watch();
    // For two leases and more.
    within(renewals.fired_times(7)).await;
    assert_eq!(guard.status(), Status::Held);
    guard.check().await.unwrap();
    assert!(!waiting.is_finished());
    within(guard.release()).await.unwrap();
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
}

/// The session is over, and the lock is not. Another client carries on with it.
#[test_with(on_each_release)]
async fn a_lock_that_is_held_outlives_its_session(stage: Stage) {
    let path = stage.existing("outlives").await;
    let (proxy, zk) = stage.proxied().await;
    let mut guard = within(of(&zk, &path, "job").acquire()).await.unwrap();
    let token = guard.token();
    end_session_behind(&stage, &proxy).await;
    proxy.accept_connections().await;
    within(zk.session().ended()).await;
    assert!(matches!(guard.status(), Status::Suspect { .. }), "{:?}", guard.status());
    let unsure = guard.check().await;
    assert!(matches!(unsure, Err(CheckError::Unavailable(_))), "{unsure:?}");

    let heir = options_for(&proxy).connect().await.unwrap();
    let renewed = proxy.on(Match::reply(OpCode::SET_DATA).error(ErrorCode::OK)).watch();
    guard.carry_on(&heir);
    within(renewed.fired()).await;
    guard.check().await.unwrap();
    assert_eq!((guard.status(), guard.token()), (Status::Held, token));
    // The heir hears of it if the lock goes.
    let holder = of(&heir, &path, "x").holder().await.unwrap().unwrap();
    assert!(of(&stage.outsider, &path, "x").evict(&holder).await.unwrap());
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);
    assert!(!of(&stage.outsider, &path, "x").evict(&holder).await.unwrap());

    // Without a session nothing is given back.
    let zk = stage.client().await;
    let guard = within(of(&zk, &path, "job").acquire()).await.unwrap();
    zk.close().await.unwrap();
    let refused = within(guard.release()).await;
    assert_eq!(refused, Err(ReleaseError::SessionEnded(SessionEnd::Closed)));
    joined(&stage.outsider, &grants(&path), 1).await;
}

/// Without a lease it is held until an operator evicts it.
#[test_with(on_each_release_threaded)]
async fn without_lease_only_eviction_frees_a_lock(stage: Stage) {
    let path = stage.existing("by-hand").await;
    let zk = stage.client().await;
    let lock = DurableLock::new(&zk, &path, "gone").without_lease();
    let guard = within(lock.acquire()).await.unwrap();
    assert_eq!(guard.lease_left(), Duration::MAX);
    drop(guard);
    zk.close().await.unwrap();
    let waits = of(&stage.outsider, &path, "waits");
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
async fn foreign_grant_is_waited_for(stage: Stage) {
    let path = stage.existing("stranger").await;
    let stranger = format!("{path}/grants/stranger");
    stage.outsider.create(&stranger, b"?").parents().await.unwrap();
    let lock = of(&stage.outsider, &path, "job").lease(Duration::from_millis(1));
    let early = lock.acquire_timeout(Duration::from_millis(200)).await;
    assert_eq!(early.map(drop).unwrap_err(), AcquireError::TimedOut);
    let holder = lock.holder().await.unwrap().unwrap();
    assert_eq!((&*holder.owner, &*holder.description), ("", "?"));
    stage.outsider.delete(&stranger).await.unwrap();
    within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
}

/// One behind a proxy, whose connection ends once at the n-th frame of that way, passed on or not; and one who waits for it
/// or is waited for. How often the connection ended.
async fn held_with_a_loss(
    (addr, looks_on): (SocketAddr, Client),
    (nth, passed, to_client): (u64, bool, bool),
) -> u64 {
    let path = format!("/lost-{nth}-{passed}-{to_client}");
    // It was held before: a second time what is above is there.
    let before = within(of(&looks_on, &path, "before").acquire()).await.unwrap();
    within(before.release()).await.unwrap();
    let resource = FencedResource::default();
    let proxy = Proxy::start(addr).await.unwrap();
    let zk = options_for(&proxy).connect().await.unwrap();
    let frames = if to_client { Match::replies() } else { Match::requests() };
    let forward = if passed { Forward::Frame } else { Forward::Nothing };
    let lost = proxy.on(frames.skip(nth).once()).react(Reaction::Reset(forward));
    let turn = async |zk: &Client, owner: &str| {
        let guard = within(of(zk, &path, owner).acquire()).await.expect(&path);
        resource.enter(guard.token());
        guard.check().await.expect(&path);
        resource.leave(guard.token());
        within(guard.release()).await.expect(&path);
    };
    tokio::join!(turn(&zk, "one"), turn(&looks_on, "other"));
    turn(&zk, "one").await;
    resource.assert_clean();
    emptied(&looks_on, &grants(&path)).await;
    emptied(&looks_on, &format!("{path}/locks")).await;
    lost.times_fired()
}

/// Every frame of a hold, in each direction, is in its turn the last of its connection.
#[tokio::test]
async fn one_grant_despite_any_lost_frame() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string().parse().unwrap();
    let looks_on = Client::connect(&server.connect_string()).await.unwrap();
    let mut running = JoinSet::new();
    for nth in 0..16 {
        for (passed, to_client) in [(false, false), (true, false), (false, true)] {
            running.spawn(held_with_a_loss((addr, looks_on.clone()), (nth, passed, to_client)));
        }
    }
    let met: u64 = running.join_all().await.into_iter().sum();
    println!("{met} of 48 runs lost what they were to lose");
    assert!(met >= 40, "{met}");
}

/// Given up at every point, alone and behind a holder: no grant stays without a holder.
#[test_with(on_each_release)]
async fn dropped_acquire_leaves_no_grant(stage: Stage) {
    let path = stage.existing("dropped").await;
    let zk = stage.client().await;
    for pending in 0..12 {
        let lock = of(&zk, &path, &format!("owner {pending}"));
        let acquired = dropped_after(pending, lock.acquire()).await;
        if let Some(guard) = acquired {
            within(guard.unwrap().release()).await.unwrap();
        }
        emptied(&stage.outsider, &format!("{path}/locks")).await;
        within(async {
            while lock.holder().await.unwrap().is_some() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// What it costs, as its documentation says.
#[test_with(on_each_release)]
async fn a_durable_lock_costs_what_it_says(stage: Stage) {
    let path = stage.existing("costs").await;
    within(of(&stage.outsider, &path, "before").acquire()).await.unwrap().release().await.unwrap();
    let (proxy, zk) = stage.proxied().await;
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
