//! Pauses after holders that have not released the lock themselves.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use zk_locks::{AcquireError, Client, Lock, MultiLock, SessionEnd, Status};
use zk_proto::OpCode;
use zk_testkit::{TestServer, proxy::Match};
use zk_tests::{
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{
    Setup, client_on, closed, emptied, in_virtual_time, joined, on_each_release, ops, within,
};

/// A test that has to wait for this does not get anything.
const LONG: Duration = Duration::from_secs(3600);

fn delayed(zk: &Client, path: &str, delay: Duration) -> Lock {
    Lock::builder(zk, path).lock_delay(delay).build()
}

/// A child of the lock's path would be a stranger in its queue.
#[tokio::test]
async fn root_has_no_place_for_a_record() {
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    zk.create("/app", b"").await.unwrap();
    let below = zk.chrooted("/app").unwrap();
    let lock = Lock::builder(&below, "/").lock_delay(Duration::from_secs(1)).build();
    let refused = within(lock.acquire()).await.map(drop);
    assert!(matches!(refused, Err(AcquireError::Unavailable(_))), "{refused:?}");
    assert_eq!(zk.children("/app").await.unwrap().0, [""; 0]);
}

#[test_with(on_each_release)]
async fn no_delay_after_a_clean_release(setup: Setup) {
    let path = setup.path("clean");
    let lock = delayed(&setup.outsider, &path, LONG);
    let first = within(lock.acquire()).await.unwrap();
    let mut second = within(lock.enqueue()).await.unwrap();
    let (token, released) = (first.token(), within(first.release()).await);
    released.unwrap();
    let second = within(second.wait()).await.unwrap();
    assert!(second.token() > token);
    within(second.release()).await.unwrap();
    let third = within(lock.try_acquire()).await.unwrap().expect("the lock is free");
    within(third.release()).await.unwrap();
    let fourth = within(lock.enqueue()).await.unwrap().try_wait().await.unwrap();
    within(fourth.expect("nobody is in front").release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// The number 0 does not stand for the first contender there.
#[test_with(on_each_release)]
async fn recreated_path_keeps_the_delay(setup: Setup) {
    let (path, delay) = (setup.path("recreated"), Duration::from_millis(300));
    let zk = setup.client().await;
    let plain = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let gone = Instant::now();
    within(plain.release()).await.unwrap();
    let lock = Lock::builder(&setup.outsider, &path).lock_delay(delay).rotate_at(1).build();
    let guard = within(lock.acquire()).await.unwrap();
    assert!(guard.path().ends_with("-0000000000"), "{}", guard.path());
    assert!(gone.elapsed() >= delay);
    within(guard.release()).await.unwrap();
}

/// In each way in which a lock can go without having been released.
#[test_with(on_each_release)]
async fn unclean_end_delays_the_next_grant(setup: Setup) {
    let delay = Duration::from_millis(300);
    for end in ["dropped", "deleted", "expired", "of somebody without the setting"] {
        let path = setup.path(end);
        let zk = setup.client().await;
        let (hasty, patient) = (delayed(&setup.outsider, &path, delay), delayed(&zk, &path, LONG));
        let gone = Instant::now();
        match end {
            "dropped" => drop(within(patient.acquire()).await.unwrap()),
            "deleted" => {
                let guard = within(patient.acquire()).await.unwrap();
                setup.outsider.delete(guard.path()).await.unwrap();
            }
            "expired" => {
                let _guard = within(patient.acquire()).await.unwrap();
                closed(&zk).await;
            }
            _ => {
                within(within(hasty.acquire()).await.unwrap().release()).await.unwrap();
                let plain = Lock::new(&zk, &path);
                within(within(plain.acquire()).await.unwrap().release()).await.unwrap();
            }
        }
        emptied(&setup.outsider, &path).await;
        // Its place is in front, and it has not got the lock.
        let mut place = within(hasty.enqueue()).await.unwrap();
        let early = within(place.try_wait()).await.unwrap();
        assert!(early.is_none() || gone.elapsed() >= delay, "{end}");
        let guard = match early {
            Some(guard) => guard,
            None => within(place.wait()).await.unwrap(),
        };
        assert!(gone.elapsed() >= delay, "{end}");
        // From here on it is as if nothing had been.
        within(guard.release()).await.unwrap();
        let again = delayed(&setup.outsider, &path, LONG);
        within(within(again.acquire()).await.unwrap().release()).await.unwrap();
    }
}

#[test_with(on_each_release)]
async fn lock_delay_can_be_abandoned(setup: Setup) {
    let path = setup.path("meanwhile");
    let lock = delayed(&setup.outsider, &path, LONG);
    drop(within(lock.acquire()).await.unwrap());
    let short = Duration::from_millis(50);
    assert_eq!(lock.acquire_timeout(short).await.map(drop), Err(AcquireError::TimedOut));
    let both = MultiLock::of([lock.clone()]);
    assert_eq!(both.acquire_timeout(short).await.map(drop), Err(AcquireError::TimedOut));
    emptied(&setup.outsider, &path).await;

    let short = delayed(&setup.outsider, &path, short);
    let mut place = within(short.enqueue()).await.unwrap();
    let node = place.path().unwrap().to_owned();
    assert!(within(place.try_wait()).await.unwrap().is_none());
    setup.outsider.delete(&node).await.unwrap();
    assert_eq!(within(place.wait()).await.map(drop), Err(AcquireError::NodeDeleted));
}

#[test_with(on_each_release)]
async fn delay_costs_two_reads_and_one_write(setup: Setup) {
    let path = setup.path("cost");
    let (proxy, zk) = setup.proxied().await;
    let lock = delayed(&zk, &path, LONG);
    within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
    let mark = proxy.mark();
    let guard = within(lock.acquire()).await.unwrap();
    let frames = proxy.frames_since(mark);
    let expected = [OpCode::CREATE2, OpCode::GET_CHILDREN2, OpCode::EXISTS, OpCode::GET_DATA];
    assert_eq!((ops(&frames), frames.round_trips()), (expected.to_vec(), 2), "{frames}");
    let mark = proxy.mark();
    within(guard.release()).await.unwrap();
    let frames = proxy.frames_since(mark);
    let expected = [OpCode::MULTI];
    assert_eq!((ops(&frames), frames.round_trips()), (expected.to_vec(), 1), "{frames}");
}

/// The release was carried out, or was not: the node goes, and the next one is safe in both cases.
#[test_with(on_each_release)]
async fn release_with_lost_reply_frees_the_lock(setup: Setup) {
    let path = setup.path("lost");
    for (unheard, clean) in [(true, true), (false, false)] {
        let (proxy, zk) = setup.proxied().await;
        let guard = within(delayed(&zk, &path, LONG).acquire()).await.unwrap();
        let lost = match unheard {
            true => proxy.on(Match::reply(OpCode::MULTI).once()).reset(),
            false => proxy.on(Match::request(OpCode::MULTI).once()).reset(),
        };
        within(guard.release()).await.unwrap();
        assert_eq!(lost.times_fired(), 1);
        joined(&setup.outsider, &path, 0).await;
        let next = within(delayed(&setup.outsider, &path, LONG).enqueue()).await;
        let next = within(next.unwrap().try_wait()).await.unwrap();
        assert_eq!(next.is_some(), clean);
        if let Some(next) = next {
            within(next.release()).await.unwrap();
        }
    }
}

/// Numbers only grow, but another program can create what it likes.
#[test_with(on_each_release)]
async fn node_put_ahead_during_the_delay_is_waited_for(setup: Setup) {
    let path = setup.path("overtaken");
    let zk = setup.client().await;
    drop(within(delayed(&zk, &path, LONG).acquire()).await.unwrap());
    emptied(&setup.outsider, &path).await;
    let (delay, begun) = (Duration::from_millis(300), Instant::now());
    let lock = delayed(&zk, &path, delay);
    let mut ticket = within(lock.enqueue()).await.unwrap();
    assert!(within(ticket.try_wait()).await.unwrap().is_none(), "it is delayed");
    let ahead = format!("{path}/_c_5e1f0d9c-0000-4000-8000-000000000000-lock-0000000000");
    setup.outsider.create(&ahead, b"").await.unwrap();
    // Ready to take it long before.
    let waiting = tokio::spawn(async move { ticket.wait().await });
    while begun.elapsed() < 2 * delay {
        tokio::time::sleep(delay).await;
    }
    assert!(!waiting.is_finished(), "granted behind another one");
    setup.outsider.delete(&ahead).await.unwrap();
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
}

/// As in any other wait, which a delay may outlast by hours.
#[test_with(in_virtual_time)]
async fn lost_place_ends_the_wait_for_the_delay(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    drop(delayed(&other, "/delayed", LONG).acquire().await.unwrap());
    let lock = delayed(&zk, "/delayed", LONG);
    for is_deleted in [true, false] {
        let lock = lock.clone();
        let waiting = tokio::spawn(async move { lock.acquire().await.map(drop) });
        pass(Duration::from_secs(3)).await;
        let (names, _) = other.children("/delayed").await.unwrap();
        let node = format!("/delayed/{}", names[0]);
        other.set(&node, b"written").await.unwrap();
        pass(Duration::from_secs(3)).await;
        assert!(!waiting.is_finished());
        let end = if is_deleted {
            other.delete(&node).await.unwrap();
            AcquireError::NodeDeleted
        } else {
            closed(&zk).await;
            AcquireError::SessionEnded(SessionEnd::Closed)
        };
        assert_eq!(within(waiting).await.unwrap(), Err(end));
    }
}

/// Whatever wakes it meanwhile, and also where it is a try that waits.
#[test_with(in_virtual_time)]
async fn delay_is_waited_out_to_its_end(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let delay = Duration::from_secs(200);
    let lock = delayed(&zk, "/delayed", delay);
    for tries in [true, false] {
        drop(delayed(&other, "/delayed", delay).acquire().await.unwrap());
        other.sync("/delayed").await.unwrap();
        let begun = tokio::time::Instant::now();
        let lock = lock.clone();
        let waiting = tokio::spawn(async move {
            match tries {
                true => lock.try_acquire().await,
                false => lock.acquire().await.map(Some),
            }
        });
        pass(Duration::from_secs(3)).await;
        let (names, _) = other.children("/delayed").await.unwrap();
        other.set(&format!("/delayed/{}", names[0]), b"written").await.unwrap();
        let guard = timeout(2 * delay, waiting).await.expect("it is over").unwrap().unwrap();
        let guard = guard.expect("nobody is ahead");
        let took = begun.elapsed();
        assert!(took >= delay && took < delay + Duration::from_secs(1), "{took:?}");
        guard.release().await.unwrap();
    }
}

/// A lock that was free when it was tried is looked at again, when another one has been delayed for so long.
#[test]
fn try_behind_a_delay_misses_no_lost_place() {
    for of_one_client in [true, false] {
        in_virtual_time(async |network| {
            let (zk, second) = (client_on(&network, "one").await, client_on(&network, "two").await);
            let (other, delay) = (client_on(&network, "other").await, Duration::from_secs(5));
            other.create("/a", b"").await.unwrap();
            drop(within(delayed(&other, "/b", delay).acquire()).await.unwrap());
            emptied(&other, "/b").await;
            let last = if of_one_client { &zk } else { &second };
            let both = MultiLock::of([Lock::new(&zk, "/a"), delayed(last, "/b", delay)]);
            let trying =
                tokio::spawn(async move { both.try_acquire().await.map(|it| it.map(drop)) });
            pass(Duration::from_secs(2)).await;
            let (names, _) = other.children("/a").await.unwrap();
            other.delete(&format!("/a/{}", names[0])).await.unwrap();
            let theirs = within(Lock::new(&other, "/a").try_acquire()).await.unwrap();
            let theirs = theirs.expect("it is free");
            let failed = within(trying).await.unwrap();
            assert_eq!(failed, Err(AcquireError::NodeDeleted), "{of_one_client}");
            assert_eq!(theirs.status(), Status::Held);
            assert_eq!(within(theirs.check()).await, Ok(()));
            emptied(&other, "/b").await;
        });
    }
}

/// Servers delete containers that have been empty for a while, and what was released there would be forgotten.
#[test_with(in_virtual_time)]
async fn path_with_a_delay_is_no_container(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let delayed = |zk: &Client| delayed(zk, "/app/delayed", LONG);
    for lock in [delayed(&zk), Lock::new(&zk, "/plain")] {
        within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
    }
    pass(Duration::from_secs(180)).await;
    let is_there = async |path: &str| other.exists(path).await.unwrap().is_some();
    assert!(!is_there("/plain").await, "servers delete containers here");
    assert!(is_there("/app/delayed").await);
    let again = within(delayed(&other).try_acquire()).await.unwrap().expect("it is free");
    within(again.release()).await.unwrap();
}

/// The record of a release that a server has no time for is written again, before the node is gone.
#[test_with(in_virtual_time)]
async fn throttled_release_is_a_clean_one(network: Network) {
    let (zk, other) = (client_on(&network, "a").await, client_on(&network, "b").await);
    let guard = within(delayed(&zk, "/l", LONG).acquire()).await.unwrap();
    let mut is_first = true;
    network.direct(move |_, op| match op == OpCode::MULTI && std::mem::take(&mut is_first) {
        true => Disposition::Throttled,
        false => Disposition::Answered,
    });
    within(guard.release()).await.unwrap();
    let mut ticket = within(delayed(&other, "/l", LONG).enqueue()).await.unwrap();
    let next = within(ticket.try_wait()).await.unwrap();
    within(next.expect("it was released").release()).await.unwrap();
    // And if the release is not awaited, also before the session is left to others.
    let guard = within(delayed(&zk, "/l", LONG).acquire()).await.unwrap();
    drop(guard.release());
    let left = within(zk.detach()).await;
    assert!(left.is_some());
    assert_eq!(other.children("/l").await.unwrap().0.len(), 0);
}
