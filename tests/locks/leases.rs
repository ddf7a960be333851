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
use zk_locks::{Client, ConnectOptions, DurableLock, Guard, Lease, Lock, Lost, Status};
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

/// A process that is stopped for an hour while it works under a lock. When it goes on, what it has waited for is there, and
/// its timers have not fired yet.
#[derive(Default)]
struct Stall {
    seconds_ahead: Arc<AtomicU64>,
    answer: Notify,
    went_on: AtomicBool,
}

impl Stall {
    async fn client(&self, server: &TestServer) -> Client {
        let (start, ahead) = (Instant::now(), self.seconds_ahead.clone());
        let clock = move || start.elapsed() + Duration::from_secs(ahead.load(Ordering::Relaxed));
        let options = ConnectOptions::new(&server.connect_string()).unwrap().clock(clock);
        options.connect().await.unwrap()
    }

    async fn work(&self) {
        self.answer.notified().await;
        self.went_on.store(true, Ordering::Relaxed);
    }

    /// Stops the process in the middle of its work.
    async fn ends(&self, scope: impl Future<Output = Result<(), Lost>>) {
        let mut scope = pin!(scope);
        assert!(timeout(Duration::ZERO, scope.as_mut()).await.is_err(), "there is no answer yet");
        self.seconds_ahead.store(3600, Ordering::Relaxed);
        self.answer.notify_one();
        // Polled before the session's own task is, or any other.
        assert_eq!(scope.await, Err(Lost::LeaseRanOut));
        assert!(!self.went_on.load(Ordering::Relaxed));
    }
}

#[tokio::test]
async fn work_stops_if_its_lease_ended_in_a_stall() {
    let (server, stall) = (TestServer::start().await.unwrap(), Stall::default());
    let zk = stall.client(&server).await;
    let guard = within(Lock::new(&zk, "/l").acquire()).await.unwrap();
    stall.ends(guard.scope(stall.work())).await;
}

#[tokio::test]
async fn work_under_a_durable_lock_stops_if_its_lease_ended_in_a_stall() {
    let (server, stall) = (TestServer::start().await.unwrap(), Stall::default());
    let zk = stall.client(&server).await;
    let guard = within(DurableLock::new(&zk, "/l", "me").acquire()).await.unwrap();
    stall.ends(guard.scope(stall.work())).await;
}
