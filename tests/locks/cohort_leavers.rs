//! Cohorts: tasks that give up in the moment in which they are passed the lock, and nodes that do not last.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use zk_locks::{
    AcquireError, Client, CohortGuard, CohortLock, Election, Grant, LatchState, Lock, LockObserver,
    Release,
};
use zk_tests::{
    network::{Network, pass},
    test_with,
};

use crate::locks::support::{client_on, in_virtual_time, joined, within};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);

/// How long a lock is sure to be held without an answer; sessions last twice as long.
const LEASE: Duration = Duration::from_secs(5);

/// Enough for a cohort to learn who else is in the queue.
const A_WHILE: Duration = Duration::from_millis(100);

/// A task of a cohort that waits, until this is dropped.
type Asking = Pin<Box<dyn Future<Output = Result<CohortGuard, AcquireError>> + Send>>;

async fn asking(lock: &CohortLock) -> Asking {
    let (lock, count) = (lock.clone(), lock.waiting() + 1);
    let asked = lock.clone();
    let mut asking: Asking = Box::pin(async move { asked.acquire().await });
    tokio::select! {
        biased;
        granted = &mut asking => panic!("two holders: {granted:?}"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(lock.waiting(), count);
    asking
}

/// Does something once, in the moment in which the lock is put down or granted.
#[derive(Default)]
struct Moment {
    released: Act,
    granted: Act,
}

type Act = Mutex<Option<Box<dyn FnOnce() + Send>>>;

fn set(act: &Act, what: impl FnOnce() + Send + 'static) {
    *act.lock().unwrap() = Some(Box::new(what));
}

fn come(act: &Act) {
    let act = act.lock().unwrap().take();
    if let Some(act) = act {
        act();
    }
}

impl LockObserver for Moment {
    fn released(&self, _: &Release<'_>) {
        come(&self.released);
    }

    fn granted(&self, _: &Grant<'_>) {
        come(&self.granted);
    }
}

fn pair_of(zk: &Client, path: &str, moment: &Arc<Moment>) -> CohortLock {
    let lock = CohortLock::builder(zk, path).max_sections(2).max_stay(LONG).herd();
    lock.observer(moment.clone()).build()
}

/// The holder passes the lock on to a task that leaves just before it is passed it, or before it has noticed. Neither
/// counts as one of those that have had it, and others get neither more nor less.
#[test_with(in_virtual_time)]
async fn leaver_uses_up_no_turn(network: Network) {
    let (zk, others) = (client_on(&network, "a").await, client_on(&network, "b").await);
    for is_passed in [false, true] {
        let path = format!("/passed-{is_passed}");
        let moment = Arc::new(Moment::default());
        let lock = pair_of(&zk, &path, &moment);
        let first = within(lock.acquire()).await.unwrap();
        let turn = first.token().get();
        let mut theirs = within(Lock::new(&others, &path).enqueue()).await.unwrap();
        let (leaver, second) = (asking(&lock).await, asking(&lock).await);
        pass(A_WHILE).await;
        if is_passed {
            drop(first);
            drop(leaver);
        } else {
            set(&moment.released, move || drop(leaver));
            drop(first);
        }
        let third = asking(&lock).await;
        let second = within(second).await.unwrap();
        assert_eq!(second.token().get(), turn, "one of two had had it, passed: {is_passed}");
        drop(second);
        let between = within(theirs.wait()).await.unwrap();
        assert!(between.token().get() > turn);
        within(between.release()).await.unwrap();
        let third = within(third).await.unwrap();
        assert_eq!(third.token().local(), 0);
        within(third.release()).await.unwrap();
    }
}

/// The same of the first one of a turn, when the cohort has just got the lock.
#[test_with(in_virtual_time)]
async fn first_leaver_uses_up_no_turn(network: Network) {
    let (zk, others) = (client_on(&network, "a").await, client_on(&network, "b").await);
    let moment = Arc::new(Moment::default());
    let lock = pair_of(&zk, "/first", &moment);
    let before = within(Lock::new(&others, "/first").acquire()).await.unwrap();
    let (leaver, first, second) = (asking(&lock).await, asking(&lock).await, asking(&lock).await);
    within(joined(&others, "/first", 2)).await;
    let mut theirs = within(Lock::new(&others, "/first").enqueue()).await.unwrap();
    pass(A_WHILE).await;
    set(&moment.granted, move || drop(leaver));
    within(before.release()).await.unwrap();
    let first = within(first).await.unwrap();
    let turn = first.token().get();
    pass(A_WHILE).await;
    drop(first);
    let second = within(second).await.unwrap();
    assert_eq!(second.token().get(), turn, "one of two had had it");
    let third = asking(&lock).await;
    drop(second);
    within(within(theirs.wait()).await.unwrap().release()).await.unwrap();
    within(within(third).await.unwrap().release()).await.unwrap();
}

/// The lock turns out to be lost when it is passed on, and the task that it was meant for has left: it does not wait
/// again.
#[test_with(in_virtual_time)]
async fn leaver_of_a_lost_lock_waits_no_more(network: Network) {
    let (start, ahead) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let late = ahead.clone();
    let clock = move || start.elapsed() + Duration::from_secs(ahead.load(Ordering::Relaxed));
    let options = network.options("a", "", 1).clock(clock).session_timeout(2 * LEASE);
    let zk = options.lease_margin(LEASE).connect().await.unwrap();
    for stays in [true, false] {
        let moment = Arc::new(Moment::default());
        let lock = pair_of(&zk, "/lost", &moment);
        let first = within(lock.acquire()).await.unwrap();
        let mut leaver = Some(asking(&lock).await);
        let (late, left) = (late.clone(), leaver.take_if(|_| !stays));
        set(&moment.released, move || {
            late.fetch_add(LEASE.as_secs() + 1, Ordering::Relaxed);
            drop(left);
        });
        drop(first);
        assert_eq!(lock.waiting(), usize::from(stays));
        if let Some(waiting) = leaver {
            within(within(waiting).await.unwrap().release()).await.unwrap();
        }
    }
}

/// So often the others delete a node; with pauses of up to five seconds that takes at least so long.
const TIMES: usize = 8;
const PAUSES: Duration = Duration::from_secs(11);

#[test_with(in_virtual_time)]
async fn cohort_queues_again_ever_more_slowly(network: Network) {
    let (zk, others) = (client_on(&network, "a").await, client_on(&network, "b").await);
    let before = within(Lock::new(&others, "/deleted").acquire()).await.unwrap();
    let lock = CohortLock::builder(&zk, "/deleted").herd().build();
    let waiting = asking(&lock).await;
    let since = Instant::now();
    for _ in 0..TIMES {
        joined(&others, "/deleted", 2).await;
        let (names, _) = others.children("/deleted").await.unwrap();
        let name = names.iter().find(|name| !before.path().ends_with(*name)).unwrap();
        others.delete(&format!("/deleted/{name}")).await.unwrap();
    }
    joined(&others, "/deleted", 2).await;
    assert!(since.elapsed() >= PAUSES, "{:?}", since.elapsed());
    // Still it leaves at once, and does not wait for a pause.
    let (names, _) = others.children("/deleted").await.unwrap();
    let name = names.iter().find(|name| !before.path().ends_with(*name)).unwrap();
    others.delete(&format!("/deleted/{name}")).await.unwrap();
    pass(A_WHILE).await;
    drop(waiting);
    pass(A_WHILE).await;
    within(before.release()).await.unwrap();
    let guard = within(lock.acquire()).await.unwrap();
    within(guard.release()).await.unwrap();
}

#[test_with(in_virtual_time)]
async fn latch_stands_again_ever_more_slowly(network: Network) {
    let (zk, others) = (client_on(&network, "a").await, client_on(&network, "b").await);
    let latch = Election::new(&zk, "/led").latch(b"");
    let mut states = latch.subscribe();
    let since = Instant::now();
    for _ in 0..TIMES {
        let leads = states.wait_for(|state| matches!(state, LatchState::Leading { .. }));
        drop(within(leads).await.unwrap());
        others.delete(&latch.path().unwrap()).await.unwrap();
        within(states.wait_for(|state| *state == LatchState::Waiting)).await.unwrap();
    }
    let leads = states.wait_for(|state| matches!(state, LatchState::Leading { .. }));
    drop(within(leads).await.unwrap());
    assert!(since.elapsed() >= PAUSES, "{:?}", since.elapsed());
    // After a long term it does so at once again.
    pass(Duration::from_secs(60)).await;
    let since = Instant::now();
    others.delete(&latch.path().unwrap()).await.unwrap();
    within(states.wait_for(|state| *state == LatchState::Waiting)).await.unwrap();
    let leads = states.wait_for(|state| matches!(state, LatchState::Leading { .. }));
    drop(within(leads).await.unwrap());
    assert!(since.elapsed() < A_WHILE, "{:?}", since.elapsed());
}

#[test_with(in_virtual_time)]
async fn latch_pauses_for_five_seconds_at_most(network: Network) {
    const LONGEST: Duration = Duration::from_secs(5);
    let (zk, others) = (client_on(&network, "a").await, client_on(&network, "b").await);
    let latch = Election::new(&zk, "/led").latch(b"");
    let mut states = latch.subscribe();
    let mut pauses = Vec::new();
    for time in 0..13 {
        let since = Instant::now();
        let leads = states.wait_for(|state| matches!(state, LatchState::Leading { .. }));
        drop(within(leads).await.unwrap());
        // Before the first there was no other term.
        if time > 0 {
            pauses.push(since.elapsed());
        }
        others.delete(&latch.path().unwrap()).await.unwrap();
        drop(within(states.wait_for(|state| *state == LatchState::Waiting)).await.unwrap());
    }
    assert!(pauses.iter().all(|pause| *pause <= LONGEST + A_WHILE), "{pauses:?}");
    assert!(pauses.last().is_some_and(|last| *last >= LONGEST), "{pauses:?}");
}

/// No task of the cohort watches over such a lock: it would stay for ever.
#[test_with(in_virtual_time)]
async fn lock_taken_by_a_try_does_not_linger(network: Network) {
    let (zk, others) = (client_on(&network, "a").await, client_on(&network, "b").await);
    let lock = CohortLock::builder(&zk, "/tried").linger(Duration::MAX).build();
    let guard = within(lock.try_acquire()).await.unwrap().expect("it is free");
    within(guard.release()).await.unwrap();
    pass(A_WHILE).await;
    assert_eq!(others.children("/tried").await.unwrap().0, [""; 0]);
    let theirs = within(Lock::new(&others, "/tried").acquire()).await.unwrap();
    within(theirs.release()).await.unwrap();
    drop(lock);
}

/// The time of a turn is that of all its tasks together.
#[test_with(in_virtual_time)]
async fn turn_is_over_in_time_however_many_have_had_it(network: Network) {
    let (zk, others) = (client_on(&network, "a").await, client_on(&network, "b").await);
    let stay = Duration::from_secs(10);
    let lock = CohortLock::builder(&zk, "/stay").max_sections(1000).max_stay(stay).build();
    let first = within(lock.acquire()).await.unwrap();
    let turn = first.token().get();
    let (second, third) = (asking(&lock).await, asking(&lock).await);
    let mut theirs = within(Lock::new(&others, "/stay").enqueue()).await.unwrap();
    pass(stay * 6 / 10).await;
    drop(first);
    let second = within(second).await.unwrap();
    assert_eq!(second.token().get(), turn);
    pass(stay * 6 / 10).await;
    drop(second);
    let between = within(theirs.wait()).await.unwrap();
    within(between.release()).await.unwrap();
    let third = within(third).await.unwrap();
    assert_ne!(third.token().get(), turn);
    within(third.release()).await.unwrap();
}
