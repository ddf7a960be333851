//! Paths whose numbers are large: who waits until they can be made anew, and who does not.

use std::time::Duration;

use tokio::time::Instant;
use zk_client::{AclList, Id, Perms};
use zk_locks::{AcquireError, Client, Lock, MultiLock, RwLock};
use zk_testkit::{TestServer, real::Release, server::Config};
use zk_tests::{
    network::{Network, pass},
    test_with,
};

use crate::locks::support::{client_on, in_virtual_time, joined, within};

/// Longer than anything takes that waits for no other contender.
const SOON: Duration = Duration::from_secs(1);

/// Longer than any contender waits until a path is empty.
const PATIENCE: Duration = Duration::from_secs(35);

/// Something that must not wait for other contenders.
async fn soon<F: IntoFuture>(what: &str, future: F) -> F::Output {
    let since = Instant::now();
    let output = future.await;
    assert!(since.elapsed() < SOON, "{what}: {:?}", since.elapsed());
    output
}

/// A lock on a path from whose first number on it is to be made anew.
fn lock(zk: &Client, path: &str) -> Lock {
    Lock::builder(zk, path).rotate_at(0).build()
}

fn rw_lock(zk: &Client, path: &str) -> RwLock {
    RwLock::builder(zk, path).rotate_at(0).build()
}

async fn contenders(zk: &Client, path: &str) -> usize {
    zk.children(path).await.unwrap().0.len()
}

/// Its own read node keeps the path.
#[test_with(in_virtual_time)]
async fn upgrade_does_not_wait_for_its_own_node(network: Network) {
    let zk = client_on(&network, "ours").await;
    let other = client_on(&network, "theirs").await;
    let reading = rw_lock(&zk, "/lock").read().await.unwrap();
    let writing = soon("upgrade", reading.try_upgrade()).await.unwrap();
    assert!(writing.path().ends_with("-0000000001") || writing.path().ends_with("__0000000001"));
    let reading = writing.downgrade().await.unwrap();

    // Refused at once, too: the other one waits for this read lock.
    let theirs = soon("read", rw_lock(&other, "/lock").try_read()).await.unwrap().unwrap();
    let upgrades = tokio::spawn(theirs.try_upgrade());
    pass(SOON).await;
    let refused = soon("deadlock", reading.try_upgrade()).await.unwrap_err();
    assert_eq!(refused.cause, AcquireError::WouldDeadlock);
    refused.guard.release().await.unwrap();
    drop(soon("the other", upgrades).await.unwrap().unwrap());
}

/// A node without a number has no place in any queue, and may stay for ever.
#[test_with(in_virtual_time)]
async fn stray_node_delays_no_attempt(network: Network) {
    let zk = client_on(&network, "ours").await;
    zk.create("/lock/meta", b"").parents().await.unwrap();
    let (alone, shared) = (lock(&zk, "/lock"), rw_lock(&zk, "/lock"));
    for _ in 0..3 {
        let guard = soon("try", alone.try_acquire()).await.unwrap().expect("it is free");
        guard.release().await.unwrap();
        let guard = soon("acquire", alone.acquire_timeout(SOON)).await.unwrap();
        guard.release().await.unwrap();
        let guard = soon("read", shared.try_read()).await.unwrap().expect("it is free");
        guard.release().await.unwrap();
        let several = MultiLock::of([lock(&zk, "/lock"), Lock::new(&zk, "/other")]);
        let guards = soon("several", several.try_acquire()).await.unwrap().expect("they are free");
        guards.release().await.unwrap();
    }
    // Nor one that is behind another.
    let held = lock(&zk, "/lock").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { alone.acquire().await });
    pass(SOON).await;
    assert_eq!(contenders(&zk, "/lock").await, 3);
    held.release().await.unwrap();
    drop(soon("the next", waiting).await.unwrap().unwrap());
}

#[test_with(in_virtual_time)]
async fn held_read_lock_delays_no_reader(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let held = rw_lock(&other, "/lock").read().await.unwrap();
    let shared = rw_lock(&zk, "/lock");
    drop(soon("try", shared.try_read()).await.unwrap().expect("it can be shared"));
    drop(soon("read", shared.read_timeout(SOON)).await.unwrap());
    drop(soon("one's own", rw_lock(&other, "/lock").read()).await.unwrap());
    assert!(soon("write", shared.try_write()).await.unwrap().is_none());
    drop(held);
}

/// A ticket is a place in the queue, and a place is to be had at once.
#[test_with(in_virtual_time)]
async fn ticket_is_behind_the_holder_at_once(network: Network) {
    let zk = client_on(&network, "ours").await;
    let held = lock(&zk, "/lock").acquire().await.unwrap();
    let mut ticket = soon("enqueue", lock(&zk, "/lock").enqueue()).await.unwrap();
    assert_eq!(ticket.ahead(), Some(1));
    held.release().await.unwrap();
    drop(soon("wait", ticket.wait()).await.unwrap());
}

/// What holds the lock by then can be shared, although the path does not get empty.
#[test_with(in_virtual_time)]
async fn reader_that_waits_for_a_path_joins_other_readers(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let writing = rw_lock(&other, "/lock").write().await.unwrap();
    let shared = rw_lock(&zk, "/lock");
    let reading = tokio::spawn(async move { shared.read().await });
    pass(SOON).await;
    assert_eq!(contenders(&other, "/lock").await, 1, "it has left");
    let _held = writing.downgrade().await.unwrap();
    drop(soon("read", reading).await.unwrap().unwrap());
}

/// Neither the next attempt waits for what the one before has waited for in vain, nor one of another handle.
#[test_with(in_virtual_time)]
async fn waiting_in_vain_is_remembered(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let held = lock(&other, "/lock").acquire().await.unwrap();
    // All together, however short each of them is.
    for _ in 0..4 {
        let timed_out = lock(&zk, "/lock").acquire_timeout(PATIENCE / 4).await.unwrap_err();
        assert_eq!(timed_out, AcquireError::TimedOut);
    }
    let waiting = tokio::spawn({
        let lock = lock(&zk, "/lock");
        async move { lock.acquire().await }
    });
    pass(SOON).await;
    assert_eq!(contenders(&other, "/lock").await, 2, "it is in the queue");
    held.release().await.unwrap();
    soon("the next", waiting).await.unwrap().unwrap().release().await.unwrap();

    // A path that is empty is made anew all the same.
    let anew = soon("anew", lock(&zk, "/lock").try_acquire()).await.unwrap().expect("it is free");
    assert!(anew.path().ends_with("-0000000000"), "{}", anew.path());
    drop(anew);

    // It is tried again later.
    let held = lock(&other, "/lock").acquire().await.unwrap();
    pass(20 * PATIENCE).await;
    let again = lock(&zk, "/lock");
    let waiting = tokio::spawn(async move { again.acquire().await });
    pass(SOON).await;
    assert_eq!(contenders(&other, "/lock").await, 1, "it waits for the path");
    held.release().await.unwrap();
    let anew = soon("the last", waiting).await.unwrap().unwrap();
    assert!(anew.path().ends_with("-0000000000"), "{}", anew.path());
}

/// It is used as it is. That it is refused is remembered for a while.
#[test_with(in_virtual_time)]
async fn path_that_may_not_be_deleted_is_used_as_it_is(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let kept = Perms::READ | Perms::WRITE | Perms::CREATE | Perms::ADMIN;
    zk.create("/kept", b"").acl(&AclList::from_iter([Id::anyone().may(kept)])).await.unwrap();
    let guard = soon("first", lock(&zk, "/kept/lock").acquire()).await.unwrap();
    guard.release().await.unwrap();
    let before = zk.exists("/kept/lock").await.unwrap().unwrap().cversion;
    for _ in 0..2 {
        let guard = soon("try", lock(&zk, "/kept/lock").try_acquire()).await.unwrap();
        guard.expect("it is free").release().await.unwrap();
        let several = MultiLock::of([lock(&zk, "/kept/lock"), Lock::new(&zk, "/other")]);
        soon("several", several.acquire()).await.unwrap().release().await.unwrap();
    }
    let after = zk.exists("/kept/lock").await.unwrap().unwrap().cversion;
    assert_eq!(after - before, 4 * 2, "a create and a delete for each");
    // Nor does one behind another wait for the path.
    let held = lock(&other, "/kept/lock").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { lock(&zk, "/kept/lock").acquire().await });
    pass(SOON).await;
    assert_eq!(contenders(&other, "/kept/lock").await, 2);
    held.release().await.unwrap();
    drop(soon("the next", waiting).await.unwrap().unwrap());
}

/// Without a number there is no place in the queue, whatever can be shared.
#[tokio::test]
async fn reader_waits_where_numbers_have_ended() {
    for release in Release::ALL {
        let mut config = Config::default();
        config.release = release;
        let server = TestServer::start_with(config).await.unwrap();
        let zk = Client::connect(&server.connect_string()).await.unwrap();
        let held = within(RwLock::new(&zk, "/ended").read()).await.unwrap();
        server.with(|ensemble, _| assert!(ensemble.set_sequence("/ended", i32::MAX - 1000)));
        let before = zk.exists("/ended").await.unwrap().unwrap().cversion;
        let refused = within(RwLock::new(&zk, "/ended").try_read()).await.map(drop);
        assert!(matches!(refused, Err(AcquireError::SequenceExhausted { .. })), "{refused:?}");
        joined(&zk, "/ended", 1).await;
        let shared = RwLock::new(&zk, "/ended");
        let reading = tokio::spawn(async move { shared.read().await });
        let been = async {
            while zk.exists("/ended").await.unwrap().unwrap().cversion < before + 4 {
                tokio::task::yield_now().await;
            }
        };
        within(been).await;
        assert!(!reading.is_finished());
        within(held.release()).await.unwrap();
        let anew = within(reading).await.unwrap().unwrap();
        assert!(anew.path().ends_with("__0000000000"), "{release}: {}", anew.path());
        within(anew.release()).await.unwrap();
    }
}

/// Both have left the old queue, and one of them has made the path anew and has the lock before the other one looks.
#[test_with(in_virtual_time)]
async fn path_made_anew_by_another_is_joined(network: Network) {
    let (quick, slow) = ("quick", "slow");
    let zk = client_on(&network, "ours").await;
    for data in ["", "kept"] {
        let path = format!("/lock{data}");
        zk.create(&path, data.as_bytes()).await.unwrap();
        let lock = |zk: &Client| Lock::builder(zk, &path).rotate_at(1).build();
        let held = lock(&zk).acquire().await.unwrap();
        let [first, second] =
            [lock(&client_on(&network, quick).await), lock(&client_on(&network, slow).await)]
                .map(|lock| tokio::spawn(async move { lock.acquire().await }));
        pass(SOON).await;
        assert_eq!(contenders(&zk, &path).await, 1, "they wait for the path");
        network.hold(slow);
        held.release().await.unwrap();
        let held = soon("the quick one", first).await.unwrap().unwrap();
        network.heal();
        pass(SOON).await;
        assert_eq!(contenders(&zk, &path).await, 2, "they wait for the lock");
        held.release().await.unwrap();
        soon("the slow one", second).await.unwrap().unwrap().release().await.unwrap();
    }
}

/// There is no room for a listing beside the create: the one behind the delete decides.
#[test_with(in_virtual_time)]
async fn attempt_without_a_listing_waits_for_the_path(network: Network) {
    let other = client_on(&network, "theirs").await;
    let zk = network.options("ours", "", 7).requests_max(1).connect().await.unwrap();
    let lock = |zk: &Client| Lock::builder(zk, "/lock").rotate_at(1).build();
    let held = lock(&other).acquire().await.unwrap();
    let waiting = lock(&zk);
    let waiting = tokio::spawn(async move { waiting.acquire().await });
    pass(SOON).await;
    assert_eq!(contenders(&other, "/lock").await, 1, "it has left");
    held.release().await.unwrap();
    let anew = soon("the path", waiting).await.unwrap().unwrap();
    assert!(anew.path().ends_with("0000000000"), "{}", anew.path());
    anew.release().await.unwrap();
}

/// Whether an attempt behind a holder is in the queue at once, instead of waiting for the path.
async fn joins_at_once(zk: &Client, other: &Client) -> bool {
    let lock = lock(zk, "/lock");
    let waiting = tokio::spawn(async move { lock.acquire_timeout(2 * SOON).await });
    pass(SOON).await;
    let count = contenders(other, "/lock").await;
    assert_eq!(within(waiting).await.unwrap().map(drop), Err(AcquireError::TimedOut));
    joined(other, "/lock", 1).await;
    count == 2
}

/// From the beginning of the first wait on, and the path has not been made anew since.
#[test_with(in_virtual_time)]
async fn path_is_waited_for_once_in_ten_minutes(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let _held = within(lock(&other, "/lock").acquire()).await.unwrap();
    let begun = Instant::now();
    let in_vain = within(lock(&zk, "/lock").acquire_timeout(PATIENCE)).await.unwrap_err();
    assert_eq!(in_vain, AcquireError::TimedOut);
    for (seconds, joins) in [(300, true), (590, true), (610, false)] {
        pass(Duration::from_secs(seconds) - begun.elapsed()).await;
        assert_eq!(joins_at_once(&zk, &other).await, joins, "after {seconds} s");
    }
}
