//! Nodes that servers refuse to delete.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use zk_client::{AclList, Id, Perms};
use zk_locks::{
    AcquireError, Builder, Client, CohortLock, DoubleBarrier, Election, LatchState, Layout,
    LeaderLatch, Lock, Lost, MultiLock, Rejection, ReleaseError, RwLock, Semaphore, SessionEnd,
    SimpleLock,
};
use zk_proto::{ErrorCode, OpCode};
use zk_testkit::{
    TestServer,
    proxy::{Match, Proxy, RuleHandle},
};
use zk_tests::{
    busy::refuse_with,
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{
    Setup, client_on, closed, emptied, in_virtual_time, joined, on_each_release, within,
};

/// A path below which only an authenticated client may delete.
async fn guarded(setup: &Setup) -> String {
    let path = setup.path("guarded");
    guard_nodes_of(setup, &path).await;
    path
}

/// Makes such a path.
async fn guard_nodes_of(setup: &Setup, path: &str) {
    let owner = setup.client().await;
    owner.add_auth("digest", "ann:secret").await.unwrap();
    let others = Perms::CREATE | Perms::READ | Perms::WRITE | Perms::ADMIN;
    let acl = [Id::anyone().may(others), Id::creator().may(Perms::ALL)];
    owner.create(path, b"").acl(&AclList::from_iter(acl)).await.unwrap();
    closed(&owner).await;
}

/// Takes what is held away at once.
fn limited<R>(builder: Builder<R>) -> R {
    builder.release_after(Duration::from_millis(20)).build()
}

/// Until this many nodes without an owner are left.
async fn orphans(zk: &Client, count: usize) {
    within(async {
        while zk.session().orphans() != count {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[test_with(on_each_release)]
async fn refused_delete_is_retried_once_permitted(setup: Setup) {
    let path = guarded(&setup).await;
    let zk = setup.client().await;
    let lock = Lock::new(&zk, &path);
    let guard = within(lock.acquire()).await.unwrap();
    let own = guard.path().to_owned();
    let refused = within(guard.release()).await.unwrap_err();
    assert!(matches!(refused, ReleaseError::Refused(_)), "{refused:?}");
    orphans(&zk, 1).await;

    // No waiter of this session is behind it.
    let rejection = Rejection::NoAuth;
    let orphan = AcquireError::Orphan { path: own, rejection };
    assert_eq!(within(lock.acquire()).await.map(drop), Err(orphan));
    orphans(&zk, 2).await;

    zk.add_auth("digest", "ann:secret").await.unwrap();
    orphans(&zk, 0).await;
    emptied(&setup.outsider, &path).await;
    within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
    closed(&zk).await;
}

/// However long it was refused: once a minute, no less and no more.
#[test_with(in_virtual_time)]
async fn refused_delete_is_repeated_every_minute(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let others = Perms::CREATE | Perms::READ | Perms::WRITE | Perms::ADMIN;
    let others = AclList::from_iter([Id::anyone().may(others)]);
    other.create("/guarded", b"").acl(&others).await.unwrap();
    let guard = within(Lock::new(&zk, "/guarded").acquire()).await.unwrap();
    within(guard.release()).await.unwrap_err();
    let deletes = Arc::new(AtomicUsize::new(0));
    network.direct({
        let deletes = deletes.clone();
        move |_, op| {
            deletes.fetch_add(usize::from(op == OpCode::DELETE), SeqCst);
            Disposition::Answered
        }
    });
    pass(Duration::from_secs(3600)).await;
    deletes.store(0, SeqCst);
    pass(Duration::from_secs(600)).await;
    let count = deletes.load(SeqCst);
    assert!((9..=11).contains(&count), "{count} in ten minutes");
    other.set_acl("/guarded", &AclList::from_iter([Id::anyone().may(Perms::ALL)])).await.unwrap();
    pass(Duration::from_secs(61)).await;
    assert_eq!(zk.session().orphans(), 0);
}

/// By a member without a quorum, which refuses nothing for good.
#[test_with(on_each_release)]
async fn delete_that_a_reader_refused_is_repeated(setup: Setup) {
    let (path, (proxy, zk)) = (setup.existing("reader").await, setup.proxied().await);
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let refused = proxy.on(Match::reply(OpCode::DELETE).once());
    let refused = refused.rewrite(|reply| refuse_with(reply, ErrorCode::NOT_READ_ONLY));
    within(guard.release()).await.unwrap();
    within(refused.fired()).await;
    assert_eq!(zk.session().orphans(), 0);
}

#[test_with(on_each_release)]
async fn waiter_learns_of_an_orphan_in_front(setup: Setup) {
    let path = guarded(&setup).await;
    let (proxy, zk) = setup.proxied().await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let own = guard.path().to_owned();
    let waiter = tokio::spawn({
        let lock = Lock::new(&zk, &path);
        async move { lock.acquire().await.map(drop) }
    });
    joined(&setup.outsider, &path, 2).await;
    within(proxy.wait_for(|frame| frame.is_reply(OpCode::GET_DATA))).await;
    drop(guard);
    let orphan = AcquireError::Orphan { path: own, rejection: Rejection::NoAuth };
    assert_eq!(within(waiter).await.unwrap(), Err(orphan));
    let session = zk.session();
    assert_eq!(session.orphans(), 2, "the waiter's own, too");
    closed(&zk).await;
    assert_eq!(session.orphans(), 0);
    // The session takes it along.
    emptied(&setup.outsider, &path).await;
}

/// The same for one that watches the whole queue.
#[test_with(on_each_release)]
async fn herd_learns_of_an_orphan_in_front(setup: Setup) {
    let path = guarded(&setup).await;
    let zk = setup.client().await;
    let herd = || Lock::builder(&zk, &path).herd().build();
    let guard = within(herd().acquire()).await.unwrap();
    let own = guard.path().to_owned();
    let waiter = tokio::spawn({
        let lock = herd();
        async move { lock.acquire().await.map(drop) }
    });
    joined(&setup.outsider, &path, 2).await;
    drop(guard);
    let orphan = AcquireError::Orphan { path: own, rejection: Rejection::NoAuth };
    assert_eq!(within(waiter).await.unwrap(), Err(orphan));
    // One that asks later, too: it is behind both.
    let refused = within(herd().acquire()).await.map(drop);
    assert!(matches!(refused, Err(AcquireError::Orphan { .. })), "{refused:?}");
    closed(&zk).await;
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release)]
async fn session_detaches_despite_refused_delete(setup: Setup) {
    let path = guarded(&setup).await;
    let zk = setup.client().await;
    drop(within(Lock::new(&zk, &path).acquire()).await.unwrap());
    orphans(&zk, 1).await;
    let credentials = within(zk.detach()).await.unwrap();
    let next = setup.options().resume(credentials).connect().await.unwrap();
    closed(&next).await;
    emptied(&setup.outsider, &path).await;
}

/// Until it stands or leads.
async fn standing(latch: &LeaderLatch, other: &str) -> String {
    within(async {
        loop {
            match latch.path() {
                Some(path) if path != other => return path,
                _ => tokio::task::yield_now().await,
            }
        }
    })
    .await
}

/// The next candidate cannot lead: a latch says so with its last state, and so does one that would be in the way later.
#[test_with(on_each_release)]
async fn latch_tells_of_a_refused_resignation(setup: Setup) {
    let path = guarded(&setup).await;
    let (first, second) = (setup.client().await, setup.client().await);
    let leader = Election::new(&first, &path).latch(b"");
    let mut led = leader.subscribe();
    within(led.wait_for(|state| matches!(state, LatchState::Leading { .. }))).await.unwrap();
    let leading = standing(&leader, "").await;
    let waiter = Election::new(&second, &path).latch(b"");
    let waiting = standing(&waiter, &leading).await;
    for (zk, latch, own) in [(second, waiter, waiting), (first, leader, leading)] {
        let states = latch.subscribe();
        within(latch.resign()).await;
        let orphan = AcquireError::Orphan { path: own, rejection: Rejection::NoAuth };
        assert_eq!(*states.borrow(), LatchState::Ended(orphan));
        assert_eq!(zk.session().orphans(), 1);
        closed(&zk).await;
    }
    emptied(&setup.outsider, &path).await;
}

/// Until that is taken back, no delete is answered for good.
fn hesitates_to_delete(proxy: &Proxy) -> (Arc<AtomicBool>, RuleHandle) {
    let hesitates = Arc::new(AtomicBool::new(true));
    let hesitating = hesitates.clone();
    let unanswered = Match::reply(OpCode::DELETE).when(move |_| hesitating.load(SeqCst));
    let unanswered = proxy.on(unanswered);
    (hesitates, unanswered.rewrite(|reply| refuse_with(reply, ErrorCode::NOT_READ_ONLY)))
}

/// Its node of the last term is on its way out when it ends: it has left only behind that.
#[test_with(on_each_release)]
async fn latch_that_cannot_stand_again_has_left_when_it_ends(setup: Setup) {
    let (path, (proxy, zk)) = (setup.existing("again").await, setup.proxied().await);
    let latch = Election::new(&zk, &path).latch(b"");
    let mut led = latch.subscribe();
    within(led.wait_for(|state| matches!(state, LatchState::Leading { .. }))).await.unwrap();
    let (hesitates, unanswered) = hesitates_to_delete(&proxy);
    let creates = |op| matches!(op, OpCode::CREATE | OpCode::CREATE2);
    let refused = Match::replies().when(move |frame| frame.op.is_some_and(creates));
    let refused = proxy.on(refused).rewrite(|reply| refuse_with(reply, ErrorCode::NO_AUTH));
    setup.outsider.delete(&latch.path().unwrap()).await.unwrap();
    within(led.wait_for(|state| matches!(state, LatchState::Ended(_)))).await.unwrap();
    within(refused.fired()).await;
    within(unanswered.fired()).await;
    assert!(led.has_changed().is_ok(), "it has left before its node");
    hesitates.store(false, SeqCst);
    within(latch.resign()).await;
    assert_eq!(zk.session().orphans(), 0);
}

/// The same behind a wait that has failed.
#[test_with(on_each_release)]
async fn latch_that_cannot_wait_has_left_when_it_ends(setup: Setup) {
    let (path, (proxy, zk)) = (setup.existing("waits").await, setup.proxied().await);
    let leads = within(Election::new(&setup.outsider, &path).campaign(b"")).await.unwrap();
    let (hesitates, unanswered) = hesitates_to_delete(&proxy);
    let reads = Match::reply(OpCode::GET_DATA);
    let _refused = proxy.on(reads).rewrite(|reply| refuse_with(reply, ErrorCode::NO_AUTH));
    let latch = Election::new(&zk, &path).latch(b"");
    let mut states = latch.subscribe();
    within(states.wait_for(|state| matches!(state, LatchState::Ended(_)))).await.unwrap();
    within(unanswered.fired()).await;
    assert!(states.has_changed().is_ok(), "it has left before its node");
    hesitates.store(false, SeqCst);
    within(latch.resign()).await;
    assert_eq!(zk.session().orphans(), 0);
    drop(leads);
}

/// Though the session's task has not heard of it yet.
#[tokio::test]
async fn dropped_node_counts_at_once() {
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    let guard = within(Lock::new(&zk, "/l").acquire()).await.unwrap();
    assert_eq!(zk.session().orphans(), 0);
    drop(guard);
    assert_eq!(zk.session().orphans(), 1);
    orphans(&zk, 0).await;
    assert_eq!(zk.children("/l").await.unwrap().0, [""; 0]);
}

/// What is taken from its holder is let go as by the holder: the session goes on trying, and lists it meanwhile.
#[test_with(on_each_release)]
async fn overrun_lock_is_an_orphan_while_refused(setup: Setup) {
    macro_rules! refused {
        ($name:literal, $nodes:literal, |$zk:ident, $path:ident| $take:expr) => {{
            let $path = &setup.existing($name).await;
            let nodes = format!("{}{}", $path, $nodes);
            guard_nodes_of(&setup, &nodes).await;
            let $zk = &setup.client().await;
            let guard = within($take).await.unwrap();
            assert_eq!(within(guard.lost()).await, Lost::HeldTooLong, $name);
            orphans($zk, 1).await;
            let refused = within(guard.release()).await;
            assert!(matches!(refused, Err(ReleaseError::Refused(_))), "{}: {refused:?}", $name);
            assert_eq!($zk.session().orphans(), 1, "{}", $name);
            $zk.add_auth("digest", "ann:secret").await.unwrap();
            orphans($zk, 0).await;
            emptied(&setup.outsider, &nodes).await;
        }};
    }
    refused!("lock", "/x", |zk, path| {
        let lock = limited(Lock::builder(zk, &format!("{path}/x")));
        async move { lock.acquire().await }
    });
    refused!("bare", "/x", |zk, path| {
        let lock = limited(Lock::builder(zk, &format!("{path}/x")).layout(Layout::Bare));
        async move { lock.acquire().await }
    });
    refused!("read", "/x", |zk, path| {
        let lock = limited(RwLock::builder(zk, &format!("{path}/x")));
        async move { lock.read().await }
    });
    refused!("write", "/x", |zk, path| {
        let lock = limited(RwLock::builder(zk, &format!("{path}/x")));
        async move { lock.write().await }
    });
    refused!("cohort", "/x", |zk, path| {
        let lock = limited(CohortLock::builder(zk, &format!("{path}/x")));
        async move { lock.acquire().await.map(Box::new) }
    });
    refused!("semaphore", "/leases", |zk, path| limited(Semaphore::builder(zk, path)).acquire());
    refused!("several", "/x", |zk, path| {
        let lock = |name| limited(Lock::builder(zk, &format!("{path}/{name}")));
        let both = MultiLock::of(["x", "y"].map(lock));
        async move { both.acquire().await }
    });
}

/// The release of a lock that was taken away says what is true by then.
#[test_with(on_each_release)]
async fn release_of_an_overrun_lock_tells_what_is_left(setup: Setup) {
    let path = guarded(&setup).await;
    let zk = setup.client().await;
    let lock = limited(Lock::builder(&zk, &path));
    let guard = within(lock.acquire()).await.unwrap();
    let own = guard.path().to_owned();
    orphans(&zk, 1).await;
    let orphan = AcquireError::Orphan { path: own, rejection: Rejection::NoAuth };
    assert_eq!(within(lock.acquire()).await.map(drop), Err(orphan));
    zk.add_auth("digest", "ann:secret").await.unwrap();
    orphans(&zk, 0).await;
    assert_eq!(within(guard.release()).await, Ok(()));

    let zk = setup.client().await;
    let guard = within(limited(Lock::builder(&zk, &path)).acquire()).await.unwrap();
    orphans(&zk, 1).await;
    closed(&zk).await;
    let ended = ReleaseError::SessionEnded(SessionEnd::Closed);
    assert_eq!(within(guard.release()).await, Err(ended));
}

/// The others wait for it: one that leaves early, and the one that is the last to leave.
#[test_with(on_each_release)]
async fn refused_leave_of_a_barrier_is_an_error(setup: Setup) {
    let path = guarded(&setup).await;
    let (ours, theirs) = (setup.client().await, setup.client().await);
    let enter = |zk: &Client| {
        let barrier = DoubleBarrier::new(zk, &path, 2);
        async move { barrier.enter().await.unwrap() }
    };
    let (one, other) = within(async { tokio::join!(enter(&ours), enter(&theirs)) }).await;
    let mut both = [(one, ours), (other, theirs)];
    // The first one leaves last.
    both.sort_by(|(a, _), (b, _)| b.path().cmp(a.path()));
    for (participation, zk) in both {
        let path = participation.path().to_owned();
        let orphan = AcquireError::Orphan { path, rejection: Rejection::NoAuth };
        assert_eq!(within(participation.leave()).await, Err(orphan));
        assert_eq!(zk.session().orphans(), 1);
        closed(&zk).await;
    }
}

/// The same for a lock that is one node.
#[test_with(on_each_release)]
async fn simple_waiter_learns_of_an_orphan(setup: Setup) {
    let path = format!("{}/lock", guarded(&setup).await);
    let (proxy, zk) = setup.proxied().await;
    let lock = SimpleLock::new(&zk, &path);
    let guard = within(lock.acquire()).await.unwrap();
    let waiter = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await.map(drop) }
    });
    within(proxy.wait_for(|frame| frame.is_reply(OpCode::GET_DATA))).await;
    drop(guard);
    let orphan = AcquireError::Orphan { path: path.clone(), rejection: Rejection::NoAuth };
    assert_eq!(within(waiter).await.unwrap(), Err(orphan.clone()));
    assert_eq!(within(lock.acquire()).await.map(drop), Err(orphan));
    // Others wait for the end of its session.
    let other = SimpleLock::new(&setup.outsider, &path);
    let late = other.acquire_timeout(Duration::from_millis(50)).await;
    assert_eq!(late.map(drop).unwrap_err(), AcquireError::TimedOut);
    closed(&zk).await;
    drop(within(other.acquire()).await.unwrap());
}
