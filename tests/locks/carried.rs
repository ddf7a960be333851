//! Requests of recipes, whatever the client's call options and whatever goes wrong.

use std::time::{Duration, Instant};

use zk_client::{CallOptions, Cause, WriteError, path::PathError};
use zk_locks::{
    AcquireError, Barrier, DurableLock, Group, Lock, Queue, RwLock, Semaphore, SimpleLock,
};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::{busy::too_busy_for, test_with};

use crate::locks::support::{Setup, emptied, on_each_release, within};

/// What the connection string ends in is part of what is missing.
#[test_with(on_each_release)]
async fn missing_chroot_is_created_by_recipes(setup: Setup) {
    for (number, levels) in ["", "/levels"].into_iter().enumerate() {
        let chroot = |name: &str| format!("{}{levels}", setup.path(&format!("{name}-{number}")));
        let below = |name: &str| setup.outsider.chrooted(&chroot(name)).unwrap();
        for (name, lock) in [("itself", "/"), ("below", "/lock")] {
            let guard = within(Lock::new(&below(name), lock).acquire()).await.unwrap();
            within(guard.release()).await.unwrap();
            let path = chroot(name) + lock;
            emptied(&setup.outsider, path.trim_end_matches('/')).await;
        }
        drop(within(SimpleLock::new(&below("simple"), "/node").acquire()).await.unwrap());
        assert!(within(Barrier::new(&below("barrier"), "/deep/barrier").set()).await.unwrap());
        drop(within(Semaphore::new(&below("semaphore"), "/s", 1).acquire()).await.unwrap());
        drop(within(Group::new(&below("group"), "/g").join(b"")).await.unwrap());
    }
}

/// The create reply is lost, and then the server is busy: no node may stay that no client knows of.
#[test_with(on_each_release)]
async fn simple_lock_survives_two_faults_cleanly(setup: Setup) {
    let path = setup.path("orphan");
    let (proxy, zk) = setup.proxied().await;
    let created = |frame: &zk_testkit::proxy::Frame| {
        frame.is_reply(OpCode::CREATE2) || frame.is_reply(OpCode::MULTI)
    };
    let lost = proxy.on(Match::replies().when(created).once()).reset();
    let busy = too_busy_for(&proxy, Match::request(OpCode::SYNC).once());
    let lock = SimpleLock::new(&zk, &path);
    let guard = within(lock.acquire()).await.unwrap();
    assert_eq!((lost.times_fired(), busy.turned_away()), (1, 1));
    assert!(within(lock.try_acquire()).await.unwrap().is_none());
    within(guard.release()).await.unwrap();
    assert!(setup.outsider.exists(&path).await.unwrap().is_none());
    within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
}

/// One error for all, and it names what the caller has written.
#[test_with(on_each_release)]
async fn trailing_slash_error_names_the_path(setup: Setup) {
    let path = setup.path("slash/");
    let expected: PathError = path.parse::<zk_client::path::ZkPath>().unwrap_err();
    let zk = &setup.outsider;
    let expected = AcquireError::InvalidPath(expected);
    let errors = [
        Lock::new(zk, &path).acquire().await.err(),
        Lock::new(zk, &path).try_acquire().await.err(),
        Lock::builder(zk, &path).herd().build().acquire().await.err(),
        RwLock::new(zk, &path).read().await.err(),
        Semaphore::new(zk, &path, 1).acquire().await.err(),
        SimpleLock::new(zk, &path).acquire().await.err(),
        SimpleLock::new(zk, &path).try_acquire().await.err(),
        Group::new(zk, &path).join(b"").await.err(),
        Barrier::new(zk, &path).set().await.err(),
        DurableLock::new(zk, &path, "job").acquire().await.err(),
        DurableLock::new(zk, &path, "job").try_acquire().await.err(),
        Queue::new(zk, &path).contenders().await.err().map(AcquireError::from),
    ];
    for error in errors {
        assert_eq!(error.as_ref(), Some(&expected));
        assert!(error.unwrap().to_string().contains(&path));
    }
}

/// It is the user's request: late or refused, as the user said.
#[test_with(on_each_release)]
async fn guard_transaction_keeps_client_options(setup: Setup) {
    let path = setup.path("told");
    let (proxy, zk) = setup.proxied().await;
    let limit = Duration::from_millis(50);
    let hasty = zk.with(CallOptions::new().timeout(limit));
    let lock = Lock::new(&hasty, &path);
    let guard = within(lock.acquire()).await.unwrap();
    let late = proxy.on(Match::reply(OpCode::MULTI).once()).hold();
    let written = within(guard.transaction().set(&path, b"late").into_future()).await;
    let overdue = |error: &WriteError| {
        matches!(error, WriteError::InDoubt { cause: Cause::DeadlineExceeded, .. })
    };
    assert!(written.as_ref().is_err_and(overdue), "{written:?}");
    late.release();
    within(guard.release()).await.unwrap();

    // A client that gives its requests all the time that they need.
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let busy = too_busy_for(&proxy, Match::request(OpCode::MULTI).once());
    let written = within(guard.transaction().set(&path, b"refused").into_future()).await;
    assert_eq!(written, Err(WriteError::NotApplied(Cause::Throttled)));
    assert_eq!(busy.turned_away(), 1);
    within(guard.release()).await.unwrap();

    // Of a lock that outlives sessions too; what the recipe asks itself takes the time that it needs.
    let lock = DurableLock::new(&hasty, &setup.path("told-durable"), "job");
    let guard = within(lock.acquire()).await.unwrap();
    let late = proxy.on(Match::reply(OpCode::MULTI).once()).hold();
    let written = within(guard.transaction().set(&path, b"late").into_future()).await;
    assert!(written.as_ref().is_err_and(overdue), "{written:?}");
    late.release();
    let late = proxy.on(Match::reply(OpCode::MULTI).once()).hold();
    let in_the_end = async {
        within(late.fired()).await;
        let asked = Instant::now();
        while asked.elapsed() < limit * 2 {
            tokio::time::sleep(limit).await;
        }
        late.release();
    };
    let (checked, ()) = within(async { tokio::join!(guard.check(), in_the_end) }).await;
    assert_eq!(checked, Ok(()));
    within(guard.release()).await.unwrap();
}
