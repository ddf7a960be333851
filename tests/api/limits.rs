//! Limits in time and in number, and what they do to the order of requests.

use std::{
    future::{IntoFuture as _, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use zk_client::{
    CallOptions, Cause, Client, CreateMode, OpCode, ReadError, Retry, SessionState, WriteError,
};
use zk_testkit::proxy::Match;
use zk_tests::{
    busy::too_busy_for,
    patience::{closed, within},
    test_with,
};

use crate::api::{Place, behind_proxy, client, on_each_release};

const SHORT: Duration = Duration::from_millis(60);
const LONG: Duration = Duration::from_secs(20);

#[test_with(on_each_release)]
async fn timed_out_request_does_not_affect_others(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/a", b"").await.unwrap();
    let epoch = zk.session().epoch();
    proxy.silence();
    let read = zk.get("/a").timeout(SHORT).submit();
    let write = zk.set("/a", b"1").timeout(SHORT).submit();
    let patient = zk.set("/a", b"2").submit();
    let hasty = zk.with(CallOptions::new().timeout(SHORT));
    let late = hasty.get("/a").submit();
    let gone = Cause::DeadlineExceeded;
    assert_eq!(read.await.unwrap_err(), ReadError::Unavailable(gone.clone()));
    let WriteError::InDoubt { cause, .. } = write.await.unwrap_err() else { panic!("it was sent") };
    assert_eq!(cause, gone);
    assert_eq!(late.await.unwrap_err(), ReadError::Unavailable(gone));
    proxy.resume();
    assert_eq!(patient.await.unwrap().version, 2, "in its place, behind the other");
    assert_eq!(&*zk.get("/a").await.unwrap().0, b"2");
    assert_eq!(zk.session().epoch(), epoch, "the connection has stayed");
}

/// What waits for room stays behind what was held back before it.
#[test_with(on_each_release)]
async fn cork_keeps_the_order_without_room(server: &Place) {
    let (proxy, _) = behind_proxy(server).await;
    let options = server.options_by(&proxy.connect_string());
    let zk = options.requests_max(2).connect().await.unwrap();
    zk.create("/a", b"").await.unwrap();
    let other = zk.get("/a").submit();
    let cork = zk.cork();
    let first = cork.set("/a", b"1").submit();
    let mut second = cork.set("/a", b"2").into_future();
    poll_fn(|cx| {
        assert!(Pin::new(&mut second).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    // Now there is room for the second one.
    other.await.unwrap();
    let there = zk.get("/a").into_future();
    drop(cork);
    assert_eq!(within(first).await.unwrap().version, 1);
    assert_eq!(within(second).await.unwrap().version, 2);
    within(there).await.unwrap();
}

/// However full it is, and whatever was held back: no request waits for ever.
#[test_with(on_each_release)]
async fn requests_time_out_while_awaiting_permits(server: &Place) {
    let (proxy, _) = behind_proxy(server).await;
    let options = server.options_by(&proxy.connect_string());
    let zk = options.requests_max(2).connect().await.unwrap();
    proxy.silence();
    let reads = [zk.get("/").timeout(SHORT).submit(), zk.get("/").timeout(SHORT).submit()];
    let cork = zk.cork();
    let mut queued = cork.get("/").into_future();
    poll_fn(|cx| {
        assert!(Pin::new(&mut queued).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    drop(cork);
    for read in reads {
        let gone = ReadError::Unavailable(Cause::DeadlineExceeded);
        assert_eq!(read.await.unwrap_err(), gone);
    }
    let full = ReadError::Unavailable(Cause::QueueFull);
    assert_eq!(zk.get("/").submit().await.unwrap_err(), full, "they keep their places");
    proxy.resume();
    queued.await.unwrap();
}

/// Without a connection, and knowing it.
pub(super) async fn disconnected(zk: &Client) {
    let mut session = zk.session();
    while session.state() != SessionState::Disconnected {
        session.changed().await;
    }
}

#[test_with(on_each_release)]
async fn what_was_not_sent_in_time_never_is(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    proxy.refuse_connections().await;
    proxy.cut_all();
    disconnected(&zk).await;
    let late = zk.create("/late", b"").timeout(SHORT).submit();
    let patient = zk.create("/patient", b"").submit();
    let gone = WriteError::NotApplied(Cause::DeadlineExceeded);
    assert_eq!(late.await.unwrap_err(), gone);
    // Held back, and too long.
    let cork = zk.cork();
    let held = cork.create("/held", b"").timeout(SHORT).submit();
    assert_eq!(held.await.unwrap_err(), gone);
    drop(cork);

    let fast = zk.create("/fast", b"").fail_fast().await.unwrap_err();
    assert_eq!(fast, WriteError::NotApplied(Cause::NotConnected));
    let retried = Retry::new().attempts(2).pause(Duration::from_millis(1));
    let mut attempts = 0;
    let attempt = || {
        attempts += 1;
        zk.get("/").fail_fast()
    };
    let fast = retried.run(attempt).await.unwrap_err();
    assert_eq!((fast, attempts), (ReadError::Unavailable(Cause::NotConnected), 2));

    proxy.accept_connections().await;
    patient.await.unwrap();
    zk.sync("/").await.unwrap();
    for path in ["/late", "/held", "/fast"] {
        assert_eq!(zk.exists(path).await.unwrap(), None, "{path}");
    }
}

/// In whichever order a client is told of both.
#[test_with(on_each_release)]
async fn fail_fast_precedes_retry_throttled(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let hasty = [
        CallOptions::new().fail_fast().retry_throttled(),
        CallOptions::new().retry_throttled().fail_fast(),
    ]
    .map(|options| zk.with(options));
    for hasty in &hasty {
        let mark = proxy.mark();
        let busy = too_busy_for(&proxy, Match::request(OpCode::EXISTS).once());
        let told = within(hasty.exists("/")).await;
        assert_eq!(told, Err(ReadError::Unavailable(Cause::Throttled)));
        assert_eq!(busy.turned_away(), 1);
        assert_eq!(proxy.frames_since(mark).counts().requests(OpCode::EXISTS), 1);
    }
    proxy.refuse_connections().await;
    proxy.cut_all();
    disconnected(&zk).await;
    for hasty in &hasty {
        let told = within(hasty.exists("/")).await;
        assert_eq!(told, Err(ReadError::Unavailable(Cause::NotConnected)));
    }
    proxy.accept_connections().await;
}

#[test_with(on_each_release)]
async fn awaited_requests_get_permits_in_order(server: &Place) {
    let (proxy, _) = behind_proxy(server).await;
    let options = || server.options_by(&proxy.connect_string());
    for limited in [options().requests_max(2), options().request_bytes_max(120)] {
        let zk = limited.connect().await.unwrap();
        zk.create("/n", b"").or_exists().await.unwrap();
        proxy.silence();
        let data = [b'x'; 40];
        let first = zk.set("/n", &data).submit();
        let second = zk.get("/n").submit();
        let mut third = zk.set("/n", b"third").into_future();
        let mut fourth = zk.get("/n").into_future();
        poll_fn(|cx| {
            assert!(Pin::new(&mut third).poll(cx).is_pending());
            assert!(Pin::new(&mut fourth).poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        let full = WriteError::NotApplied(Cause::QueueFull);
        assert_eq!(zk.set("/n", &data).submit().await.unwrap_err(), full);
        assert_eq!(zk.set("/n", &data).fail_fast().await.unwrap_err(), full);
        let late = zk.set("/n", b"late").timeout(SHORT).await.unwrap_err();
        assert_eq!(late, WriteError::NotApplied(Cause::DeadlineExceeded));
        proxy.resume();
        first.await.unwrap();
        second.await.unwrap();
        let (third, fourth) = tokio::join!(third, fourth);
        third.unwrap();
        assert_eq!(&*fourth.unwrap().0, b"third", "first come, first served");
        zk.delete("/n").await.unwrap();
    }
}

/// Patient clients have no answer for a full queue; they keep their order in it.
#[test_with(on_each_release)]
async fn patient_submits_get_permits_in_order(server: &Place) {
    let (proxy, _) = behind_proxy(server).await;
    let options = || server.options_by(&proxy.connect_string());
    for limited in [options().requests_max(1), options().request_bytes_max(50)] {
        let zk = limited.connect().await.unwrap();
        zk.create("/n", b"").or_exists().await.unwrap();
        proxy.silence();
        let patient = zk.patient();
        let data: Vec<_> = (0..20).map(|n| format!("{n:030}")).collect();
        let sets: Vec<_> =
            data.iter().map(|data| patient.set("/n", data.as_bytes()).submit()).collect();
        let last = patient.get("/n").submit();
        let mut most = 0;
        for _ in 0..1000 {
            tokio::task::yield_now().await;
            most = most.max(zk.stats().in_flight);
        }
        assert_eq!(most, 1, "under way");
        proxy.resume();
        let mut versions = Vec::new();
        for set in sets {
            versions.push(set.await.unwrap().version);
        }
        assert!(versions.is_sorted_by(|one, next| one + 1 == *next), "{versions:?}");
        assert_eq!(last.await.unwrap().0, data[19]);
        zk.delete("/n").await.unwrap();
    }
}

/// Protected creates are no way round the limits.
#[test_with(on_each_release)]
async fn protected_creates_wait_for_room_in_turn(server: &Place) {
    let (proxy, _) = behind_proxy(server).await;
    let options = || server.options_by(&proxy.connect_string());
    for limited in [options().requests_max(10), options().request_bytes_max(300)] {
        let zk = limited.connect().await.unwrap();
        zk.create("/q", b"").or_exists().await.unwrap();
        let mode = CreateMode::EphemeralSequential;
        proxy.silence();
        let create = |n: usize| {
            let name = format!("/q/p{n:03}-");
            zk.create(&name, b"12345678").mode(mode).protected_by_its_name().submit()
        };
        let mut nodes: Vec<_> = (0..100).map(create).collect();
        // A few whose callers are gone: they create no node, or none that stays.
        nodes.truncate(90);
        let last = zk.get("/q").into_future();
        let mut most = 0;
        for _ in 0..1000 {
            tokio::task::yield_now().await;
            most = most.max(zk.stats().in_flight);
        }
        assert!((1..=10).contains(&most), "{most} under way");
        proxy.resume();
        let mut owned = Vec::new();
        for node in nodes {
            owned.push(node.await.unwrap().owned.unwrap());
            assert!(zk.stats().in_flight <= 21, "besides deletes of what nobody waits for");
        }
        last.await.unwrap();
        let mut names = zk.children("/q").await.unwrap().0;
        names.retain(|name| name.as_str() < "p090");
        assert_eq!(names.len(), 90);
        for node in owned {
            node.delete().await.unwrap();
        }
        closed(&zk).await;
    }
}

#[test_with(on_each_release)]
async fn permit_is_returned_whatever_the_outcome(server: &Place) {
    let (proxy, _) = behind_proxy(server).await;
    let options = server.options_by(&proxy.connect_string());
    let zk = options.requests_max(1).connect().await.unwrap();
    let gone = Cause::DeadlineExceeded;
    // Each of these takes all the room there is; a submitted one does not wait for it.
    for _ in 0..2 {
        zk.get("/").submit().await.expect("the one before was answered");
        zk.get("/none").submit().await.expect_err("there is no such node");

        let cork = zk.cork();
        let held = cork.get("/").timeout(SHORT).submit().await;
        assert_eq!(held.unwrap_err(), ReadError::Unavailable(gone.clone()), "held back");
        drop(cork);
        zk.get("/").timeout(LONG).await.expect("nobody took the one before");

        proxy.silence();
        let sent = zk.get("/").timeout(SHORT).submit().await;
        assert_eq!(sent.unwrap_err(), ReadError::Unavailable(gone.clone()), "not answered");
        proxy.resume();
        zk.get("/").timeout(LONG).await.expect("the one before has been answered after all");

        drop(zk.get("/").submit());
        zk.get("/").timeout(LONG).await.expect("nobody waits for the one before");

        proxy.silence();
        let lost = zk.create("/lost", b"").submit();
        proxy.refuse_connections().await;
        proxy.cut_all();
        let WriteError::InDoubt { .. } = lost.await.unwrap_err() else { panic!("it was sent") };
        let unsent = zk.get("/").timeout(SHORT).submit().await;
        assert_eq!(unsent.unwrap_err(), ReadError::Unavailable(gone.clone()), "not sent");
        let fast = zk.get("/").fail_fast().submit().await.unwrap_err();
        assert_eq!(fast, ReadError::Unavailable(Cause::NotConnected));
        proxy.resume();
        proxy.accept_connections().await;
    }
}

/// What was made of a cork is a client like any other when the cork is gone.
#[test_with(on_each_release)]
async fn clone_of_a_cork_outlives_it(server: &Place) {
    let zk = client(server).await;
    let cork = zk.cork();
    let clones = [Client::clone(&cork), cork.patient()];
    let held = clones.each_ref().map(|clone| clone.exists("/").submit());
    drop(cork);
    for (clone, held) in clones.iter().zip(held) {
        within(held).await.unwrap();
        within(clone.exists("/")).await.unwrap();
    }
}
