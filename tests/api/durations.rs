//! Durations of any length: none panics, and none ends what it has nothing to do with.

use std::time::Duration;

use zk_client::{
    CallOptions, Cause, Client, ConnectError, ConnectOptions, CreateMode, Histogram, Interruption,
    ReadError, Retry, SessionState, Supervise,
};
use zk_testkit::TestServer;
use zk_tests::{
    durations::{LENGTHS, taken},
    patience::LIMIT,
};

/// What of the public interface takes a duration, by type and name; every request has the same `timeout`.
const TRIED: [&str; 13] = [
    "CallOptions::timeout",
    "Client::close_within",
    "ConnectOptions::connect_deadline",
    "ConnectOptions::connect_timeout",
    "ConnectOptions::lease_margin",
    "ConnectOptions::request_timeout",
    "ConnectOptions::session_timeout",
    "Histogram::add",
    "Request<'_, T, E>::timeout",
    "Retry::pause",
    "Supervise<E>::grace",
    "Supervise<E>::pause",
    "Supervise<E>::pause_max",
];

/// What is shorter may run out, and what is longer is not waited for.
const SOON: Duration = Duration::from_secs(1);

/// What is tried elsewhere, or is data that goes to servers as it is.
const OTHERS: [&str; 3] =
    ["CreateMode::PersistentSequentialTtl", "CreateMode::PersistentTtl", "Retry::pause_max"];

/// The list of all that is public, as `tests/surface` keeps it.
const PUBLIC: &str = include_str!("../surface/zk-client.txt");

#[test]
fn every_duration_of_the_client_is_tried() {
    let public = taken(PUBLIC, "zk_client");
    let known = |name: &str| {
        // That of creates is that of requests.
        TRIED.contains(&name) || OTHERS.contains(&name) || name.ends_with("::timeout")
    };
    let untried: Vec<_> = public.iter().filter(|name| !known(name)).collect();
    assert!(untried.is_empty(), "not tried with the lengths of this file: {untried:?}");
    assert!(TRIED.iter().all(|name| public.contains(*name)), "{public:?}");
}

async fn alive(zk: &Client) {
    tokio::time::timeout(Duration::from_secs(30), zk.get("/")).await.unwrap().unwrap();
}

#[tokio::test]
async fn requests_may_wait_for_any_time() {
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    for length in LENGTHS {
        let bounded = zk.with(CallOptions::new().timeout(length));
        for result in [
            bounded.get("/").await,
            zk.get("/").timeout(length).await,
            zk.get("/").timeout(length).submit().await,
        ] {
            match result {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error, ReadError::Unavailable(Cause::DeadlineExceeded));
                    assert!(length < Duration::from_secs(1), "{length:?}");
                }
            }
        }
        let retry = Retry::new().attempts(2).pause(length).pause_max(length);
        let tried = tokio::time::timeout(
            Duration::from_millis(100),
            retry.run(|| zk.get("/none").timeout(length)),
        );
        let _ = tried.await;
        Histogram::default().add(length);
        alive(&zk).await;
    }
}

#[tokio::test]
async fn session_options_take_any_duration() {
    type With = fn(ConnectOptions, Duration) -> ConnectOptions;
    let options: [(&str, With); 5] = [
        ("session_timeout", ConnectOptions::session_timeout),
        ("connect_timeout", ConnectOptions::connect_timeout),
        ("connect_deadline", |options, length| options.connect_deadline(Some(length))),
        ("lease_margin", ConnectOptions::lease_margin),
        ("request_timeout", ConnectOptions::request_timeout),
    ];
    let server = TestServer::start().await.unwrap();
    for length in LENGTHS {
        for (name, with) in options {
            let options = ConnectOptions::new(&server.connect_string()).unwrap();
            let connect = with(options, length).connect();
            let limit = if length < SOON { Duration::from_millis(500) } else { LIMIT };
            let connected = tokio::time::timeout(limit, connect).await;
            match connected {
                Ok(Ok(zk)) => {
                    let read = zk.get("/").timeout(Duration::from_secs(30)).await;
                    assert!(read.is_ok() || length < SOON, "{name}({length:?}): {read:?}");
                    let mode = CreateMode::Ephemeral;
                    let node = zk.create("/n", b"").mode(mode).protected().await;
                    match node.map(|node| node.owned.unwrap()) {
                        Ok(node) => {
                            let deleted = node.delete().await;
                            assert!(deleted.is_ok() || length < SOON, "{length:?}: {deleted:?}");
                        }
                        Err(error) => assert!(length < SOON, "{length:?}: {error}"),
                    }
                    let closed = zk.close_within(LIMIT).await;
                    assert!(closed.is_ok() || length < SOON, "{length:?}: {closed:?}");
                }
                // What is too short to be had, or to be used, is refused or waited for.
                Ok(Err(ConnectError::TimedOut { .. })) | Err(_) => {
                    assert!(length < SOON, "{name}({length:?})");
                }
                Ok(Err(error)) => assert_eq!(name, "lease_margin", "{error}"),
            }
        }
    }
}

#[tokio::test]
async fn a_close_may_take_any_time() {
    let server = TestServer::start().await.unwrap();
    for length in LENGTHS {
        let zk = Client::connect(&server.connect_string()).await.unwrap();
        let closed = tokio::time::timeout(Duration::from_secs(30), zk.close_within(length)).await;
        // Whether a server can confirm it in no time is open.
        let closed = closed.unwrap_or_else(|_| panic!("{length:?}: it goes on"));
        assert!(closed.is_ok() || length < Duration::from_secs(1), "{length:?}: {closed:?}");
        assert!(matches!(zk.session().state(), SessionState::Ended(_)), "{length:?}");
    }
}

/// A service that fails once, and one whose session ends under it.
#[tokio::test]
async fn supervision_takes_any_duration() {
    let server = TestServer::start().await.unwrap();
    let options = || ConnectOptions::new(&server.connect_string()).unwrap();
    for length in LENGTHS {
        let supervised = || Supervise::new(options()).pause(length).pause_max(length).grace(length);
        let mut fails = [true, false].into_iter();
        let fail_once = supervised().run(|zk: Client| {
            let fails = fails.next();
            async move {
                alive(&zk).await;
                if fails == Some(true) { Err("once") } else { Ok(()) }
            }
        });
        let limit = if length > SOON { Duration::from_millis(500) } else { LIMIT };
        match tokio::time::timeout(limit, fail_once).await {
            Ok(ended) => ended.unwrap(),
            Err(_) => assert!(length > SOON, "{length:?}: it does not go on"),
        }
        let ends = supervised().stop_if(|_| true).run(async |zk: Client| {
            server.expire(zk.session().id());
            zk.session().ended().await;
            Err::<(), _>("its session has ended")
        });
        let ended = tokio::time::timeout(Duration::from_secs(30), ends).await;
        let ended = ended.unwrap_or_else(|_| panic!("{length:?}: it goes on"));
        assert!(matches!(ended, Err(Interruption::SessionEnded(_))), "{length:?}: {ended:?}");
    }
}
