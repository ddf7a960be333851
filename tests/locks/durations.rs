//! Durations of any length: none panics, and none delays another client.

use std::{future::Future, pin::Pin, time::Duration};

use tokio::sync::oneshot;
use zk_locks::{
    AcquireError, Barrier, Client, CohortLock, ConnectOptions, DoubleBarrier, DurableLock,
    Election, Lock, MultiLock, RwLock, Semaphore, SimpleLock, blocking::BlockingSession,
};
use zk_testkit::TestServer;
use zk_tests::durations::{LENGTHS, taken};

use crate::locks::support::{in_thread, within};

/// Of which it is open whether anything is done in time.
const SHORT: Duration = Duration::from_secs(1);

/// What a lease lasts at least.
const SHORTEST: Duration = Duration::from_millis(1);

/// No different from without end.
const CENTURIES: Duration = Duration::from_secs(500 * 365 * 86_400);

type Later = Pin<Box<dyn Future<Output = Result<(), AcquireError>> + Send>>;

/// Something that takes a duration, by its name, and what is done with it at a path of its own.
type Row = (&'static str, fn(Client, String, Duration) -> Later);

/// Asks for something that is free, and gives it back.
macro_rules! asks {
    ($(|$client:ident, $path:ident, $time:ident| $name:literal: $ask:expr, $release:ident;)*) => {
        [$(($name, |$client, $path, $time| {
            Box::pin(async move {
                let held = $ask.await?;
                held.$release().await.map_err(|error| panic!("{}: {error}", $name))
            })
        })),*]
    };
}

const WAITS: [Row; 10] = asks! {
    |zk, path, time| "Lock::acquire_timeout": Lock::new(&zk, &path).acquire_timeout(time), release;
    |zk, path, time| "RwLock::read_timeout": RwLock::new(&zk, &path).read_timeout(time), release;
    |zk, path, time| "RwLock::write_timeout": RwLock::new(&zk, &path).write_timeout(time), release;
    |zk, path, time| "MultiLock::acquire_timeout": MultiLock::new(&zk, [path]).acquire_timeout(time), release;
    |zk, path, time| "Semaphore::acquire_timeout": Semaphore::new(&zk, &path, 2).acquire_timeout(time), release;
    |zk, path, time| "Semaphore::acquire_many_timeout":
        Semaphore::new(&zk, &path, 2).acquire_many_timeout(2, time), release;
    |zk, path, time| "SimpleLock::acquire_timeout":
        SimpleLock::new(&zk, &format!("{path}/node")).acquire_timeout(time), release;
    |zk, path, time| "CohortLock::acquire_timeout": CohortLock::new(&zk, &path).acquire_timeout(time), release;
    |zk, path, time| "Election::campaign_timeout": Election::new(&zk, &path).campaign_timeout(b"", time), resign;
    |zk, path, time| "DurableLock::acquire_timeout": DurableLock::new(&zk, &path, "who").acquire_timeout(time), release;
};

/// Has a lock while another client waits for it, if there is time for that.
macro_rules! handed_over {
    ($lock:expr) => {
        Box::pin(async move {
            let lock = $lock;
            let guard = lock.acquire().await?;
            let next = tokio::spawn(async move { lock.acquire().await });
            tokio::task::yield_now().await;
            // If it is not lost, it is given back.
            let _ = guard.release().await;
            let _ = next.await.expect("no panic")?.release().await;
            Ok(())
        })
    };
}

const SETTINGS: [Row; 7] = [
    ("Builder<R>::max_hold", |zk, path, time| {
        handed_over!(Lock::builder(&zk, &path).max_hold(time).build())
    }),
    ("Builder<R>::release_after", |zk, path, time| {
        handed_over!(Lock::builder(&zk, &path).release_after(time).build())
    }),
    ("Builder<R>::recheck", |zk, path, time| {
        handed_over!(Lock::builder(&zk, &path).recheck(Some(time)).build())
    }),
    ("Builder<zk_locks::Lock>::lock_delay", |zk, path, time| {
        handed_over!(Lock::builder(&zk, &path).lock_delay(time).build())
    }),
    ("Builder<zk_locks::CohortLock>::max_stay", |zk, path, time| {
        handed_over!(CohortLock::builder(&zk, &path).max_stay(time).build())
    }),
    ("Builder<zk_locks::CohortLock>::linger", |zk, path, time| {
        handed_over!(CohortLock::builder(&zk, &path).linger(time).build())
    }),
    ("DurableLock::lease", |zk, path, time| {
        Box::pin(async move {
            let lock = DurableLock::new(&zk, &path, "who").lease(time);
            let guard = lock.acquire().await?;
            let (left, status) = (guard.lease_left(), guard.status());
            let most = if time < CENTURIES { time.max(SHORTEST) } else { Duration::MAX };
            assert!(left <= most, "{left:?} of {time:?}, {status:?}");
            let _ = guard.release().await;
            // Whatever has become of it: its owner has it once more.
            let _ = lock.acquire().await?.release().await;
            Ok(())
        })
    }),
];

/// Those that do not acquire anything.
const MEETING: [&str; 3] =
    ["Barrier::wait_timeout", "DoubleBarrier::enter_timeout", "Participation::leave_timeout"];

/// What threads without a runtime have besides; what is named like the other is the same.
const BLOCKING: [&str; 2] = [
    "blocking::Blocking<G>::lost_within",
    "blocking::Blocking<zk_locks::LeaderLatch>::leads_within",
];

/// The durations that they are given: any length is data.
const TOLD: [&str; 2] = ["LockObserver::given_up", "Metrics::given_up"];

#[test]
fn every_duration_of_the_locks_is_tried() {
    let public = taken(include_str!("../surface/zk-locks.txt"), "zk_locks");
    let rows = WAITS.iter().chain(&SETTINGS).map(|(name, _)| *name);
    let tried: Vec<_> = rows.chain(MEETING).chain(BLOCKING).collect();
    let known = |name: &str| {
        // The wrappers are made of one macro.
        let wraps = name.starts_with("blocking::") && name.ends_with("_timeout");
        tried.contains(&name) || TOLD.contains(&name) || wraps
    };
    let untried: Vec<_> = public.iter().filter(|name| !known(name)).collect();
    assert!(untried.is_empty(), "not tried with the lengths of this file: {untried:?}");
    assert!(tried.iter().all(|name| public.contains(*name)), "{public:?}");
}

fn check(name: &str, length: Duration, result: Result<(), AcquireError>) {
    match result {
        Ok(()) => {}
        Err(AcquireError::TimedOut) => assert!(length < SHORT, "{name}({length:?})"),
        Err(error) => panic!("{name}({length:?}): {error:?}"),
    }
}

#[tokio::test]
async fn recipes_take_any_duration() {
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    let mut number = 0;
    for length in LENGTHS {
        for (name, row) in WAITS.iter().chain(&SETTINGS) {
            number += 1;
            let result = within(row(zk.clone(), format!("/at/{number}"), length)).await;
            check(name, length, result);
        }
    }
}

#[tokio::test]
async fn barriers_wait_for_any_duration() {
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    for (number, length) in LENGTHS.into_iter().enumerate() {
        let barrier = Barrier::new(&zk, &format!("/barrier-{number}"));
        check(MEETING[0], length, within(barrier.wait_timeout(length)).await);
        let double = DoubleBarrier::new(&zk, &format!("/double-{number}"), 1);
        let left = match within(double.enter_timeout(length)).await {
            Ok(participation) => within(participation.leave_timeout(length)).await,
            Err(error) => Err(error),
        };
        check(MEETING[1], length, left);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_wait_for_any_time() {
    let server = TestServer::start().await.unwrap();
    let options = ConnectOptions::new(&server.connect_string()).unwrap();
    for (number, length) in LENGTHS.into_iter().enumerate() {
        let options = options.clone();
        let (holds, held) = oneshot::channel();
        let waits = in_thread(move || {
            let session = BlockingSession::connect(options).unwrap();
            let election = Election::new(session.client(), &format!("/latch-{number}"));
            let latch = session.adopt(election).latch(b"who");
            assert!(latch.leads_within(length) || length < SHORT, "{length:?}");
            let guard = session.lock(&format!("/lock-{number}")).acquire().unwrap();
            holds.send(session.client().session().id()).unwrap();
            guard.lost_within(length)
        });
        let session = within(held).await.unwrap();
        if length >= SHORT {
            server.expire(session);
        }
        let lost = within(waits).await.unwrap();
        assert_eq!(lost.is_some(), length >= SHORT, "{length:?}: {lost:?}");
    }
}
