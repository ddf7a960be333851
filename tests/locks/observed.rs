//! What is reported of locks, and to whom.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Waker},
    time::{Duration, Instant},
};

use zk_client::{Id, Session, SessionId};
use zk_locks::{
    AclList, AcquireError, Barrier, CohortLock, DoubleBarrier, Grant, Group, Lock, LockObserver,
    Lost, Metrics, Perms, Rejection, RwLock, Semaphore, SimpleLock,
};
use zk_tests::{
    network::{Network, pass},
    test_with,
};

use crate::locks::{
    cohorts::waiting,
    support::{Setup, client_on, closed, emptied, in_virtual_time, on_each_release, within},
};

#[test_with(on_each_release)]
async fn metrics_count_grants_waits_and_losses(setup: Setup) {
    let path = setup.existing("counted").await;
    let metrics = Arc::new(Metrics::default());
    let lock = Lock::builder(&setup.outsider, &path).observer(metrics.clone()).build();
    let first = within(lock.acquire()).await.unwrap();
    let mut second = within(lock.enqueue()).await.unwrap();
    let third = within(lock.enqueue()).await.unwrap();
    assert_eq!((metrics.grants(), metrics.given_up()), (1, 0));
    drop(third);
    within(first.release()).await.unwrap();
    let second = within(second.wait()).await.unwrap();
    setup.outsider.delete(second.path()).await.unwrap();
    assert_eq!(within(second.lost()).await, Lost::NodeDeleted);
    assert_eq!(metrics.losses(), 0);
    drop(second);
    assert_eq!((metrics.grants(), metrics.given_up(), metrics.losses()), (2, 1, 1));
    assert_eq!((metrics.waits().count(), metrics.holds().count()), (2, 2));
    let buckets: Vec<_> = metrics.waits().buckets().collect();
    assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 2);
    assert!(buckets.windows(2).all(|pair| pair[1].0.is_none_or(|limit| pair[0].0 < Some(limit))));
    assert_eq!(metrics.queue_length(), 1);
}

/// Also of one that never had a place in the queue, since its cohort had the lock.
#[test_with(on_each_release)]
async fn each_grant_has_a_wait(setup: Setup) {
    let path = setup.existing("passed").await;
    let metrics = Arc::new(Metrics::default());
    let lock = CohortLock::builder(&setup.outsider, &path).observer(metrics.clone()).build();
    let first = within(lock.acquire()).await.unwrap();
    let second = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await.map(drop) }
    });
    waiting(&lock, 1).await;
    drop(first);
    within(second).await.unwrap().unwrap();
    assert_eq!((metrics.grants(), metrics.waits().count()), (2, 2));
}

/// It is the same hold all the time, and what becomes of it afterwards counts.
#[test_with(on_each_release)]
async fn loss_after_a_refused_downgrade_is_counted(setup: Setup) {
    let path = setup.existing("refused").await;
    let metrics = Arc::new(Metrics::default());
    let lock = RwLock::builder(&setup.outsider, &path).observer(metrics.clone()).build();
    let writing = within(lock.write()).await.unwrap();
    let no_create = Perms::READ | Perms::WRITE | Perms::DELETE | Perms::ADMIN;
    let acl: AclList = [Id::anyone().may(no_create)].into_iter().collect();
    setup.outsider.set_acl(&path, &acl).await.unwrap();
    let refused = within(writing.downgrade()).await.unwrap_err();
    assert_eq!(refused.cause, AcquireError::Rejected(Rejection::NoAuth));
    let writing = refused.guard;
    assert_eq!(within(writing.check()).await, Ok(()));
    assert_eq!((metrics.grants(), metrics.holds().count()), (1, 0));
    setup.outsider.delete(writing.path()).await.unwrap();
    assert_eq!(within(writing.lost()).await, Lost::NodeDeleted);
    drop(writing);
    assert_eq!((metrics.holds().count(), metrics.losses()), (1, 1));
}

/// A lock that is held for reading instead is held on, under the same token: it is released once, and counts until then.
#[test_with(on_each_release)]
async fn hold_lasts_through_a_downgrade(setup: Setup) {
    let path = setup.existing("lasting").await;
    let metrics = Arc::new(Metrics::default());
    let lock = RwLock::builder(&setup.outsider, &path).observer(metrics.clone()).build();
    let writing = within(lock.write()).await.unwrap();
    let reading = within(writing.downgrade()).await.unwrap();
    assert_eq!((metrics.grants(), metrics.holds().count()), (1, 0));
    within(reading.release()).await.unwrap();
    assert_eq!((metrics.grants(), metrics.holds().count(), metrics.losses()), (1, 1, 0));

    let ear = Arc::new(Ear::default());
    let limit = Duration::from_millis(500);
    let lock = RwLock::builder(&setup.outsider, &path).max_hold(limit).observer(ear.clone());
    let writing = within(lock.build().write()).await.unwrap();
    let reading = within(writing.downgrade()).await.unwrap();
    within(ear.1.notified()).await;
    // On a slow machine the limit may be over before the downgrade is.
    assert_eq!(ear.0.lock().unwrap().len(), 1);
    within(reading.release()).await.unwrap();
}

/// What was given up without a connection is counted until it is gone.
#[test_with(on_each_release)]
async fn metrics_count_orphans_while_they_exist(setup: Setup) {
    let path = setup.existing("orphans").await;
    let metrics = Arc::new(Metrics::default());
    let (proxy, zk) = setup.proxied().await;
    let lock = || Lock::builder(&zk, &path).observer(metrics.clone()).build();
    // Those of two sessions in turn: each session counts once.
    drop((lock(), Lock::builder(&setup.outsider, &path).observer(metrics.clone()).build()));
    let (held, waiting) = (within(lock().acquire()).await.unwrap(), lock().enqueue().await);
    assert_eq!(metrics.orphans(), 0);
    proxy.refuse_connections().await;
    proxy.reset_all();
    drop((held, waiting));
    let counted = async {
        while metrics.orphans() != 2 {
            tokio::task::yield_now().await;
        }
    };
    within(counted).await;
    proxy.accept_connections().await;
    emptied(&setup.outsider, &path).await;
    zk.sync("/").await.unwrap();
    assert_eq!((metrics.orphans(), zk.session().orphans()), (0, 0));
}

/// Hears of one lock.
#[derive(Default)]
struct Ear(Mutex<Vec<String>>, tokio::sync::Notify);

impl LockObserver for Ear {
    fn held_too_long(&self, grant: &Grant<'_>) {
        self.0.lock().unwrap().push(grant.path.to_owned());
        self.1.notify_one();
    }
}

#[test_with(on_each_release)]
async fn overlong_hold_is_reported_once(setup: Setup) {
    let path = setup.existing("alarm").await;
    let ear = Arc::new(Ear::default());
    let lock =
        |limit| Lock::builder(&setup.outsider, &path).max_hold(limit).observer(ear.clone()).build();
    let short = within(lock(Duration::from_secs(3600)).acquire()).await.unwrap();
    within(short.release()).await.unwrap();
    let long = within(lock(Duration::from_millis(1)).acquire()).await.unwrap();
    within(ear.1.notified()).await;
    assert_eq!(*ear.0.lock().unwrap(), [long.path().to_owned()]);
    within(long.check()).await.unwrap();
    within(long.release()).await.unwrap();
}

/// A lock that was taken away is held no longer, although its guard is there.
#[test_with(on_each_release)]
async fn nothing_is_reported_of_a_lock_that_was_taken_away(setup: Setup) {
    let path = setup.existing("ended").await;
    let ear = Arc::new(Ear::default());
    let builder = || Lock::builder(&setup.outsider, &path).observer(ear.clone());
    let warned =
        builder().release_after(Duration::from_millis(1)).max_hold(Duration::from_millis(50));
    let ended = within(warned.build().acquire()).await.unwrap();
    assert_eq!(within(ended.lost()).await, Lost::HeldTooLong);
    assert_eq!(*ear.0.lock().unwrap(), [ended.path().to_owned()]);
    within(ear.1.notified()).await;
    // Its time is over when that of a younger one is.
    let younger = builder().max_hold(Duration::from_millis(50)).build();
    let younger = within(younger.acquire()).await.unwrap();
    within(ear.1.notified()).await;
    assert_eq!(*ear.0.lock().unwrap(), [ended.path().to_owned(), younger.path().to_owned()]);
}

#[test_with(on_each_release)]
async fn release_drop_and_loss_cancel_the_token(setup: Setup) {
    let path = setup.existing("cancelled").await;
    let lock = Lock::new(&setup.outsider, &path);
    let guard = within(lock.acquire()).await.unwrap();
    let token = guard.cancellation_token();
    assert!(!token.is_cancelled());
    within(guard.release()).await.unwrap();
    assert!(token.is_cancelled());

    let guard = within(lock.acquire()).await.unwrap();
    let token = guard.cancellation_token();
    drop(guard);
    assert!(token.is_cancelled());

    let guard = within(lock.acquire()).await.unwrap();
    let token = guard.cancellation_token();
    setup.outsider.delete(guard.path()).await.unwrap();
    within(token.cancelled()).await;
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);

    // One that is asked for afterwards.
    let guard = within(lock.acquire()).await.unwrap();
    setup.outsider.delete(guard.path()).await.unwrap();
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);
    assert!(guard.cancellation_token().is_cancelled());
}

/// A write that the lock protects, in ZooKeeper itself: with the check in front it needs no token.
#[test_with(on_each_release)]
async fn guarded_transaction_fails_after_a_loss(setup: Setup) {
    let path = setup.existing("fenced").await;
    let data = setup.existing("fenced-data").await;
    let guard = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    assert!(guard.transaction().set(&data, b"one").await.unwrap().is_ok());
    setup.outsider.delete(guard.path()).await.unwrap();
    let refused = guard.transaction().set(&data, b"two").await.unwrap().unwrap_err();
    assert_eq!((refused.index, refused.rejection), (0, Rejection::NoNode));
    assert_eq!(&*setup.outsider.get(&data).await.unwrap().0, b"one");
}

/// Who is told about a lock, and of which session.
#[derive(Default)]
struct Attached(Mutex<Vec<SessionId>>);

impl LockObserver for Attached {
    fn attached(&self, session: &Session) {
        self.0.lock().unwrap().push(session.id());
    }
}

#[test_with(on_each_release)]
async fn observer_learns_each_recipes_session(setup: Setup) {
    let (path, zk) = (setup.path("attached"), setup.client().await);
    let attached = Arc::new(Attached::default());
    for client in [&setup.outsider, &zk] {
        drop(Lock::builder(client, &path).observer(attached.clone()).build());
        drop(RwLock::builder(client, &path).observer(attached.clone()).build());
        // Nothing is ever reported of these.
        drop(SimpleLock::builder(client, &path).observer(attached.clone()).build());
        drop(Group::builder(client, &path).observer(attached.clone()).build());
        drop(Barrier::builder(client, &path).observer(attached.clone()).build());
        drop(DoubleBarrier::builder(client, &path).observer(attached.clone()).build());
    }
    let [one, other] = [&setup.outsider, &zk].map(|client| client.session().id());
    assert_eq!(*attached.0.lock().unwrap(), [one, one, other, other]);
}

/// How long each grant was waited for.
#[derive(Default)]
struct Waits(Mutex<Vec<Duration>>);

impl LockObserver for Waits {
    fn granted(&self, grant: &Grant<'_>) {
        self.0.lock().unwrap().push(grant.waited);
    }
}

/// Not with the turn of its cohort.
#[test_with(on_each_release)]
async fn section_waits_from_its_own_request_on(setup: Setup) {
    let path = setup.existing("sections").await;
    let waits = Arc::new(Waits::default());
    let lock = CohortLock::builder(&setup.outsider, &path).linger(Duration::from_secs(3600));
    let lock = lock.observer(waits.clone()).build();
    let began = Instant::now();
    drop(within(lock.acquire()).await.unwrap());
    while began.elapsed() < Duration::from_millis(200) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let asked = Instant::now();
    let section = within(lock.acquire()).await.unwrap();
    let took = asked.elapsed();
    let waits = waits.0.lock().unwrap().clone();
    assert!(waits.len() == 2 && waits[1] <= took, "{waits:?} of {took:?}");
    drop(section);
}

/// Nor with the node, which another task has made.
#[test_with(on_each_release)]
async fn first_section_waits_from_its_own_request_on(setup: Setup) {
    let path = setup.existing("first-section").await;
    let waits = Arc::new(Waits::default());
    let lock = CohortLock::builder(&setup.outsider, &path).observer(waits.clone()).build();
    let held = within(Lock::new(&setup.client().await, &path).acquire()).await.unwrap();
    let ask = || {
        let lock = lock.clone();
        tokio::spawn(async move { lock.acquire().await })
    };
    let first = ask();
    waiting(&lock, 1).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(200) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let asked = Instant::now();
    let second = ask();
    waiting(&lock, 2).await;
    first.abort();
    waiting(&lock, 1).await;
    within(held.release()).await.unwrap();
    let section = within(second).await.unwrap().unwrap();
    let took = asked.elapsed();
    let waits = waits.0.lock().unwrap().clone();
    assert!(waits.len() == 1 && waits[0] <= took, "{waits:?} of {took:?}");
    drop(section);
}

/// How many attempts have joined, left, were granted the lock, and have given up.
#[derive(Default)]
struct Attempts(Mutex<[usize; 4]>);

impl LockObserver for Attempts {
    fn joined(&self, _path: &str) {
        self.0.lock().unwrap()[0] += 1;
    }

    fn left(&self, _path: &str) {
        self.0.lock().unwrap()[1] += 1;
    }

    fn granted(&self, _grant: &Grant<'_>) {
        self.0.lock().unwrap()[2] += 1;
    }

    fn given_up(&self, _path: &str, _waited: Duration) {
        self.0.lock().unwrap()[3] += 1;
    }
}

/// However they get the lock, or do not.
#[test_with(on_each_release)]
async fn each_task_of_a_cohort_is_an_attempt(setup: Setup) {
    let (path, zk) = (setup.existing("attempts").await, setup.client().await);
    let theirs = Lock::new(&setup.outsider, &path);
    let attempts = Arc::new(Attempts::default());
    let seen = || *attempts.0.lock().unwrap();
    let lock = CohortLock::builder(&zk, &path).linger(Duration::from_secs(3600));
    let lock = lock.observer(attempts.clone()).build();
    let ask = || {
        let lock = lock.clone();
        tokio::spawn(async move { lock.acquire().await })
    };
    let held = within(theirs.acquire()).await.unwrap();
    let first = ask();
    waiting(&lock, 1).await;
    let late = lock.acquire_timeout(Duration::from_millis(20)).await;
    assert_eq!(late.map(drop).unwrap_err(), AcquireError::TimedOut);
    assert_eq!(seen(), [2, 1, 0, 1]);
    // With the node, from the task before, and at rest.
    within(held.release()).await.unwrap();
    let first = within(first).await.unwrap().unwrap();
    let second = ask();
    waiting(&lock, 1).await;
    within(first.release()).await.unwrap();
    within(within(second).await.unwrap().unwrap().release()).await.unwrap();
    within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
    assert_eq!(seen(), [4, 4, 3, 1]);
    // Failed with the session.
    let held = within(theirs.acquire()).await.unwrap();
    let last = ask();
    waiting(&lock, 1).await;
    closed(&zk).await;
    within(last).await.unwrap().unwrap_err();
    assert_eq!(seen(), [5, 5, 3, 2]);
    // Tries are attempts if the lock seems to be free.
    within(held.release()).await.unwrap();
    let lock = CohortLock::builder(&setup.outsider, &path).observer(attempts.clone()).build();
    let section = within(lock.try_acquire()).await.unwrap().expect("it is free");
    assert!(within(lock.try_acquire()).await.unwrap().is_none());
    within(section.release()).await.unwrap();
    assert_eq!(seen(), [6, 6, 4, 2]);
}

/// Where attempts have joined and left.
#[derive(Default)]
struct Places(Mutex<Vec<String>>);

impl LockObserver for Places {
    fn joined(&self, path: &str) {
        self.0.lock().unwrap().push(path.to_owned());
    }

    fn left(&self, path: &str) {
        self.0.lock().unwrap().push(path.to_owned());
    }
}

/// Also the one that makes a node.
#[test_with(on_each_release)]
async fn attempts_of_a_cohort_are_at_its_path(setup: Setup) {
    let path = setup.existing("places").await;
    let places = Arc::new(Places::default());
    let lock = CohortLock::builder(&setup.outsider, &path).observer(places.clone()).build();
    within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
    let section = within(lock.try_acquire()).await.unwrap().expect("it is free");
    within(section.release()).await.unwrap();
    assert_eq!(*places.0.lock().unwrap(), [&*path; 4]);
}

/// Polls that an attempt on a free lock needs at most.
const POLLS: usize = 8;

/// A task that stands still in the middle of an attempt, and goes on when the lease is over.
#[test_with(in_virtual_time)]
async fn attempt_that_outlives_its_lease_is_granted_or_given_up(network: Network) {
    let moment = Duration::from_millis(100);
    let mut late = 0;
    for polls in 1..POLLS {
        for recipe in 0..3 {
            let zk = client_on(&network, "a").await;
            let attempts = Arc::new(Attempts::default());
            let path = format!("/{recipe}-{polls}");
            let observer = attempts.clone();
            let attempt: Pin<Box<dyn Future<Output = bool>>> = match recipe {
                0 => {
                    let lock = Lock::builder(&zk, &path).observer(observer).build();
                    Box::pin(async move { lock.acquire().await.is_ok() })
                }
                1 => {
                    let lock = RwLock::builder(&zk, &path).observer(observer).build();
                    Box::pin(async move { lock.write().await.is_ok() })
                }
                _ => {
                    let permits = Semaphore::builder(&zk, &path).observer(observer).build();
                    Box::pin(async move { permits.acquire().await.is_ok() })
                }
            };
            let mut attempt = pin!(attempt);
            let mut is_over = false;
            for _ in 0..polls {
                is_over = attempt.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
                if is_over {
                    break;
                }
                pass(moment).await;
            }
            network.cut("a");
            while !zk.session().lease_left().is_zero() {
                pass(moment).await;
            }
            if !is_over {
                late += 1;
                assert!(!within(attempt).await, "recipe {recipe} after {polls} polls");
            }
            network.heal();
            let [joined, left, granted, given_up] = *attempts.0.lock().unwrap();
            let ends = (left, granted + given_up);
            assert_eq!((joined, joined), ends, "recipe {recipe} after {polls} polls");
        }
    }
    assert!(late > 0);
}
