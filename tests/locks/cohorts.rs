//! Cohorts: how the lock is handed over, for how long, and at what cost.

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::{runtime, sync::Barrier, task::JoinSet};
use zk_client::EventType;
use zk_locks::{Client, CohortGuard, CohortLock, FencingToken, Lock, Queue, Status, Ticket};
use zk_proto::OpCode;
use zk_testkit::{
    TestServer,
    proxy::{Kind, Match},
};
use zk_tests::test_with;

use crate::locks::support::{
    Setup, dropped_on_waking, emptied, joined, on_each_release, on_each_release_threaded,
    on_each_release_timeless, ops, within,
};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);

/// Waits until so many tasks wait for the lock.
pub(super) async fn waiting(lock: &CohortLock, count: usize) {
    let reached = async {
        while lock.waiting() != count {
            tokio::task::yield_now().await;
        }
    };
    within(reached).await;
}

#[test_with(on_each_release)]
async fn uncontended_cohort_costs_a_plain_lock(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let lock = CohortLock::new(&zk, &setup.existing("alone").await);
    let mark = proxy.mark();
    let guard = within(lock.acquire()).await.unwrap();
    assert_eq!(format!("{guard:?}"), format!("CohortGuard({:?})", *guard));
    within(guard.release()).await.unwrap();
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::CREATE2, OpCode::GET_CHILDREN2, OpCode::DELETE], "{frames}");
}

#[test_with(on_each_release_timeless)]
async fn cohort_of_tasks_costs_four_requests(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.existing("tasks").await;
    let lock = CohortLock::new(&zk, &path);
    let order = Arc::new(Mutex::new(Vec::new()));
    let mark = proxy.mark();
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let (lock, order) = (lock.clone(), order.clone());
        tasks.spawn(async move {
            let guard = lock.acquire().await.unwrap();
            order.lock().unwrap().push((number, guard.token()));
            tokio::task::yield_now().await;
            assert_eq!(guard.status(), Status::Held);
            guard.release().await.unwrap();
        });
    }
    within(tasks.join_all()).await;
    zk.sync("/").await.unwrap();
    let frames = proxy.frames_since(mark);
    let expected = [
        OpCode::CREATE2,
        OpCode::GET_CHILDREN2,
        OpCode::GET_CHILDREN2, // With a watch, for others.
        OpCode::DELETE,
        OpCode::SYNC,
    ];
    assert_eq!(ops(&frames), expected, "{frames}");
    let events = frames.iter().filter(|frame| frame.kind == Kind::Notification).count();
    assert_eq!(events, 1, "{frames}");
    let order = order.lock().unwrap().clone();
    assert!(order.windows(2).all(|pair| pair[0] < pair[1] && pair[0].1 < pair[1].1));
    let tokens: Vec<_> = order.iter().map(|(_, token)| (token.get(), token.local())).collect();
    assert_eq!(tokens, (0..64).map(|local| (tokens[0].0, local)).collect::<Vec<_>>());
    emptied(&setup.outsider, &path).await;
}

/// Scenario 52: the resource sees every section, and refuses a smaller token.
#[test_with(on_each_release)]
async fn cohort_turn_is_bounded_under_contention(setup: Setup) {
    const PROCESSES: usize = 4;
    const TASKS: usize = 16;
    const MOST: usize = 8;
    let path = setup.existing("turns").await;
    let sections: Mutex<Vec<(usize, FencingToken)>> = Mutex::default();
    let sections = Arc::new(sections);
    let most_nodes = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for process in 0..PROCESSES {
        let zk = setup.client().await;
        let lock = CohortLock::builder(&zk, &path).max_sections(8).max_stay(LONG).build();
        for _ in 0..TASKS {
            let (zk, lock, path) = (zk.clone(), lock.clone(), path.clone());
            let (sections, most_nodes) = (sections.clone(), most_nodes.clone());
            let outsider = setup.outsider.clone();
            tasks.spawn(async move {
                let guard = lock.acquire().await.unwrap();
                let is_first = sections.lock().unwrap().is_empty();
                sections.lock().unwrap().push((process, guard.token()));
                if is_first {
                    joined(&outsider, &path, PROCESSES).await;
                }
                let (names, _) = zk.children(&path).await.unwrap();
                most_nodes.fetch_max(names.len(), Ordering::Relaxed);
                guard.check().await.unwrap();
                drop(guard);
            });
        }
    }
    within(tasks.join_all()).await;
    let sections = sections.lock().unwrap().clone();
    assert_eq!(sections.len(), PROCESSES * TASKS);
    assert!(sections.windows(2).all(|pair| pair[0].1 < pair[1].1), "{sections:?}");
    let mut turns: Vec<(usize, usize)> = Vec::new();
    for turn in sections.chunk_by(|a, b| a.1.get() == b.1.get()) {
        turns.push((turn[0].0, turn.len()));
    }
    for (index, &(process, sections)) in turns.iter().enumerate() {
        let wanted = turns[index..].iter().any(|(other, _)| *other != process);
        assert!(sections <= MOST || !wanted, "{turns:?}");
    }
    // Between two turns of a cohort every other one has had at most one.
    for process in 0..PROCESSES {
        let own: Vec<_> = (0..turns.len()).filter(|&turn| turns[turn].0 == process).collect();
        assert!(own.windows(2).all(|pair| pair[1] - pair[0] <= PROCESSES), "{turns:?}");
    }
    assert!(most_nodes.load(Ordering::Relaxed) <= PROCESSES);
    emptied(&setup.outsider, &path).await;
}

/// The first of a cohort releases the lock, a contender outside of it has it, and then the second in a turn of its
/// own.
async fn comes_between(
    first: CohortGuard,
    outsider: &mut Ticket,
    second: impl Future<Output = CohortGuard>,
) {
    let token = first.token();
    within(first.release()).await.unwrap();
    let theirs = within(outsider.wait()).await.unwrap();
    assert!(theirs.token() > token);
    within(theirs.release()).await.unwrap();
    let second = within(second).await;
    assert!(second.token() > token && second.token().local() == 0);
    within(second.release()).await.unwrap();
}

/// A contender that comes later is heard of by one notification.
#[test_with(on_each_release)]
async fn newcomer_waits_at_most_one_cohort_turn(setup: Setup) {
    let path = setup.existing("later").await;
    let (proxy, zk) = setup.proxied().await;
    let lock = CohortLock::builder(&zk, &path).max_sections(1).max_stay(LONG).build();
    let mark = proxy.mark();
    let listed = proxy.on(Match::reply(OpCode::GET_CHILDREN2)).watch();
    let first = within(lock.acquire()).await.unwrap();
    let mut second = Box::pin(lock.acquire());
    tokio::select! {
        biased;
        _ = &mut second => panic!("two holders"),
        () = waiting(&lock, 1) => {}
    }
    // In joining, and with a watch.
    within(listed.fired_times(2)).await;
    let theirs = Lock::new(&setup.outsider, &path);
    let mut ticket = within(theirs.enqueue()).await.unwrap();
    within(proxy.wait_for_since(mark, |frame| frame.kind == Kind::Notification)).await;
    // By now it has asked who it is.
    for _ in 0..3 {
        zk.sync("/").await.unwrap();
    }
    comes_between(first, &mut ticket, async { second.await.unwrap() }).await;
    let frames = proxy.frames_since(mark);
    let children = EventType::NODE_CHILDREN_CHANGED;
    let heard = frames.iter().filter(|frame| frame.event == Some(children)).count();
    assert_eq!(heard, 1, "{frames}");
}

/// One task tries, another one asks meanwhile and queues up for the cohort, and the try succeeds: nothing limited
/// that turn, which went on for as long as a task of the cohort waited.
#[test_with(on_each_release)]
async fn turn_begun_by_try_is_bounded_too(setup: Setup) {
    let path = setup.existing("tried").await;
    let (proxy, zk) = setup.proxied().await;
    let lock = CohortLock::builder(&zk, &path).max_sections(1).max_stay(LONG).build();
    let listed = proxy.on(Match::reply(OpCode::GET_CHILDREN2)).watch();
    let created = proxy.on(Match::request(OpCode::CREATE2)).watch();
    let held = proxy.on(Match::reply(OpCode::CREATE2)).hold();
    let trying = lock.clone();
    let trying = tokio::spawn(async move { trying.try_acquire().await });
    within(held.fired()).await;
    let asking = lock.clone();
    let asking = tokio::spawn(async move { asking.acquire().await });
    within(created.fired_times(2)).await;
    let mut ticket = within(Lock::new(&setup.outsider, &path).enqueue()).await.unwrap();
    held.release();
    let first = within(trying).await.unwrap().unwrap().expect("nobody was in front");
    // In the try twice, in queueing up, and to see the waiters behind.
    within(listed.fired_times(4)).await;
    zk.sync("/").await.unwrap();
    comes_between(first, &mut ticket, async { asking.await.unwrap().unwrap() }).await;
    emptied(&setup.outsider, &path).await;
}

/// As scenario 14: it is given up in the very moment in which it would be granted.
#[test_with(on_each_release)]
async fn abandoned_grant_is_handed_on(setup: Setup) {
    let path = setup.existing("moment").await;
    let lock = CohortLock::new(&setup.outsider, &path);
    let first = within(lock.acquire()).await.unwrap();
    let mut third = None;
    let asleep = async {
        waiting(&lock, 1).await;
        let lock = lock.clone();
        third = Some(tokio::spawn(async move { lock.acquire().await }));
    };
    dropped_on_waking(lock.acquire(), asleep, async {
        waiting(&lock, 2).await;
        drop(first);
    })
    .await;
    let third = within(third.unwrap()).await.unwrap().unwrap();
    assert_eq!(third.token().local(), 2);
    within(third.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release_timeless)]
async fn lingering_lock_is_reused_until_wanted(setup: Setup) {
    let path = setup.existing("linger").await;
    let (proxy, zk) = setup.proxied().await;
    let lock = CohortLock::builder(&zk, &path).linger(LONG).build();
    let listed = proxy.on(Match::reply(OpCode::GET_CHILDREN2)).watch();
    let first = within(lock.acquire()).await.unwrap();
    let token = first.token();
    drop(first);
    // In joining, and with a watch.
    within(listed.fired_times(2)).await;
    let mark = proxy.mark();
    for local in 1..4 {
        let again = within(lock.try_acquire()).await.unwrap().expect("it is at hand");
        assert_eq!((again.token().get(), again.token().local()), (token.get(), local));
        let is_over = again.cancellation_token();
        within(again.release()).await.unwrap();
        assert!(is_over.is_cancelled(), "it lingers, and no task holds it");
    }
    zk.sync("/").await.unwrap();
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::SYNC], "{frames}");
    let theirs = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    assert!(theirs.token() > token);
    within(theirs.release()).await.unwrap();
}

/// By another client that does not queue, and to which nobody here could answer.
#[test_with(on_each_release)]
async fn lingering_lock_is_given_back_when_it_is_asked_for(setup: Setup) {
    let (path, zk) = (setup.existing("asked").await, setup.client().await);
    let lock = CohortLock::builder(&zk, &path).linger(LONG).build();
    drop(within(lock.acquire()).await.unwrap());
    let queue = Queue::new(&setup.outsider, &path);
    let holder = within(queue.contenders()).await.unwrap().remove(0);
    assert!(within(queue.revoke(&holder)).await.unwrap());
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release)]
async fn lingering_lock_is_given_back_in_the_end(setup: Setup) {
    let (path, zk) = (setup.existing("lingered").await, setup.client().await);
    let lock = CohortLock::builder(&zk, &path).linger(Duration::from_millis(20)).build();
    drop(within(lock.acquire()).await.unwrap());
    emptied(&setup.outsider, &path).await;
}

/// No task can want it any more, however long it would linger.
#[test_with(on_each_release)]
async fn lock_may_linger_for_ever(setup: Setup) {
    let path = setup.existing("forever").await;
    let zk = setup.client().await;
    let lock = CohortLock::builder(&zk, &path).linger(Duration::MAX).build();
    let first = within(lock.acquire()).await.unwrap();
    let node = first.path().to_owned();
    within(first.release()).await.unwrap();
    let again = within(lock.acquire()).await.unwrap();
    assert_eq!(again.path(), node);
    drop((again, lock));
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release)]
async fn lingering_lock_ends_with_its_cohort(setup: Setup) {
    let (path, zk) = (setup.existing("deserted").await, setup.client().await);
    let lock = CohortLock::builder(&zk, &path).linger(LONG).build();
    let clone = lock.clone();
    drop(within(lock.acquire()).await.unwrap());
    drop(lock);
    let again = within(clone.try_acquire()).await.unwrap().expect("it is at hand");
    assert_eq!(again.token().local(), 1);
    drop(again);
    drop(clone);
    emptied(&setup.outsider, &path).await;
    // The present holder is the last to want it.
    let lock = CohortLock::builder(&zk, &path).linger(LONG).build();
    let last = within(lock.acquire()).await.unwrap();
    drop(lock);
    assert_eq!(last.status(), Status::Held);
    drop(last);
    emptied(&setup.outsider, &path).await;
}

/// Not one after the other on one thread but all at once: no task is forgotten, and none is granted twice.
#[test_with(on_each_release_threaded)]
async fn threads_lose_no_wakeups_or_grants(setup: Setup) {
    const TASKS: usize = 24;
    let path = setup.existing("threads").await;
    let inside = Arc::new(AtomicUsize::new(0));
    let start = Arc::new(Barrier::new(2 * TASKS));
    let mut tasks = JoinSet::new();
    for process in 0..2 {
        let zk = setup.client().await;
        let lock = CohortLock::builder(&zk, &path).max_sections(3);
        let lock = lock.linger(Duration::from_millis(process)).build();
        for number in 0..TASKS {
            let (lock, inside, start) = (lock.clone(), inside.clone(), start.clone());
            tasks.spawn(async move {
                start.wait().await;
                for round in 0..10 {
                    let guard = match (number + round) % 3 {
                        0 => lock.acquire_timeout(Duration::from_micros(300)).await.ok(),
                        _ => Some(lock.acquire().await.unwrap()),
                    };
                    let Some(guard) = guard else { continue };
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(guard);
                }
            });
        }
    }
    within(tasks.join_all()).await;
    emptied(&setup.outsider, &path).await;
}

/// A task that asks in the very moment in which another one puts the lock down has it, or is passed it: it
/// must not wait beside a lock without a holder. Nothing is asked of the server meanwhile, so that there are many
/// such moments.
#[test]
fn idle_lock_is_taken_by_a_racing_acquire() {
    const TIMES: u32 = 20_000;
    let runtime = || runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime::Runtime::new().unwrap();
    let there = server.block_on(TestServer::start()).unwrap();
    let zk = server.block_on(Client::connect(&there.connect_string())).unwrap();
    let lock = CohortLock::builder(&zk, "/lingers").linger(Duration::from_secs(3600)).build();
    thread::scope(|scope| {
        for _ in 0..2 {
            let lock = lock.clone();
            scope.spawn(move || {
                runtime().block_on(async {
                    for _ in 0..TIMES {
                        drop(within(lock.acquire()).await.unwrap());
                    }
                });
            });
        }
    });
    assert!(there.proxy().counts().requests(OpCode::CREATE2) < TIMES.into());
}
