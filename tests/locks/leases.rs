//! Leases: on a member that has lost its leader, and in a process that was stopped.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::Notify, time::timeout};
use zk_locks::{ConnectOptions, Guard, Lease, Lock, Lost, Status};
use zk_testkit::{
    TestServer,
    server::{Config, Member},
};

use crate::locks::support::within;

const TICK: Duration = Duration::from_millis(200);
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// An ensemble whose members take a minute to notice that they are cut off, and one that does not lead.
async fn ensemble() -> (TestServer, Member) {
    let mut config = Config::default();
    (config.members, config.tick, config.sync_limit) = (3, TICK, Duration::from_secs(60));
    let server = TestServer::start_with(config).await.unwrap();
    let leader = server.with(|ensemble, _| ensemble.leader()).unwrap();
    let follower = (0..3).map(Member).find(|member| *member != leader).unwrap();
    (server, follower)
}

/// Has a lock taken through a follower, which is then cut off; returns the guard when another client has the lock.
async fn overtaken(server: &TestServer, follower: Member, lease: Lease) -> Guard {
    let options = |member: Member| {
        let servers = server.proxy_of(member).connect_string();
        ConnectOptions::new(&servers).unwrap().session_timeout(SESSION_TIMEOUT)
    };
    let holder = options(follower).lease(lease).connect().await.unwrap();
    let guard = within(Lock::new(&holder, "/l").acquire()).await.unwrap();
    let leader = server.with(|ensemble, _| ensemble.leader()).unwrap();
    let other = options(leader).connect().await.unwrap();
    server.with(|ensemble, now| ensemble.cut_off(now, follower));
    let next = within(Lock::new(&other, "/l").acquire()).await.unwrap();
    assert!(next.token() > guard.token());
    guard
}

/// Scenario 28.
#[tokio::test]
async fn confirmed_lease_ends_before_next_grant() {
    for lease in [Lease::default(), Lease::Margin(2 * TICK)] {
        let (server, follower) = ensemble().await;
        let guard = overtaken(&server, follower, lease).await;
        assert_eq!(guard.status(), Status::Lost(Lost::LeaseRanOut));
        let stopped = timeout(Duration::ZERO, guard.scope(std::future::pending::<()>())).await;
        assert_eq!(stopped, Ok(Err(Lost::LeaseRanOut)));
    }
}

/// What has to be asked for by name: the answers of a member that is cut off count too.
#[tokio::test]
async fn connection_lease_misses_a_partition() {
    let (server, follower) = ensemble().await;
    let guard = overtaken(&server, follower, Lease::Connection).await;
    assert_eq!(guard.status(), Status::Held);
}

/// When a process goes on that was stopped, what it has waited for is there, and its timers have not fired yet.
#[tokio::test]
async fn work_stops_if_its_lease_ended_in_a_stall() {
    let server = TestServer::start().await.unwrap();
    let (start, seconds_ahead) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let ahead = seconds_ahead.clone();
    let clock = move || start.elapsed() + Duration::from_secs(ahead.load(Ordering::Relaxed));
    let options = ConnectOptions::new(&server.connect_string()).unwrap().clock(clock);
    let zk = options.connect().await.unwrap();
    let guard = within(Lock::new(&zk, "/l").acquire()).await.unwrap();
    let answer = Notify::new();
    let went_on = AtomicBool::new(false);
    let mut scope = pin!(guard.scope(async {
        answer.notified().await;
        went_on.store(true, Ordering::Relaxed);
    }));
    assert!(timeout(Duration::ZERO, scope.as_mut()).await.is_err(), "there is no answer yet");
    seconds_ahead.store(3600, Ordering::Relaxed);
    answer.notify_one();
    // Polled before the session's own task is.
    assert_eq!(scope.await, Err(Lost::LeaseRanOut));
    assert!(!went_on.load(Ordering::Relaxed));
}
