//! Sessions that end, or may have ended, under holders and waiters.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::locks::support::{
    Setup, Waiter, client_on, emptied, end_session, end_session_behind, in_virtual_time, joined,
    on_each_release, on_each_release_threaded, options_for, within,
};
use tokio::sync::{
    Notify,
    oneshot::{self, error::TryRecvError},
};
use zk_client::SessionState;
use zk_locks::{
    AcquireError, Barrier, CheckError, Client, Guard, Lock, Lost, MultiLock, SessionEnd,
    SimpleLock, Status,
};
use zk_proto::{ErrorCode, OpCode};
use zk_testkit::proxy::{Direction, Kind, Match, Proxy};
use zk_tests::{
    busy::refuse_with,
    network::{Network, pass},
    test_with,
};

/// Of sessions that are to expire. A server rounds it up by up to one of its ticks of 200 ms.
const SHORT: Duration = Duration::from_secs(10);

/// A holder behind a proxy, whose session is soon lost if the proxy falls silent.
async fn short_lived_holder(setup: &Setup, path: &str) -> (Proxy, Guard) {
    let proxy = setup.proxy().await;
    let zk = options_for(&proxy).session_timeout(SHORT).connect().await.unwrap();
    let guard = within(Lock::new(&zk, path).acquire()).await.unwrap();
    (proxy, guard)
}

/// The server has heard one more heartbeat than its answers have come through, so that the holder is ahead
/// of it by more than any hiccup of this machine.
#[test_with(on_each_release_threaded)]
async fn partitioned_work_stops_before_next_grant(setup: Setup) {
    let path = setup.existing("scope").await;
    let (proxy, guard) = short_lived_holder(&setup, &path).await;
    let mut waiter = Waiter::asleep(&setup, &path).await;
    let begun = Arc::new(Notify::new());
    let (at_work, mut stopped) = oneshot::channel::<()>();
    let work = {
        let begun = begun.clone();
        async move {
            begun.notify_one();
            std::future::pending::<()>().await;
            drop(at_work);
        }
    };
    let scope =
        tokio::spawn(async move { (guard.scope(work).await, Instant::now(), guard.token()) });
    within(begun.notified()).await;
    proxy.silence_way(Direction::ToClient);
    let unheard = proxy.mark();
    let answer = within(proxy.wait_for_since(unheard, |frame| {
        (frame.kind, frame.direction) == (Kind::Ping, Direction::ToClient)
            || frame.is_reply(OpCode::SYNC)
    }));
    answer.await;
    proxy.silence();
    assert_eq!(stopped.try_recv(), Err(TryRecvError::Empty));
    let next = waiter.outcome().await.unwrap();
    let granted = Instant::now();
    assert_eq!(stopped.try_recv(), Err(TryRecvError::Closed));
    let (outcome, lost, token) = within(scope).await.unwrap();
    assert_eq!(outcome, Err(Lost::LeaseRanOut));
    println!("stopped {:?} before the next one was granted", granted.duration_since(lost));
    assert!(lost <= granted && token < next.token());
    within(next.release()).await.unwrap();
}

/// Servers delete the nodes of a session that ends before they close its connection: no other client has deleted it.
#[test_with(on_each_release)]
async fn expiry_is_reported_as_session_end(setup: Setup) {
    let path = setup.existing("ended").await;
    for recipe in 0..3 {
        let (proxy, zk) = setup.proxied().await;
        let expired = Lost::SessionEnded(SessionEnd::Expired);
        let armed = proxy.on(Match::reply(OpCode::GET_DATA).once()).watch();
        let ended = async {
            within(armed.fired()).await;
            end_session(&setup, &proxy).await;
        };
        let forever = std::future::pending::<()>;
        match recipe {
            0 => {
                let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
                let both = async { tokio::join!(guard.scope(forever()), ended) };
                assert_eq!(within(both).await.0, Err(expired));
                assert_eq!(guard.status(), Status::Lost(expired));
                assert_eq!(within(guard.lost()).await, expired);
            }
            1 => {
                let both = MultiLock::new(&zk, [format!("{path}-a"), format!("{path}-b")]);
                let guards = within(both.acquire()).await.unwrap();
                let both = async { tokio::join!(guards.scope(forever()), ended) };
                assert_eq!(within(both).await.0, Err(expired));
            }
            _ => {
                let simple = SimpleLock::new(&zk, &format!("{path}-s"));
                let guard = within(simple.acquire()).await.unwrap();
                let both = async { tokio::join!(guard.scope(forever()), ended) };
                assert_eq!(within(both).await.0, Err(expired));
            }
        }
    }
}

#[test_with(on_each_release)]
async fn server_ended_session_fails_all_users(setup: Setup) {
    let (held, waited) = (setup.existing("held").await, setup.existing("waited").await);
    let _other = Lock::new(&setup.outsider, &waited).acquire().await.unwrap();
    let mut waiter = Waiter::asleep(&setup, &waited).await;
    let guard = within(Lock::new(&waiter.zk, &held).acquire()).await.unwrap();
    end_session_behind(&setup, &waiter.proxy).await;
    let lost = tokio::spawn(async move { (guard.lost().await, guard) });
    waiter.proxy.accept_connections().await;
    let expired = AcquireError::SessionEnded(SessionEnd::Expired);
    assert_eq!(waiter.outcome().await.map(drop), Err(expired));
    let (lost, guard) = within(lost).await.unwrap();
    let expired = Lost::SessionEnded(SessionEnd::Expired);
    assert_eq!(lost, expired);
    assert_eq!(guard.status(), Status::Lost(expired));
    assert_eq!(guard.check().await, Err(CheckError::Lost(expired)));
    let released = within(guard.release()).await;
    assert_eq!(released, Err(zk_locks::ReleaseError::SessionEnded(SessionEnd::Expired)));
    emptied(&setup.outsider, &held).await;
}

/// There is nothing left to be found, and nothing that a later attempt could take for its own.
#[test_with(on_each_release)]
async fn create_in_doubt_fails_with_its_session(setup: Setup) {
    let path = setup.existing("doubt").await;
    let (proxy, zk) = setup.proxied().await;
    let created = proxy.on(Match::reply(OpCode::CREATE2).once()).hold();
    let mut waiter = Waiter::new(proxy, zk, &path);
    within(created.fired()).await;
    end_session_behind(&setup, &waiter.proxy).await;
    waiter.proxy.reset_all();
    waiter.proxy.accept_connections().await;
    let expired = AcquireError::SessionEnded(SessionEnd::Expired);
    assert_eq!(waiter.outcome().await.map(drop), Err(expired));
    assert_eq!(waiter.proxy.counts().requests(OpCode::CREATE2), 1);
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release)]
async fn late_release_spares_the_next_holder(setup: Setup) {
    let path = setup.existing("late").await;
    let (proxy, zk) = setup.proxied().await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let requested = proxy.on(Match::request(OpCode::DELETE).once()).hold();
    let release = guard.release();
    within(requested.fired()).await;
    end_session_behind(&setup, &proxy).await;
    let next = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    proxy.reset_all();
    proxy.accept_connections().await;
    let released = within(release).await;
    assert_eq!(released, Err(zk_locks::ReleaseError::SessionEnded(SessionEnd::Expired)));
    assert_eq!(next.check().await, Ok(()));
    within(next.release()).await.unwrap();
}

/// Waits for a session's state.
async fn reached(zk: &Client, state: SessionState) {
    let mut session = zk.session();
    let reached = async {
        while session.state() != state {
            session.changed().await;
        }
    };
    within(reached).await;
}

const CONNECTED: SessionState = SessionState::Connected { read_only: false };

#[test_with(on_each_release)]
async fn disconnected_holder_is_in_doubt(setup: Setup) {
    let path = setup.existing("heals").await;
    let (proxy, zk) = setup.proxied().await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let mut waiter = Waiter::asleep(&setup, &path).await;
    let guard = Arc::new(guard);
    let lost = tokio::spawn({
        let guard = guard.clone();
        async move { guard.lost().await }
    });
    assert_eq!(guard.status(), Status::Held);
    proxy.refuse_connections().await;
    proxy.reset_all();
    reached(&zk, SessionState::Disconnected).await;
    match guard.status() {
        Status::Suspect { lease_left } => {
            assert!(lease_left > Duration::ZERO && lease_left <= zk.session().timeout());
        }
        other => panic!("{other:?}"),
    }
    proxy.accept_connections().await;
    reached(&zk, CONNECTED).await;
    assert_eq!(guard.status(), Status::Held);
    assert_eq!(guard.check().await, Ok(()));
    assert!(!lost.is_finished());
    assert!(waiter.still_waits().await);
    // It goes on hearing of what happens to its node.
    setup.outsider.delete(guard.path()).await.unwrap();
    assert_eq!(within(lost).await.unwrap(), Lost::NodeDeleted);
    within(waiter.outcome().await.unwrap().release()).await.unwrap();
}

/// By a reply, long before its lease would run out: what was confirmed before counts no more.
#[test_with(on_each_release)]
async fn session_that_a_server_disowns_holds_no_lock(setup: Setup) {
    let path = setup.existing("disowned").await;
    let (proxy, zk) = setup.proxied().await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    proxy.refuse_connections().await;
    let disowned = proxy.on(Match::reply(OpCode::SET_DATA).once());
    let disowned = disowned.rewrite(|reply| refuse_with(reply, ErrorCode::SESSION_EXPIRED));
    within(zk.set(&path, b"")).await.unwrap_err();
    assert_eq!(disowned.times_fired(), 1);
    reached(&zk, SessionState::Disconnected).await;
    assert_eq!(guard.status(), Status::Lost(Lost::LeaseRanOut));
    assert_eq!(within(guard.lost()).await, Lost::LeaseRanOut);
    // The session lives, as it turns out.
    proxy.accept_connections().await;
    reached(&zk, CONNECTED).await;
    assert_eq!(guard.status(), Status::Lost(Lost::LeaseRanOut));
    within(guard.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// A clock that can be put forward, as it is for a machine that has slept.
#[derive(Clone)]
struct JumpingClock {
    start: Instant,
    ahead_millis: Arc<AtomicU64>,
}

impl JumpingClock {
    fn new() -> Self {
        Self { start: Instant::now(), ahead_millis: Arc::default() }
    }

    fn jump(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap();
        self.ahead_millis.fetch_add(millis, Ordering::SeqCst);
    }

    fn read(&self) -> Duration {
        self.start.elapsed() + Duration::from_millis(self.ahead_millis.load(Ordering::SeqCst))
    }

    async fn connect(&self, proxy: &Proxy) -> Client {
        let clock = self.clone();
        options_for(proxy).clock(move || clock.read()).connect().await.unwrap()
    }
}

/// The session may have lived on, as here, but that was uncertain.
#[test_with(on_each_release)]
async fn lost_lock_stays_lost(setup: Setup) {
    let path = setup.existing("slept").await;
    let proxy = setup.proxy().await;
    let clock = JumpingClock::new();
    let zk = clock.connect(&proxy).await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    clock.jump(zk.session().timeout());
    assert_eq!(guard.status(), Status::Lost(Lost::LeaseRanOut));
    // Whether or not the session has given its connection up over that.
    within(async { zk.sync("/").await }).await.unwrap();
    assert!(zk.session().lease_left() > Duration::ZERO);
    assert_eq!(guard.status(), Status::Lost(Lost::LeaseRanOut));
    assert_eq!(within(guard.lost()).await, Lost::LeaseRanOut);
    assert_eq!(guard.check().await, Err(CheckError::Lost(Lost::LeaseRanOut)));
    // The node is there still, and goes now.
    joined(&setup.outsider, &path, 1).await;
    within(guard.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release)]
async fn grant_after_lease_end_is_an_error(setup: Setup) {
    let path = setup.existing("too-late").await;
    let holder = Lock::new(&setup.outsider, &path).acquire().await.unwrap();
    let proxy = setup.proxy().await;
    let clock = JumpingClock::new();
    let zk = clock.connect(&proxy).await;
    let mut waiter = Waiter::new(proxy, zk, &path);
    waiter.has_read(2).await;
    // No heartbeat may renew the lease.
    let heartbeat = waiter.proxy.on(Match::ping()).hold();
    clock.jump(waiter.zk.session().timeout());
    within(holder.release()).await.unwrap();
    let outcome = waiter.outcome().await.map(drop);
    assert_eq!(outcome, Err(AcquireError::LeaseRanOut), "{}", waiter.frames());
    heartbeat.release();
    emptied(&setup.outsider, &path).await;
}

/// What waits for answers is told of the end piece by piece: who hears of it first, and looks at a lock, sees no end of
/// the lease.
#[test_with(on_each_release)]
async fn end_of_the_session_is_not_one_of_its_lease(setup: Setup) {
    let path = setup.existing("refused").await;
    let (proxy, zk) = setup.proxied().await;
    let guard = Arc::new(within(Lock::new(&zk, &path).acquire()).await.unwrap());
    proxy.refuse_connections().await;
    proxy.reset_all();
    within(reached(&zk, SessionState::Disconnected)).await;
    let asking = (0..100).map(|_| {
        let (zk, guard) = (zk.clone(), guard.clone());
        tokio::spawn(async move { (zk.exists("/").await.is_err(), guard.status()) })
    });
    let asking: Vec<_> = asking.collect();
    end_session(&setup, &proxy).await;
    proxy.accept_connections().await;
    for asked in asking {
        let (refused, status) = within(asked).await.unwrap();
        assert!(refused);
        assert_ne!(status, Status::Lost(Lost::LeaseRanOut));
    }
    assert_eq!(within(guard.lost()).await, Lost::SessionEnded(SessionEnd::Expired));
}

/// It is set until it is removed, by whichever client.
#[test_with(in_virtual_time)]
async fn barrier_outlives_the_session_that_set_it(network: Network) {
    let [sets, waits, removes] = ["sets", "waits", "removes"].map(|it| client_on(&network, it));
    let (sets, waits, removes) = (sets.await, waits.await, removes.await);
    assert!(within(Barrier::new(&sets, "/barrier").set()).await.unwrap());
    network.expire(sets.session().id());
    within(sets.session().ended()).await;
    let barrier = Barrier::new(&waits, "/barrier");
    assert!(within(barrier.is_set()).await.unwrap());
    let waiting = tokio::spawn(async move { barrier.wait().await });
    pass(SHORT).await;
    assert!(!waiting.is_finished());
    let barrier = Barrier::new(&removes, "/barrier");
    within(barrier.remove()).await.unwrap();
    within(waiting).await.unwrap().unwrap();
    assert!(!within(barrier.is_set()).await.unwrap());
}
