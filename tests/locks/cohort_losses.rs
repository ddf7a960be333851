//! Cohorts: what becomes of waiters when the lock is lost.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::{
    runtime::Handle,
    task::{JoinSet, block_in_place},
};
use zk_client::SessionState;
use zk_locks::{
    AcquireError, Client, CohortLock, Lock, LockObserver, Lost, Release, SessionEnd, Status,
};
use zk_testkit::TestServer;
use zk_tests::test_with;

use super::cohorts::waiting;
use crate::locks::support::{Setup, closed, emptied, on_each_release, spawning_others, within};

/// Those that wait are told that it was taken away, and not that somebody has deleted its node; or queue up again.
#[test_with(on_each_release)]
async fn waiters_of_lock_held_for_too_long_requeue_or_fail(setup: Setup) {
    for fails in [false, true] {
        let path = setup.existing(&format!("kept-{fails}")).await;
        let zk = setup.client().await;
        let lock = CohortLock::builder(&zk, &path).release_after(Duration::from_millis(200));
        let lock = if fails { lock.fail_on_loss() } else { lock }.build();
        let first = within(lock.acquire()).await.unwrap();
        let mut next = tokio::spawn({
            let lock = lock.clone();
            async move { lock.acquire().await?.release().await.map_err(|_| AcquireError::Used) }
        });
        waiting(&lock, 1).await;
        assert_eq!(within(first.scope(pending::<()>())).await, Err(Lost::HeldTooLong));
        let outcome = within(&mut next).await.unwrap();
        assert_eq!(outcome, if fails { Err(AcquireError::HeldTooLong) } else { Ok(()) });
        within(first.release()).await.unwrap();
        emptied(&setup.outsider, &path).await;
    }
}

/// Scenario 53, where the session is still there: none is granted on the node that is gone.
#[test_with(on_each_release)]
async fn waiters_of_lost_node_requeue_or_fail(setup: Setup) {
    for fails in [false, true] {
        let path = setup.existing(&format!("lost-{fails}")).await;
        let zk = setup.client().await;
        let lock = CohortLock::builder(&zk, &path);
        let lock = if fails { lock.fail_on_loss() } else { lock }.build();
        let first = within(lock.acquire()).await.unwrap();
        let mut tasks = JoinSet::new();
        for _ in 0..3 {
            let lock = lock.clone();
            tasks.spawn(async move {
                let guard = lock.acquire().await?;
                let token = guard.token();
                guard.release().await.unwrap();
                Ok::<_, AcquireError>(token)
            });
        }
        waiting(&lock, 3).await;
        setup.outsider.delete(first.path()).await.unwrap();
        // While the first one still works, and has not asked for anything.
        for outcome in within(tasks.join_all()).await {
            match fails {
                true => assert_eq!(outcome, Err(AcquireError::NodeDeleted)),
                false => assert!(outcome.unwrap().get() > first.token().get()),
            }
        }
        assert_eq!(first.status(), Status::Lost(Lost::NodeDeleted));
        within(first.release()).await.unwrap();
        within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
        emptied(&setup.outsider, &path).await;
    }
}

/// Nobody waits, so nobody is told later.
#[test_with(on_each_release)]
async fn loss_without_waiters_concerns_no_later_one(setup: Setup) {
    let path = setup.existing("unheard").await;
    let zk = setup.client().await;
    let lock = CohortLock::builder(&zk, &path).fail_on_loss().build();
    for tries in [true, false] {
        let guard = match tries {
            true => within(lock.try_acquire()).await.unwrap().expect("it is free"),
            false => within(lock.acquire()).await.unwrap(),
        };
        setup.outsider.delete(guard.path()).await.unwrap();
        assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);
        within(guard.release()).await.unwrap();
        within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
    }
    emptied(&setup.outsider, &path).await;
}

/// Nor is a guard that is kept in the way of others.
#[test_with(on_each_release)]
async fn lost_guard_that_is_kept_blocks_no_try(setup: Setup) {
    let path = setup.existing("kept").await;
    let zk = setup.client().await;
    let lock = CohortLock::new(&zk, &path);
    let kept = within(lock.try_acquire()).await.unwrap().expect("it is free");
    assert!(within(lock.try_acquire()).await.unwrap().is_none());
    setup.outsider.delete(kept.path()).await.unwrap();
    assert_eq!(within(kept.lost()).await, Lost::NodeDeleted);
    let again = within(lock.try_acquire()).await.unwrap().expect("it is free again");
    assert!(again.token() > kept.token());
    drop(kept);
    assert_eq!(again.status(), Status::Held);
    within(again.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// Tasks of a client may end before those that wait for them, which are told, even if the session is driven on.
#[test_with(on_each_release)]
async fn waiters_fail_when_the_task_of_the_cohort_ends(setup: Setup) {
    let path = setup.existing("deserted").await;
    let theirs = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let tasks = Arc::new(Mutex::new(JoinSet::new()));
    let apart = tasks.clone();
    let spawn = move |task| drop(apart.lock().unwrap().spawn(task));
    let zk = within(spawning_others(setup.options(), spawn).connect()).await.unwrap();
    let lock = CohortLock::new(&zk, &path);
    let mut waiters = JoinSet::new();
    for _ in 0..2 {
        let lock = lock.clone();
        waiters.spawn(async move { lock.acquire().await.map(drop) });
    }
    waiting(&lock, 2).await;
    tasks.lock().unwrap().abort_all();
    let ended = Err(AcquireError::SessionEnded(SessionEnd::Closed));
    assert_eq!(within(waiters.join_all()).await, [ended.clone(), ended]);
    within(theirs.release()).await.unwrap();
}

/// Scenario 53.
#[test_with(on_each_release)]
async fn waiters_fail_when_the_session_ends(setup: Setup) {
    for fails in [false, true] {
        let path = setup.existing(&format!("ended-{fails}")).await;
        let zk = setup.client().await;
        let lock = CohortLock::builder(&zk, &path);
        let lock = if fails { lock.fail_on_loss() } else { lock }.build();
        let first = within(lock.acquire()).await.unwrap();
        let waiter = lock.clone();
        let waiter = tokio::spawn(async move { waiter.acquire().await });
        waiting(&lock, 1).await;
        closed(&zk).await;
        let ended = AcquireError::SessionEnded(SessionEnd::Closed);
        assert_eq!(within(waiter).await.unwrap().unwrap_err(), ended);
        assert_eq!(first.status(), Status::Lost(Lost::SessionEnded(SessionEnd::Closed)));
        drop(first);
        assert_eq!(within(lock.acquire()).await.unwrap_err(), ended);
        emptied(&setup.outsider, &path).await;
    }
}

/// Does something once, as the first task of a cohort passes the lock on, and gives others time to hear of it.
struct Passing(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl LockObserver for Passing {
    fn released(&self, _: &Release<'_>) {
        let Some(act) = self.0.lock().unwrap().take() else { return };
        block_in_place(act);
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(100) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Another thread hears of the loss first, when there seem to be no waiters to be told.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn waiter_of_a_lock_that_is_lost_while_it_is_passed_on_is_told() {
    for (expires, fails) in [(true, false), (true, true), (false, false), (false, true)] {
        let server = Arc::new(TestServer::start().await.unwrap());
        let zk = Client::connect(&server.connect_string()).await.unwrap();
        let other = Client::connect(&server.connect_string()).await.unwrap();
        let passing = Arc::new(Passing(Mutex::default()));
        let lock = CohortLock::builder(&zk, "/l").observer(passing.clone());
        let lock = if fails { lock.fail_on_loss() } else { lock }.build();
        let first = within(lock.acquire()).await.unwrap();
        let next = tokio::spawn({
            let lock = lock.clone();
            async move { lock.acquire().await.map(drop) }
        });
        waiting(&lock, 1).await;
        let (path, session) = (first.path().to_owned(), zk.session());
        let servers = server.clone();
        *passing.0.lock().unwrap() = Some(Box::new(move || match expires {
            true => {
                servers.with(|ensemble, now| ensemble.expire(now, session.id()));
                while !matches!(session.state(), SessionState::Ended(_)) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            false => Handle::current().block_on(other.delete(&path).into_future()).unwrap(),
        }));
        drop(first);
        let outcome = within(next).await.unwrap();
        match (expires, fails) {
            (true, _) => assert_eq!(outcome, Err(AcquireError::SessionEnded(SessionEnd::Expired))),
            (false, true) => assert_eq!(outcome, Err(AcquireError::NodeDeleted)),
            (false, false) => assert_eq!(outcome, Ok(())),
        }
    }
}
