//! Locks for threads without a runtime.

use std::{
    future::poll_fn,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::Poll,
    thread,
    time::Duration,
};

use zk_client::{AclList, Id, Perms, Rejection};
use zk_locks::{
    AcquireError, Barrier, CohortLock, ConnectOptions, DoubleBarrier, DurableLock, Election,
    Follow, Group, GroupMember, Lock, Lost, MultiLock, Queue, ReleaseError, RwLock, Semaphore,
    SimpleLock, Status,
    blocking::{Blocking, BlockingSession},
};
use zk_proto::OpCode;
use zk_testkit::{TestServer, proxy::Match};
use zk_tests::test_with;

use crate::locks::support::{Setup, emptied, in_thread, joined, on_each_release, within};

fn connect(servers: &str) -> BlockingSession {
    BlockingSession::connect(ConnectOptions::new(servers).unwrap()).unwrap()
}

#[test_with(on_each_release)]
async fn threads_exclude_and_leave_nothing_behind(setup: Setup) {
    let path = setup.existing("threads").await;
    let busy = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (servers, path, busy) = (setup.servers(), path.clone(), busy.clone());
            in_thread(move || {
                let session = connect(&servers);
                for _ in 0..5 {
                    let guard = session.lock(&path).acquire().unwrap();
                    assert!(!busy.swap(true, Ordering::SeqCst));
                    guard.check().unwrap();
                    assert!(busy.swap(false, Ordering::SeqCst));
                    guard.release().unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        within(thread).await.unwrap();
    }
    emptied(&setup.outsider, &path).await;
}

/// More often than a runtime lets a task ask in one go, and with futures that leave waking to it.
#[tokio::test]
async fn asynchronous_code_may_block_on_any_number_of_calls() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let done = in_thread(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async move {
            let session = connect(&servers);
            for _ in 0..100 {
                session.lock("/often").acquire().unwrap().release().unwrap();
            }
            session.run(tokio::task::yield_now());
        });
    });
    within(done).await.unwrap();
}

/// As those do that yield to others.
#[test_with(on_each_release)]
async fn future_may_wake_its_own_thread(setup: Setup) {
    let servers = setup.servers();
    let blocked = in_thread(move || {
        let mut is_first = true;
        connect(&servers).run(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
        }));
    });
    within(blocked).await.unwrap();
}

/// A blocking call inside the future waits on the same thread, and is woken in place of it.
#[test_with(on_each_release)]
async fn blocking_call_within_a_future_takes_no_wakeup_along(setup: Setup) {
    let path = setup.existing("nested").await;
    let holder = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let (servers, of) = (setup.servers(), path.clone());
    let (told, hears) = tokio::sync::oneshot::channel();
    let both = in_thread(move || {
        let session = connect(&servers);
        let nested = async { session.lock(&of).acquire().map(drop).is_ok() };
        session.run(async { tokio::join!(hears, nested) })
    });
    joined(&setup.outsider, &path, 2).await;
    told.send(()).unwrap();
    // Whatever that wakes has had time for it when the lock comes.
    for _ in 0..20 {
        setup.outsider.sync("/").await.unwrap();
    }
    within(holder.release()).await.unwrap();
    assert_eq!(within(both).await.unwrap(), (Ok(()), true));
}

/// Nothing could come while that waits.
#[test_with(on_each_release)]
async fn session_does_not_wait_for_itself(setup: Setup) {
    let path = setup.existing("itself").await;
    let (servers, of) = (setup.servers(), path.clone());
    let asked = in_thread(move || {
        let (session, (told, hears)) = (connect(&servers), mpsc::channel());
        let (client, itself) = (session.client().clone(), session.clone());
        client.spawn(async move {
            let waits =
                panic::catch_unwind(AssertUnwindSafe(|| itself.lock(&of).acquire().is_ok()));
            told.send(waits.map_err(drop)).unwrap();
        });
        hears.recv_timeout(Duration::from_secs(60))
    });
    assert_eq!(within(asked).await.unwrap(), Ok(Err(())));
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release)]
async fn last_guard_may_be_dropped_anywhere(setup: Setup) {
    let path = setup.existing("last").await;
    let (servers, of) = (setup.servers(), path.clone());
    let acquired = in_thread(move || {
        let session = connect(&servers);
        let lock = session.lock(&of);
        let guard = lock.acquire().unwrap();
        assert!(lock.try_acquire().unwrap().is_none());
        let late = lock.acquire_timeout(Duration::from_millis(1)).unwrap_err();
        assert_eq!(late, AcquireError::TimedOut);
        assert_eq!(guard.lost_within(Duration::from_millis(1)), None);
        guard
    });
    drop(within(acquired).await.unwrap());
    emptied(&setup.outsider, &path).await;
}

/// What every lock can: one holder, a second one that waits, a third one that does not.
macro_rules! excludes {
    ($session:expr, $other:expr, $recipe:expr) => {{
        let of = |session: &BlockingSession| session.adopt($recipe(session.client()));
        let (one, other) = (of($session), of($other));
        let guard = one.acquire().unwrap();
        guard.check().unwrap();
        assert_eq!(guard.lost_within(Duration::from_millis(1)), None);
        assert!(other.try_acquire().unwrap().is_none());
        let late = other.acquire_timeout(Duration::from_millis(1)).map(drop).unwrap_err();
        assert_eq!(late, AcquireError::TimedOut);
        let waiting = thread::spawn(move || other.acquire().unwrap().release().unwrap());
        guard.release().unwrap();
        waiting.join().unwrap();
        drop(one.try_acquire().unwrap());
    }};
}

#[test_with(on_each_release)]
async fn every_lock_works_in_threads(setup: Setup) {
    let path = setup.existing("recipes").await;
    let servers = setup.servers();
    let done = in_thread(move || {
        let (session, other) = (connect(&servers), connect(&servers));
        let at = |name: &str| format!("{path}/{name}");
        excludes!(&session, &other, |zk| Lock::new(zk, &at("lock")));
        excludes!(&session, &other, |zk| Lock::builder(zk, &at("herd")).herd().build());
        excludes!(&session, &other, |zk| Semaphore::new(zk, &at("mutex"), 1));
        excludes!(&session, &other, |zk| SimpleLock::new(zk, &at("simple")));
        excludes!(&session, &other, |zk| CohortLock::new(zk, &at("cohort")));
        excludes!(&session, &other, |zk| Semaphore::new(zk, &at("semaphore"), 1));
        excludes!(&session, &other, |zk| MultiLock::new(zk, [at("a"), at("b")]));
        let names = std::sync::atomic::AtomicUsize::new(0);
        excludes!(&session, &other, |zk| {
            let owner = names.fetch_add(1, Ordering::Relaxed).to_string();
            DurableLock::new(zk, &at("durable"), &owner)
        });
        session.run(session.client().delete_recursive(&path).into_future()).unwrap();
    });
    within(done).await.unwrap();
}

#[test_with(on_each_release)]
async fn other_recipes_work_in_threads(setup: Setup) {
    let path = setup.existing("sides").await;
    let servers = setup.servers();
    let done = in_thread(move || {
        let (session, other) = (connect(&servers), connect(&servers));
        let at = |name: &str| format!("{path}/{name}");

        let lock = session.adopt(RwLock::new(session.client(), &at("rw")));
        let (one, two) = (lock.read().unwrap(), lock.try_read().unwrap().unwrap());
        assert!(lock.try_write().unwrap().is_none());
        one.release().unwrap();
        let writing = two.try_upgrade().unwrap();
        assert!(lock.try_read().unwrap().is_none());
        let late = lock.read_timeout(Duration::from_millis(1)).map(drop).unwrap_err();
        assert_eq!(late, AcquireError::TimedOut);
        let reading = writing.downgrade().unwrap();
        reading.check().unwrap();
        reading.release().unwrap();
        lock.write().unwrap().release().unwrap();

        let permits = session.adopt(Semaphore::new(session.client(), &at("permits"), 3));
        let two = permits.acquire_many(2).unwrap();
        assert!(permits.try_acquire_many(2).unwrap().is_none());
        assert_eq!(permits.holders().unwrap().len(), 2);
        two.release().unwrap();

        let barrier = session.adopt(Barrier::new(session.client(), &at("barrier")));
        assert!(barrier.set().unwrap());
        let late = barrier.wait_timeout(Duration::from_millis(1)).unwrap_err();
        assert_eq!(late, AcquireError::TimedOut);
        barrier.remove().unwrap();
        barrier.wait().unwrap();

        let meet = |session: &BlockingSession| {
            session.adopt(DoubleBarrier::new(session.client(), &at("meet"), 2))
        };
        let (here, there) = (meet(&session), meet(&other));
        let both = thread::spawn(move || there.enter().unwrap().leave().unwrap());
        here.enter().unwrap().leave().unwrap();
        both.join().unwrap();
    });
    within(done).await.unwrap();
}

#[test_with(on_each_release)]
async fn followers_work_in_threads(setup: Setup) {
    let path = setup.existing("followed").await;
    let servers = setup.servers();
    let done = in_thread(move || {
        let (session, other) = (connect(&servers), connect(&servers));
        let at = |name: &str| format!("{path}/{name}");

        let election = session.adopt(Election::new(session.client(), &at("election")));
        let mut leaders = session.adopt(election.follow());
        assert!(leaders.next().unwrap().is_none());
        let leadership = election.campaign(b"first").unwrap();
        let latch = other.adopt(Election::new(other.client(), &at("election"))).latch(b"second");
        assert_eq!(leaders.next().unwrap().unwrap().data, "first");
        leadership.proclaim(b"still first").unwrap();
        assert_eq!(leaders.next().unwrap().unwrap().data, "still first");
        assert!(!latch.leads_within(Duration::from_millis(1)));
        leadership.release().unwrap();
        assert!(latch.leads_within(Duration::from_secs(20)));
        latch.resign();

        let group = session.adopt(Group::new(session.client(), &at("group")));
        let mut members: Blocking<Follow<Vec<GroupMember>>> = session.adopt(group.follow());
        assert_eq!(members.next().unwrap().len(), 0);
        let member = group.join(b"here").unwrap();
        assert_eq!(members.next().unwrap()[0].data, "here");
        assert_eq!(group.members().unwrap().len(), 1);
        member.release().unwrap();

        let guard = session.lock(&at("lock")).acquire().unwrap();
        let queue = other.adopt(Queue::new(other.client(), &at("lock")));
        let mut holders = other.adopt(queue.follow());
        let holder = holders.next().unwrap().remove(0);
        assert_eq!(holder.token, guard.token());
        assert!(queue.evict(&holder).unwrap());
        assert_eq!(guard.lost_within(Duration::from_secs(20)), Some(Lost::NodeDeleted));
    });
    within(done).await.unwrap();
}

/// Behind a release the lock is free, and a failure is an error, as with futures.
#[test_with(on_each_release)]
async fn blocking_calls_return_what_has_come_of_them(setup: Setup) {
    let path = setup.existing("results").await;
    let (acl, _) = setup.outsider.acl(&path).await.unwrap();
    let fixed = Perms::CREATE | Perms::READ | Perms::WRITE | Perms::ADMIN;
    let fixed = AclList::from_iter([Id::anyone().may(fixed)]);
    let (servers, at) = (setup.servers(), path.clone());
    let done = in_thread(move || {
        let (session, other) = (connect(&servers), connect(&servers));
        let allow = |acl: &AclList| other.run(other.client().set_acl(&at, acl).into_future());
        let lock = session.lock(&at);
        for _ in 0..20 {
            lock.acquire().unwrap().release().unwrap();
            let (left, _) = other.run(other.client().children(&at).into_future()).unwrap();
            assert!(left.is_empty(), "{left:?}");
        }
        let barrier = session.adopt(Barrier::new(session.client(), &format!("{at}/barrier")));
        barrier.set().unwrap();
        let guard = lock.acquire().unwrap();
        allow(&fixed).unwrap();
        let kept = guard.release();
        assert!(matches!(kept, Err(ReleaseError::Refused(_))), "{kept:?}");
        let refused = barrier.remove();
        assert_eq!(refused, Err(AcquireError::Rejected(Rejection::NoAuth)));
        allow(&acl).unwrap();
        assert_eq!(barrier.remove(), Ok(()));
    });
    within(done).await.unwrap();
}

/// Whatever the reason, which takes a question to find out.
#[test_with(on_each_release)]
async fn known_loss_is_told_without_waiting(setup: Setup) {
    let path = setup.existing("known").await;
    let proxy = setup.proxy().await;
    let watched = proxy.on(Match::reply(OpCode::GET_DATA)).watch();
    let (servers, at) = (proxy.connect_string(), path.clone());
    let held = within(in_thread(move || {
        let guard = connect(&servers).lock(&at).acquire().unwrap();
        assert_eq!(guard.lost_within(Duration::from_millis(1)), None);
        guard
    }))
    .await
    .unwrap();
    within(watched.fired()).await;
    let asked = proxy.on(Match::reply(OpCode::EXISTS)).hold();
    setup.outsider.delete(held.path()).await.unwrap();
    let told = in_thread(move || {
        while !matches!(held.status(), Status::Lost(_)) {
            thread::sleep(Duration::from_millis(1));
        }
        (held.lost_within(Duration::ZERO), held)
    });
    let (told, held) = within(told).await.unwrap();
    assert_eq!(told, Some(Lost::NodeDeleted));
    asked.release();
    drop(held);
}

/// The thread of a session serves its clients for as long as there are any.
#[tokio::test]
async fn session_lasts_as_long_as_its_last_guard() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let held = in_thread(move || connect(&servers).lock("/l").acquire().unwrap().into_inner());
    let guard = within(held).await.unwrap();
    within(guard.check()).await.unwrap();
    within(guard.release()).await.unwrap();
    server.proxy().all_closed().await;
    assert!(server.sessions().is_empty());
}

/// A close waits for those that give something back, for as long as its caller has said.
#[tokio::test]
async fn thread_lasts_as_long_as_a_close_is_under_way() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let left = in_thread(move || connect(&servers).client().clone());
    let zk = within(left).await.unwrap();
    let (cleaner, session) = (zk.for_cleanup(), zk.session());
    let late = tokio::spawn(async move {
        let ended = tokio::time::timeout(Duration::from_secs(6), session.ended()).await;
        assert!(ended.is_err(), "{ended:?}");
        cleaner.create("/late", b"").await.unwrap();
    });
    within(zk.close_within(Duration::from_secs(20))).await.unwrap();
    late.await.unwrap();
    server.proxy().all_closed().await;
    assert!(server.sessions().is_empty());
}

/// What renews it does not end with the thread of the session that it began in.
#[tokio::test]
async fn durable_lock_is_carried_on_by_another_thread() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let (expire, expired) = mpsc::channel();
    let held = in_thread(move || {
        let (session, next) = (connect(&servers), connect(&servers));
        let lock = DurableLock::new(session.client(), "/d", "us").lease(Duration::from_secs(6));
        let guard = session.adopt(lock).acquire().unwrap();
        expire.send(session.client().session().id()).unwrap();
        drop(session);
        while !matches!(guard.status(), Status::Suspect { .. }) {
            thread::sleep(Duration::from_millis(1));
            assert!(!matches!(guard.status(), Status::Lost(_)), "not renewed before");
        }
        let mut guard = guard.into_inner();
        guard.carry_on(next.client());
        let guard = next.adopt(guard);
        drop(next);
        // Several leases.
        assert_eq!(guard.lost_within(Duration::from_secs(13)), None);
        guard.release().unwrap();
    });
    server.expire(within(in_thread(move || expired.recv().unwrap())).await.unwrap());
    within(held).await.unwrap();
}

/// A lead that is just being lost is waited for, until the latch has stood again.
#[tokio::test]
async fn lost_lead_does_not_end_the_wait_for_it() {
    let server = TestServer::start().await.unwrap();
    let options = ConnectOptions::new(&server.connect_string()).unwrap();
    let done = in_thread(move || {
        // It outlives the lease by far.
        let options = options.session_timeout(Duration::from_secs(20));
        let options = options.lease_margin(Duration::from_secs(15));
        let session = BlockingSession::connect(options).unwrap();
        let latch = session.adopt(Election::new(session.client(), "/e")).latch(b"");
        assert!(latch.leads_within(Duration::from_secs(60)));
        // The session's thread stands still until the lead is lost by the clock, and for a moment more.
        let (go_on, told) = mpsc::channel();
        session.client().spawn(async move {
            let () = told.recv().unwrap();
            let _ = told.recv_timeout(Duration::from_millis(100));
        });
        while latch.is_leader() {
            thread::sleep(Duration::from_millis(1));
        }
        go_on.send(()).unwrap();
        assert!(latch.leads_within(Duration::from_secs(60)));
        drop(go_on);
    });
    within(done).await.unwrap();
}
