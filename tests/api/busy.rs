//! Servers that have too much to do: requests that are turned away, and asked again if their client is patient.

use std::{
    future::{IntoFuture as _, poll_fn},
    pin::Pin,
    task::Poll,
    time::{Duration, Instant},
};

use zk_client::{CallOptions, Cause, CreateMode, OpCode, ReadError, SessionEnd, WriteError};
use zk_testkit::proxy::Match;
use zk_tests::{
    busy::too_busy_for,
    patience::{closed, within},
    test_with,
};

use crate::api::{Place, behind_proxy, on_each_release};

const SHORT: Duration = Duration::from_millis(60);

/// After so many times the pause is longer than two seconds.
const LONG_PAUSE: u64 = 9;

/// Requests about paths that end like this.
fn about(end: &'static str) -> Match {
    Match::requests().when(move |frame| frame.path.as_deref().is_some_and(|it| it.ends_with(end)))
}

#[test_with(on_each_release)]
async fn only_patient_clients_retry_throttled(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let patient = zk.patient();
    zk.create("/n", b"0").await.unwrap();
    let epoch = zk.session().epoch();

    let busy = too_busy_for(&proxy, Match::requests().times(2));
    assert_eq!(zk.get("/n").await.unwrap_err(), ReadError::Unavailable(Cause::Throttled));
    let plain = zk.set("/n", b"1").await.unwrap_err();
    assert_eq!(plain, WriteError::NotApplied(Cause::Throttled));
    assert_eq!(busy.turned_away(), 2);
    drop(busy);

    // Again and again, each of them.
    for times in [1, 3] {
        let busy = too_busy_for(&proxy, Match::request(OpCode::GET_DATA).times(times));
        assert_eq!(&*patient.get("/n").await.unwrap().0, b"0");
        assert_eq!(busy.turned_away(), times);
        drop(busy);
        let busy = too_busy_for(&proxy, Match::request(OpCode::SET_DATA).times(times));
        let version = patient.set("/n", b"0").await.unwrap().version;
        assert_eq!(version, if times == 1 { 1 } else { 2 }, "carried out once");
        assert_eq!(busy.turned_away(), times);
    }
    let busy = too_busy_for(&proxy, Match::requests().times(3));
    patient.create("/n/below", b"").await.unwrap();
    assert_eq!(busy.turned_away(), 3);
    let busy = too_busy_for(&proxy, Match::requests().times(1));
    patient.multi().check("/n").delete("/n/below").await.unwrap().unwrap();
    assert_eq!(busy.turned_away(), 1);
    let busy = too_busy_for(&proxy, Match::requests().times(1));
    patient.sync("/n").await.unwrap();
    assert_eq!(busy.turned_away(), 1);

    // A client in a hurry has no time for that either.
    let busy = too_busy_for(&proxy, Match::requests().once());
    let hasty = patient.get("/n").fail_fast().await.unwrap_err();
    assert_eq!(hasty, ReadError::Unavailable(Cause::Throttled));
    drop(busy);
    assert_eq!(zk.session().epoch(), epoch, "over one connection");
}

/// What was asked over a connection that was lost may have been done, whatever a busy server says when it is asked again.
#[test_with(on_each_release)]
async fn throttled_repetition_is_in_doubt(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/old", b"").await.unwrap();
    for path in ["/new", "/old"] {
        let replies = Match::replies().path(path).once();
        let lost = proxy.on(replies).reset();
        let busy = too_busy_for(&proxy, about(path).skip(1));
        let asked = match path {
            "/new" => within(zk.create(path, b"").or_exists()).await.map(drop),
            _ => within(zk.delete(path).if_exists()).await.map(drop),
        };
        let cause = Cause::Throttled;
        let in_doubt =
            matches!(&asked, Err(WriteError::InDoubt { cause: told, .. }) if *told == cause);
        assert!(in_doubt, "{path}: {asked:?}");
        assert_eq!((lost.times_fired(), busy.turned_away()), (1, 1));
        drop(busy);
        assert_eq!(zk.exists(path).await.unwrap().is_some(), path == "/new");
    }
}

/// Without a word on it, a node would be missing that the request was to make.
#[test_with(on_each_release)]
async fn throttled_parents_are_told_or_awaited(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let busy = too_busy_for(&proxy, about("/above").once());
    let told = zk.create("/above/plain", b"").parents().await.map(drop);
    assert_eq!(told, Err(WriteError::NotApplied(Cause::Throttled)));
    assert_eq!(busy.turned_away(), 1);
    let busy = too_busy_for(&proxy, about("/above").times(3));
    let create = zk.create("/above/seat", b"").mode(CreateMode::Ephemeral).protected();
    within(create.parents()).await.unwrap();
    assert_eq!(busy.turned_away(), 3);
}

/// Pauses are short at first: so many are over in well under a second.
#[test_with(on_each_release)]
async fn many_throttled_requests_finish_soon(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let patient = zk.patient();
    let busy = too_busy_for(&proxy, Match::requests().times(40));
    let since = Instant::now();
    let creates: Vec<_> =
        (0..40).map(|n| patient.create(&format!("/n{n:02}"), b"").submit()).collect();
    let mut last = None;
    for create in creates {
        let czxid = Some(create.await.unwrap().stat.czxid);
        assert!(czxid > last, "what is refused as a sequence stays one");
        last = czxid;
    }
    assert_eq!(busy.turned_away(), 40);
    // The machine may be slow; 40 pauses one behind the other would take longer.
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}

#[test_with(on_each_release)]
async fn abandoned_throttled_request_frees_permit(server: &Place) {
    let (proxy, _) = behind_proxy(server).await;
    let zk = server.options_by(&proxy.connect_string()).requests_max(2).connect().await;
    let zk = zk.unwrap();
    let patient = zk.with(CallOptions::new().timeout(SHORT).retry_throttled());
    let busy = too_busy_for(&proxy, about("late"));
    for _ in 0..3 {
        let late = [patient.create("/late", b""), patient.create("/late", b"")];
        for late in late {
            // It may have been on its way once more.
            let error = within(late).await.unwrap_err();
            let gone = Cause::DeadlineExceeded;
            let in_doubt = matches!(&error, WriteError::InDoubt { cause, .. } if *cause == gone);
            assert!(in_doubt || error == WriteError::NotApplied(gone.clone()), "{error:?}");
        }
        // Answered when it has room, behind what they have sent.
        within(zk.get("/")).await.unwrap();
    }
    assert!(busy.turned_away() >= 3);
    drop(busy);
    // Nothing of it is on its way, and there is room.
    let both = tokio::join!(within(zk.get("/")), within(zk.get("/")));
    both.0.and(both.1).unwrap();
    assert_eq!(zk.exists("/late").await.unwrap(), None);
}

#[test_with(on_each_release)]
async fn what_pauses_takes_up_room(server: &Place) {
    let (proxy, _) = behind_proxy(server).await;
    let zk = server.options_by(&proxy.connect_string()).requests_max(1).connect().await;
    let zk = zk.unwrap();
    zk.create("/n", b"").await.unwrap();
    let busy = too_busy_for(&proxy, Match::request(OpCode::GET_DATA).times(LONG_PAUSE));
    let pauses = zk.patient().get("/n").submit();
    within(busy.has_turned_away(LONG_PAUSE)).await;
    assert_eq!(zk.stats().in_flight, 1);
    let mut behind = zk.exists("/n").into_future();
    poll_fn(|cx| {
        assert!(Pin::new(&mut behind).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    within(pauses).await.unwrap();
    within(behind).await.unwrap();
}

#[test_with(on_each_release)]
async fn a_pause_outlives_its_connection(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let patient = zk.patient();
    let epoch = zk.session().epoch();
    let busy = too_busy_for(&proxy, Match::request(server.create_op()).times(LONG_PAUSE));
    let create = patient.create("/once", b"").submit();
    within(busy.has_turned_away(LONG_PAUSE)).await;
    // Its answer is behind that one's.
    within(zk.exists("/")).await.unwrap();
    proxy.cut_all();
    within(create).await.expect("it was not carried out before, and so is in no doubt");
    assert!(zk.session().epoch() > epoch);
}

#[test_with(on_each_release)]
async fn closing_gives_what_pauses_a_last_chance(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let patient = zk.patient();
    let busy = too_busy_for(&proxy, Match::request(server.create_op()).times(4));
    let lucky = patient.create("/lucky", b"").submit();
    let unlucky = patient.create("/unlucky", b"").submit();
    busy.has_turned_away(2).await;
    drop(busy);
    let unheard = too_busy_for(&proxy, about("unlucky"));
    zk.exists("/").await.unwrap();
    closed(&zk).await;
    within(lucky).await.unwrap();
    let over = WriteError::NotApplied(Cause::SessionEnded(SessionEnd::Closed));
    assert_eq!(within(unlucky).await.unwrap_err(), over);
    assert!(unheard.turned_away() >= 1);
}

/// The listing must not overtake the `sync` that makes it conclusive: both are repeated.
#[test_with(on_each_release)]
async fn throttled_search_is_repeated_as_a_whole(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/q", b"").await.unwrap();
    for op in [OpCode::SYNC, OpCode::GET_CHILDREN, OpCode::EXISTS] {
        let lost = proxy.on(Match::reply(server.create_op()).once()).reset();
        let busy = too_busy_for(&proxy, Match::request(op).once());
        let mark = proxy.mark();
        let mode = CreateMode::EphemeralSequential;
        let node = zk.create("/q/p-", b"x").mode(mode).protected().await.unwrap().owned.unwrap();
        assert_eq!((lost.times_fired(), busy.turned_away()), (1, 1), "{op:?}");
        let frames = proxy.frames_since(mark);
        let asked = |op| frames.iter().filter(|frame| frame.is_request(op)).count();
        assert_eq!((asked(OpCode::SYNC), asked(OpCode::GET_CHILDREN)), (2, 2), "{frames}");
        assert_eq!(asked(server.create_op()), 1, "{frames}");
        node.delete().await.unwrap();
    }
}

/// They are protected, whether they say so or not.
#[test_with(on_each_release)]
async fn parents_of_nodes_made_together_wait_for_busy_servers(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let hasty = zk.with(CallOptions::new().fail_fast());
    for client in [&zk, &hasty] {
        let path = if client.session().epoch() > 0 { "/parents/of/n-" } else { "" };
        let busy = too_busy_for(&proxy, about("/of").times(2));
        let create = client.create(path, b"").mode(CreateMode::EphemeralSequential).parents();
        let nodes = within(client.create_all_protected([create])).await.unwrap().unwrap();
        assert_eq!(nodes.len(), 1);
        drop((nodes, busy));
        zk.delete_recursive("/parents").await.unwrap();
    }
    let nothing = zk.create_all_protected([]).check("/gate").await;
    assert!(matches!(nothing, Err(WriteError::NotApplied(Cause::InvalidArgument(_)))));
}
