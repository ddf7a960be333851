//! Leases of durable locks that are not renewed any more: when others may take the lock, and when they do.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{task::JoinHandle, time::Instant};
use zk_locks::{Client, DurableGuard, DurableLock, Status};
use zk_proto::OpCode;
use zk_tests::{
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{client_on, closed, in_virtual_time, within};

const LEASE: Duration = Duration::from_secs(12);

/// How long others wait for a renewal at least: a tenth more.
const PATIENCE: Duration = Duration::from_millis(13_200);

/// Between two looks of the first waiter.
const PAUSE: Duration = Duration::from_secs(3);

/// Enough for requests that are under way.
const A_WHILE: Duration = Duration::from_millis(200);

fn of(zk: &Client, owner: &str) -> DurableLock {
    DurableLock::new(zk, "/job", owner).lease(LEASE)
}

/// Takes the lock for an owner that dies with it; the path of its grant.
async fn left_locked(network: &Network) -> String {
    let zk = client_on(network, "died").await;
    let guard = within(of(&zk, "died").acquire()).await.unwrap();
    let grant = guard.path().to_owned();
    drop(guard);
    closed(&zk).await;
    grant
}

/// Waits for the lock; tells when it is granted.
fn waits(lock: DurableLock) -> JoinHandle<(DurableGuard, Instant)> {
    tokio::spawn(async move { (lock.acquire().await.unwrap(), Instant::now()) })
}

/// What has been asked of the server.
#[derive(Default)]
struct Seen {
    /// Of `holds`.
    last_write: Option<Instant>,
    /// Of `waits`.
    reads: u32,
}

fn watch(network: &Network) -> Arc<Mutex<Seen>> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let told = seen.clone();
    network.direct(move |name, op| {
        let mut seen = told.lock().unwrap();
        match (name, op) {
            ("holds", OpCode::SET_DATA) => seen.last_write = Some(Instant::now()),
            ("waits", OpCode::GET_CHILDREN2 | OpCode::GET_DATA | OpCode::EXISTS) => seen.reads += 1,
            _ => {}
        }
        Disposition::Answered
    });
    seen
}

/// The first waiter looks four times in each lease, with two reads each; it takes what is not renewed.
#[test_with(in_virtual_time)]
async fn unrenewed_lock_is_taken_in_time(network: Network) {
    let (zk, other) = (client_on(&network, "holds").await, client_on(&network, "waits").await);
    let seen = watch(&network);
    let guard = within(of(&zk, "ours").acquire()).await.unwrap();
    let waiting = waits(of(&other, "theirs"));
    // Between two looks, and behind the read of its own node after a second.
    pass(PAUSE * 2 / 3).await;
    let before = seen.lock().unwrap().reads;
    pass(2 * LEASE).await;
    assert_eq!(seen.lock().unwrap().reads - before, 2 * 8);
    assert_eq!(guard.status(), Status::Held);
    assert!(!waiting.is_finished());

    let before = guard.token();
    drop(guard);
    let (theirs, granted) = within(waiting).await.unwrap();
    assert!(theirs.token() > before);
    let waited = granted - seen.lock().unwrap().last_write.expect("it was renewed");
    // One pause until it is seen that it was renewed, and one until it is seen that it was not.
    let limits = PATIENCE..=PATIENCE + 2 * PAUSE + A_WHILE;
    assert!(limits.contains(&waited), "{waited:?}");
    within(theirs.release()).await.unwrap();
}

/// However long it is over: a try has not seen that.
#[test_with(in_virtual_time)]
async fn try_takes_no_lock_whose_lease_is_over(network: Network) {
    let grant = left_locked(&network).await;
    pass(3 * LEASE).await;
    let zk = client_on(&network, "ours").await;
    let lock = of(&zk, "ours");
    for _ in 0..2 {
        assert!(within(lock.try_acquire()).await.unwrap().is_none());
        pass(LEASE).await;
    }
    assert!(zk.exists(&grant).await.unwrap().is_some());
    let since = Instant::now();
    let guard = within(lock.acquire()).await.unwrap();
    let limits = PATIENCE..=PATIENCE + PAUSE + A_WHILE;
    assert!(limits.contains(&since.elapsed()), "{:?}", since.elapsed());
    assert!(zk.exists(&grant).await.unwrap().is_none());
    within(guard.release()).await.unwrap();
}

/// How many transactions of `waits` were turned away, and carried out.
#[derive(Default)]
struct Busy {
    is_over: bool,
    turned_away: u32,
    carried_out: u32,
}

/// A renewal that arrives between the last look and the transaction counts.
#[test_with(in_virtual_time)]
async fn late_renewal_keeps_the_grant(network: Network) {
    let (other, outsider) = (client_on(&network, "waits").await, client_on(&network, "b").await);
    let grant = left_locked(&network).await;
    let busy = Arc::new(Mutex::new(Busy::default()));
    let server = busy.clone();
    network.direct(move |name, op| {
        let mut busy = server.lock().unwrap();
        match (name, op, busy.is_over) {
            ("waits", OpCode::MULTI, false) => {
                busy.turned_away += 1;
                return Disposition::Throttled;
            }
            ("waits", OpCode::MULTI, true) => busy.carried_out += 1,
            _ => {}
        }
        Disposition::Answered
    });
    let waiting = waits(of(&other, "theirs"));
    pass(PATIENCE + PAUSE).await;
    assert!(busy.lock().unwrap().turned_away > 0, "it has not tried to take it");
    let renewed = Instant::now();
    let (data, _) = outsider.get(&grant).await.unwrap();
    outsider.set(&grant, &data).await.unwrap();
    busy.lock().unwrap().is_over = true;
    let arrives = async {
        while busy.lock().unwrap().carried_out == 0 {
            pass(Duration::from_millis(1)).await;
        }
    };
    within(arrives).await;
    let refused = Instant::now();
    pass(A_WHILE).await;
    assert!(!waiting.is_finished(), "it is granted in spite of the renewal");
    assert!(outsider.exists(&grant).await.unwrap().is_some());

    let (theirs, granted) = within(waiting).await.unwrap();
    assert!(granted - renewed >= PATIENCE, "{:?}", granted - renewed);
    let waited = granted - refused;
    assert!(waited <= PATIENCE + PAUSE + A_WHILE, "{waited:?}");
    assert!(outsider.exists(&grant).await.unwrap().is_none());
    within(theirs.release()).await.unwrap();
}

/// The lease has been running down without a session.
#[test_with(in_virtual_time)]
async fn carrying_on_renews_at_once(network: Network) {
    let (zk, next) = (client_on(&network, "ours").await, client_on(&network, "next").await);
    let mut guard = within(of(&zk, "ours").acquire()).await.unwrap();
    let since = Instant::now();
    network.expire(zk.session().id());
    within(zk.session().ended()).await;
    pass((LEASE * 3 / 4).saturating_sub(since.elapsed())).await;
    let left = guard.lease_left();
    assert!(!left.is_zero() && left < LEASE / 4, "{left:?}");
    guard.carry_on(&next);
    pass(A_WHILE).await;
    let left = guard.lease_left();
    assert!(left > LEASE * 8 / 10, "{left:?}");
    assert_eq!((guard.status(), within(guard.check()).await), (Status::Held, Ok(())));
    within(guard.release()).await.unwrap();
}
