//! Locks that are held: giving them back in every way, and hearing of their loss.

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use zk_client::{MultiError, SessionState};
use zk_locks::{
    AclList, CheckError, Client, Guard, Id, Lock, Lost, MultiLock, Perms, Rejection, Semaphore,
    SessionEnd, Status, WriteError,
};
use zk_proto::OpCode;
use zk_testkit::proxy::{Direction, Match};
use zk_tests::{patience::LIMIT, test_with};

use crate::locks::support::{
    Setup, Waiter, dropped_after, emptied, joined, on_each_release, on_each_release_threaded,
    options_for, within,
};

/// In each way that returns at once a waiter is granted, and nothing stays behind although the session lives.
#[test_with(on_each_release)]
async fn every_end_of_a_guard_releases(setup: Setup) {
    let zk = setup.client().await;
    let path = setup.existing("given-up").await;
    let ends: [fn(Guard); 4] = [
        drop,
        |guard| drop(guard.release()),
        |outside_a_runtime| thread::spawn(|| drop(outside_a_runtime)).join().unwrap(),
        |guard| {
            let unwinding = catch_unwind(AssertUnwindSafe(|| {
                let _guard = guard;
                resume_unwind(Box::new("on purpose"));
            }));
            assert!(unwinding.is_err());
        },
    ];
    for end in ends {
        let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
        let end = async {
            joined(&setup.outsider, &path, 2).await;
            end(guard);
        };
        let waiter = Lock::new(&setup.outsider, &path);
        let (waiter, ()) = within(async { tokio::join!(waiter.acquire(), end) }).await;
        within(waiter.unwrap().release()).await.unwrap();
        emptied(&zk, &path).await;
    }
}

#[test_with(on_each_release)]
async fn guard_keeps_the_lock_without_clients(setup: Setup) {
    let path = setup.existing("alone").await;
    let zk = setup.client().await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    drop(zk);
    assert_eq!(guard.check().await, Ok(()));
    assert_eq!(guard.status(), Status::Held);
    drop(guard);
    emptied(&setup.outsider, &path).await;
}

/// Nothing keeps its session alive any more, and it must not believe otherwise.
#[test]
fn guard_outliving_its_runtime_is_lost() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    on_each_release_threaded(async |setup: Setup| {
        let path = setup.existing("orphan").await;
        let servers = setup.servers();
        let guard = thread::spawn(move || {
            runtime().block_on(async {
                let zk = Client::connect(&servers).await.unwrap();
                Lock::new(&zk, &path).acquire().await.unwrap()
            })
        });
        let guard = guard.join().unwrap();
        let closed = Lost::SessionEnded(SessionEnd::Closed);
        assert_eq!(guard.status(), Status::Lost(closed));
        assert_eq!(within(guard.lost()).await, closed);
        assert!(within(guard.release()).await.is_err());
    });
}

#[test_with(on_each_release)]
async fn holder_learns_of_its_nodes_deletion(setup: Setup) {
    let zk = setup.client().await;
    let path = setup.existing("deleted").await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let mut work = Box::pin(guard.scope(std::future::pending::<()>()));
    assert_eq!(dropped_after(1, &mut work).await, None);
    assert_eq!(guard.status(), Status::Held);
    setup.outsider.delete(guard.path()).await.unwrap();
    assert_eq!(within(work).await, Err(Lost::NodeDeleted));
    assert_eq!(guard.status(), Status::Lost(Lost::NodeDeleted));
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);
    assert_eq!(guard.check().await, Err(CheckError::Lost(Lost::NodeDeleted)));
    // It is as gone as can be.
    within(guard.release()).await.unwrap();
}

/// Servers answer only those who may read the node. That says nothing about the lock, whether or not its name has an id.
#[test_with(on_each_release)]
async fn check_without_permission_to_read_is_no_loss(setup: Setup) {
    let zk = setup.client().await;
    let path = setup.existing("unreadable").await;
    let blind = Perms::CREATE | Perms::WRITE | Perms::DELETE | Perms::ADMIN;
    let blind = AclList::from_iter([Id::anyone().may(blind)]);
    for lock in [Lock::new(&zk, &path), Lock::named(&zk, &path, "report").build()] {
        let guard = within(lock.acquire()).await.unwrap();
        let (acl, _) = setup.outsider.acl(guard.path()).await.unwrap();
        setup.outsider.set_acl(guard.path(), &blind).await.unwrap();
        let refused = CheckError::Unavailable(WriteError::Rejected(Rejection::NoAuth));
        assert_eq!(within(guard.check()).await, Err(refused), "{}", guard.path());
        assert_eq!(guard.status(), Status::Held);
        setup.outsider.set_acl(guard.path(), &acl).await.unwrap();
        assert_eq!(within(guard.check()).await, Ok(()));
        within(guard.release()).await.unwrap();
    }
}

/// The servers give the lock to the next one as soon as they hear of the close, and nothing that they say
/// about it comes back.
#[test_with(on_each_release)]
async fn guard_is_lost_once_its_session_closes(setup: Setup) {
    let path = setup.existing("closing").await;
    let (proxy, zk) = setup.proxied().await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let mut waiter = Waiter::asleep(&setup, &path).await;
    let mut scope = pin!(guard.scope(std::future::pending::<()>()));
    assert_eq!(dropped_after(1, scope.as_mut()).await, None);
    proxy.silence_way(Direction::ToClient);
    let close = tokio::spawn({
        let zk = zk.clone();
        async move { zk.close_within(LIMIT).await }
    });
    let next = waiter.outcome().await.unwrap();
    let closed = Lost::SessionEnded(SessionEnd::Closed);
    assert_eq!(guard.status(), Status::Lost(closed));
    assert_eq!(zk.session().state(), SessionState::Closing);
    assert_eq!(dropped_after(2, scope.as_mut()).await, Some(Err(closed)));
    assert_eq!(dropped_after(1, guard.lost()).await, Some(closed));
    assert_eq!(zk.session().lease_left(), Duration::ZERO);
    proxy.resume();
    within(close).await.unwrap().unwrap();
    within(next.release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn lost_future_can_be_dropped_and_restarted(setup: Setup) {
    let zk = setup.client().await;
    let path = setup.existing("again").await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    for polls in 0..10 {
        let lost = async {
            tokio::select! {
                biased;
                lost = dropped_after(polls, guard.lost()) => lost,
                // Wakes it up, or not; either way the next one begins anew.
                done = guard.scope(async { zk.sync("/").await }) => {
                    done.unwrap().unwrap();
                    None
                }
            }
        };
        assert_eq!(within(lost).await, None);
    }
    setup.outsider.delete(guard.path()).await.unwrap();
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);
}

/// The session reads its clock whenever it does anything.
#[test_with(on_each_release)]
async fn dropped_client_closes_without_spinning(setup: Setup) {
    let proxy = setup.proxy().await;
    let (start, readings) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let counted = readings.clone();
    let clock = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        start.elapsed()
    };
    let options = options_for(&proxy).session_timeout(Duration::from_secs(4));
    let zk = options.clock(clock).connect().await.unwrap();
    let session = zk.session();
    let greeting = proxy.on(Match::connect_response().once()).hold();
    proxy.reset_all();
    drop(zk);
    within(greeting.fired()).await;
    // A driver that was busy would have as many turns as these.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let readings = readings.load(Ordering::Relaxed);
    assert!(readings < 100, "{readings} readings of the clock");
    greeting.release();
    assert_eq!(within(session.ended()).await, SessionEnd::Closed);
    assert_eq!(proxy.counts().replies(OpCode::CLOSE_SESSION), 1);
}

/// Where guards can be cloned, dropping one of them gives back what the other one still holds.
#[test]
fn there_is_one_guard_for_each_grant() {
    struct Asked<T>(PhantomData<T>);
    impl<T: Clone> Asked<T> {
        fn can_be_cloned(&self) -> bool {
            true
        }
    }
    /// What is meant for those that cannot.
    trait Cannot {
        fn can_be_cloned(&self) -> bool;
    }
    impl<T> Cannot for Asked<T> {
        fn can_be_cloned(&self) -> bool {
            false
        }
    }
    assert!(Asked::<Lock>(PhantomData).can_be_cloned(), "whoever can be cloned is found out");
    assert!(!Asked::<Guard>(PhantomData).can_be_cloned());
}

/// All of them are checked, not only the first.
#[test_with(on_each_release)]
async fn transaction_needs_the_nodes_of_all_guards(setup: Setup) {
    let data = setup.existing("data").await;
    let paths = [setup.existing("a").await, setup.existing("b").await];
    let zk = setup.client().await;
    let locks = within(MultiLock::new(&zk, &paths).acquire()).await.unwrap();
    let permits = Semaphore::new(&zk, &setup.path("permits"), 2);
    let permits = within(permits.acquire_many(2)).await.unwrap();
    for guards in [locks, permits] {
        let second = guards.iter().nth(1).unwrap().path().to_owned();
        setup.outsider.delete(&second).await.unwrap();
        let written = within(guards.transaction().unwrap().set(&data, b"stale")).await;
        let missing = MultiError { index: 1, rejection: Rejection::NoNode };
        assert_eq!(written, Ok(Err(missing)), "{second}");
        assert_eq!(setup.outsider.get(&data).await.unwrap().0, "");
    }
}
