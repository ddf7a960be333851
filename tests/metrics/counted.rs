//! Every metric is counted when what it counts happens.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use zk_client::{AclList, Client, ConnectOptions, Id, OpCode, Perms, SessionState, metrics::Kind};
use zk_locks::{Lock, Lost};
use zk_testkit::{TestServer, proxy::Match};
use zk_tests::{
    busy::too_busy_for,
    patience::{LIMIT, closed, within},
};

use super::{all, recorder::Recording};

pub(super) fn options(server: &TestServer) -> ConnectOptions {
    ConnectOptions::new(&server.connect_string()).unwrap().metrics_name("tested")
}

async fn connect(server: &TestServer) -> Client {
    options(server).connect().await.unwrap()
}

/// Polls a future once, which must not be done then.
async fn begin(future: &mut (impl Future + Unpin)) {
    poll_fn(|cx| {
        assert!(pin!(&mut *future).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// Waits until the latest values are this, or what grows is at least that.
pub(super) async fn until(recording: &Recording, name: &str, labels: &[(&str, &str)], value: f64) {
    let reached = async {
        let is_there = |now: f64| now == value || name.ends_with("_total") && now > value;
        while !is_there(recording.latest(name, labels)) {
            tokio::task::yield_now().await;
        }
    };
    let waits = tokio::time::timeout(LIMIT, reached).await;
    assert!(waits.is_ok(), "{name} {labels:?} is {}", recording.latest(name, labels));
}

async fn requests(recording: &Recording) {
    let server = TestServer::start().await.unwrap();
    let zk = connect(&server).await;
    zk.create("/a", b"").await.unwrap();
    zk.create("/a", b"").await.unwrap_err();
    zk.multi().delete("/b").await.unwrap().unwrap_err();
    // Events come faster than they are read.
    let small = options(&server).watch_items_max(1).connect().await.unwrap();
    let stream = small.watch("/a").await.unwrap();
    for _ in 0..3 {
        zk.set("/a", b"new").await.unwrap();
    }
    until(recording, "zookeeper_client_watch_events_total", &[], 3.0).await;
    drop(stream);
    // Too much to do.
    let busy = too_busy_for(server.proxy(), Match::request(OpCode::GET_DATA).once());
    within(zk.get("/a")).await.unwrap_err();
    drop(busy);
    closed(&small).await;
    closed(&zk).await;
}

async fn loads(recording: &Recording) {
    let server = TestServer::start().await.unwrap();
    let zk = options(&server).requests_max(1).connect().await.unwrap();
    let held = server.on(Match::reply(OpCode::EXISTS).once()).hold();
    let first = zk.exists("/").submit();
    let mut second = zk.exists("/").into_future();
    begin(&mut second).await;
    until(recording, "zookeeper_client_requests_waiting", &[], 1.0).await;
    until(recording, "zookeeper_client_requests_in_flight", &[], 1.0).await;
    let bytes = zk.stats().in_flight_bytes;
    assert!(bytes > 1);
    until(recording, "zookeeper_client_requests_in_flight_bytes", &[], bytes as f64).await;
    held.release();
    within(first).await.unwrap();
    within(second).await.unwrap();
    // What becomes of requests when a connection is lost.
    let lost = server.on(Match::reply(OpCode::SET_DATA).once()).cut();
    within(zk.set("/", b"")).await.unwrap_err();
    drop(lost);
    server.proxy().refuse_connections().await;
    server.drop_connections();
    until(recording, "zookeeper_client_sessions", &[("state", "disconnected")], 1.0).await;
    within(zk.get("/").fail_fast()).await.unwrap_err();
    until(recording, "zookeeper_client_connection_failures_total", &[], 1.0).await;
    server.proxy().accept_connections().await;
    within(zk.get("/")).await.unwrap();
    server.expire(zk.session().id());
    let mut session = zk.session();
    while !matches!(session.state(), SessionState::Ended(_)) {
        within(session.changed()).await;
    }
    // One that has ended is in no state, though its client is still there.
    for state in ["connecting", "connected", "read_only", "disconnected"] {
        until(recording, "zookeeper_client_sessions", &[("state", state)], 0.0).await;
    }
}

async fn locks(recording: &Recording) {
    let server = TestServer::start().await.unwrap();
    let zk = connect(&server).await;
    let lock =
        Lock::builder(&zk, "/lock").metrics_name("tested").max_hold(Duration::from_millis(1));
    let lock = lock.build();
    // Of the same session, under a name of its own.
    let other = Lock::builder(&zk, "/other").metrics_name("other").build();
    let held = within(other.acquire()).await.unwrap();
    drop(within(other.enqueue()).await.unwrap());
    within(held.release()).await.unwrap();
    let first = within(lock.acquire()).await.unwrap();
    let mut second = within(lock.enqueue()).await.unwrap();
    let third = within(lock.enqueue()).await.unwrap();
    until(recording, "zookeeper_lock_waiting", &[("lock", "tested")], 2.0).await;
    until(recording, "zookeeper_lock_overruns_total", &[], 1.0).await;
    drop(third);
    within(first.release()).await.unwrap();
    let second = within(second.wait()).await.unwrap();
    zk.delete(second.path()).await.unwrap();
    assert_eq!(within(second.lost()).await, Lost::NodeDeleted);
    drop(second);
    // A place in the queue that is given up without a connection.
    let (held, place) = (within(lock.acquire()).await.unwrap(), lock.enqueue().await.unwrap());
    server.proxy().refuse_connections().await;
    server.drop_connections();
    drop((held, place));
    until(recording, "zookeeper_client_orphaned_nodes", &[], 2.0).await;
    server.proxy().accept_connections().await;
    until(recording, "zookeeper_client_orphaned_nodes", &[], 0.0).await;
    // One that servers refuse to delete goes with the session, though the client is still there.
    let held = within(lock.acquire()).await.unwrap();
    let keep = AclList::from_iter([Id::anyone().may(Perms::READ | Perms::CREATE)]);
    zk.set_acl("/lock", &keep).await.unwrap();
    drop(held);
    until(recording, "zookeeper_client_request_rejections_total", &[("code", "NoAuth")], 1.0).await;
    assert_eq!(recording.latest("zookeeper_client_orphaned_nodes", &[]), 1.0);
    server.expire(zk.session().id());
    until(recording, "zookeeper_client_orphaned_nodes", &[], 0.0).await;
    closed(&zk).await;
}

#[tokio::test(flavor = "current_thread")]
async fn each_metric_is_described_and_counted() {
    let recording = Recording::default();
    let _installed = metrics::set_default_local_recorder(&recording);
    requests(&recording).await;
    loads(&recording).await;
    locks(&recording).await;

    let listed: BTreeMap<_, _> = all().into_iter().map(|metric| (metric.name, metric)).collect();
    assert_eq!(listed.len(), all().len(), "a name stands for one metric");
    let described = recording.described();
    let names: BTreeSet<_> = listed.keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(described.keys().cloned().collect::<BTreeSet<_>>(), names);
    // Each of their series is one that people look at.
    let whole = ["zookeeper_lock_wait_duration_seconds", "zookeeper_lock_acquisitions_total"];
    let mut moved = BTreeSet::new();
    for (name, kind, labels, values) in recording.series() {
        let metric = listed.get(&*name).unwrap_or_else(|| panic!("{name} is not on the list"));
        let told = &described[&name];
        assert_eq!((told.kind, told.unit), (kind, Some(metric.unit)), "{name}");
        assert_eq!(told.help, metric.help);
        let expected = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        assert_eq!(kind, expected, "{name}");
        assert!(labels.iter().map(|(label, _)| &**label).eq(metric.labels.iter().copied()));
        assert!(values.lowest >= 0.0, "{name} {labels:?} falls below nothing: {values:?}");
        assert!(values.highest > 0.0 || !whole.contains(&&*name), "{name} {labels:?}");
        if values.highest > 0.0 {
            moved.insert(name);
        }
    }
    let still: Vec<_> = names.difference(&moved).collect();
    assert!(still.is_empty(), "nothing is counted by {still:?}");

    // What goes up and down has come down: all sessions are over, all guards are gone.
    for (name, kind, labels, values) in recording.series() {
        let lasts = name == "zookeeper_client_session_timeout_seconds"
            || name == "zookeeper_lock_queue_length";
        assert!(kind != "gauge" || lasts || values.latest == 0.0, "{name} {labels:?}: {values:?}");
    }
    for (name, labels, value) in [
        (
            "zookeeper_client_sessions_ended_total",
            [("client", "tested"), ("reason", "expired")],
            2.0,
        ),
        (
            "zookeeper_client_sessions_ended_total",
            [("client", "tested"), ("reason", "closed")],
            2.0,
        ),
        (
            "zookeeper_client_requests_total",
            [("operation", "setData"), ("outcome", "unknown")],
            1.0,
        ),
        (
            "zookeeper_client_requests_total",
            [("operation", "getData"), ("outcome", "not_sent")],
            1.0,
        ),
        (
            "zookeeper_client_request_rejections_total",
            [("client", "tested"), ("code", "NodeExists")],
            1.0,
        ),
        // What refuses a transaction is in its results.
        ("zookeeper_client_requests_total", [("operation", "multi"), ("outcome", "rejected")], 1.0),
        (
            "zookeeper_client_request_rejections_total",
            [("client", "tested"), ("code", "ThrottledOp")],
            1.0,
        ),
        ("zookeeper_lock_acquisitions_total", [("lock", "tested"), ("outcome", "granted")], 4.0),
        ("zookeeper_lock_acquisitions_total", [("lock", "other"), ("outcome", "granted")], 1.0),
        ("zookeeper_lock_acquisitions_total", [("lock", "tested"), ("outcome", "given_up")], 2.0),
        ("zookeeper_lock_losses_total", [("lock", "tested"), ("reason", "node_deleted")], 1.0),
    ] {
        assert_eq!(recording.latest(name, &labels), value, "{name} {labels:?}");
    }
}
