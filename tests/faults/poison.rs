//! Requests that cost the connection: identified, named, and harmless to others. And those that are only unlucky, which
//! are not blamed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::timeout};
use zk_client::{
    Cause, Client, ConnectOptions, Costly, CreateMode, OpCode, ReadError, WriteError, bytes::Bytes,
};
use zk_testkit::{
    TestServer,
    proxy::{Direction, Match, Proxy},
    real::{Release, Server},
    server::Config,
};

/// Bound on a whole test.
const PATIENCE: Duration = Duration::from_secs(60);

const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Of the servers: shorter than that of clients.
const LEN_MAX: usize = 262_144;

/// Longer than that.
const LEN: usize = 400_000;

async fn connect(proxy: &Proxy) -> Client {
    let options = ConnectOptions::new(&proxy.connect_string()).unwrap();
    options.session_timeout(SESSION_TIMEOUT).connect().await.unwrap()
}

/// A server that takes requests of such a length.
async fn taking(len_max: usize) -> TestServer {
    let mut config = Config::default();
    config.request_len_max = len_max;
    TestServer::start_with(config).await.unwrap()
}

/// A request of 400 kB, and two others that go on asking beside it.
async fn one_is_too_long(proxy: &Proxy) {
    let zk = connect(proxy).await;
    for path in ["/a", "/b"] {
        zk.create(path, b"").await.unwrap();
    }
    let before = proxy.accepted();
    let has_failed = Arc::new(AtomicBool::new(false));
    let mut others = JoinSet::new();
    for path in ["/a", "/b"] {
        let (zk, has_failed) = (zk.clone(), has_failed.clone());
        others.spawn(async move {
            let mut behind = 0;
            while behind < 100 {
                let (read, _) = timeout(PATIENCE, zk.get(path)).await.expect("it ends").unwrap();
                assert_eq!(read, Bytes::new());
                behind += u32::from(has_failed.load(Ordering::Relaxed));
            }
        });
    }
    let data = vec![7; LEN];
    let create = zk.create("/long", &data).or_exists();
    let error = timeout(PATIENCE, create).await.expect("it ends").unwrap_err();
    let WriteError::InDoubt { cause, .. } = &error else { panic!("{error:?}") };
    let Cause::CostsConnection(costly) = cause else { panic!("{error:?}") };
    let Costly { op, path, len, connections, len_answered, .. } = &**costly;
    assert_eq!((*op, path.as_deref()), (OpCode::CREATE2, Some("/long")));
    assert!(*len > LEN && *len_answered < 1_000, "{costly}");
    assert_eq!(*connections, 3, "{costly}");
    println!("{error}");
    has_failed.store(true, Ordering::Relaxed);
    while let Some(other) = others.join_next().await {
        other.unwrap();
    }
    let dials = proxy.accepted() - before;
    assert!(dials <= 3, "{dials} connections behind the first");
    zk.close().await.unwrap();
}

#[tokio::test]
async fn oversized_request_fails_by_name() {
    let server = taking(LEN_MAX).await;
    one_is_too_long(server.proxy()).await;
}

#[tokio::test]
async fn oversized_request_fails_by_name_on_3_9() {
    let server = Server::builder()
        .release(Release::V3_9)
        .property("jute.maxbuffer", LEN_MAX.to_string())
        .start()
        .await
        .unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    one_is_too_long(&proxy).await;
}

/// Short ones too, if there is something in them that servers fail over; that takes more evidence.
#[tokio::test]
async fn poisonous_short_request_is_isolated() {
    let server = TestServer::start().await.unwrap();
    let zk = connect(server.proxy()).await;
    let _rule = server.on(Match::request(OpCode::GET_DATA).path("/poison")).cut();
    let before: Vec<_> = (0..300).map(|_| zk.exists("/").submit()).collect();
    let poison = zk.get("/poison").submit();
    let behind: Vec<_> = (0..300).map(|_| zk.exists("/").submit()).collect();
    let error = timeout(PATIENCE, poison).await.expect("it ends").unwrap_err();
    assert!(matches!(error, ReadError::Unavailable(Cause::CostsConnection(_))), "{error:?}");
    println!("{error}");
    for other in before.into_iter().chain(behind) {
        timeout(PATIENCE, other).await.expect("it ends").unwrap();
    }
    let accepted = server.proxy().accepted();
    assert!(accepted <= 7, "{accepted} connections");
    zk.close().await.unwrap();
}

/// Watches that are more than a server takes at once are restored in smaller batches.
#[tokio::test]
async fn watches_are_restored_in_smaller_batches() {
    let server = taking(20_000).await;
    let zk = connect(server.proxy()).await;
    let watched: Vec<_> = (0..1_500)
        .map(|number| zk.exists(&format!("/watched/{number:040}")).watch().submit())
        .collect();
    let mut watches = Vec::new();
    for watch in watched {
        watches.push(timeout(PATIENCE, watch).await.expect("it ends").unwrap().1);
    }
    let before = server.proxy().accepted();
    server.drop_connections();
    timeout(PATIENCE, zk.exists("/")).await.expect("it goes on").unwrap();
    let dials = server.proxy().accepted() - before;
    assert!(dials <= 5, "{dials} connections");
    zk.close().await.unwrap();
}

/// Connections that end at random, many of them with requests under way: every read is answered.
#[tokio::test]
async fn random_connection_loss_fails_no_request() {
    let server = TestServer::start().await.unwrap();
    let zk = connect(server.proxy()).await;
    zk.create("/long", &[7; 100_000]).await.unwrap();
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let zk = zk.clone();
        callers.spawn(async move {
            let until = Instant::now() + Duration::from_secs(8);
            let mut calls = 0;
            while Instant::now() < until {
                zk.get("/long").await.unwrap();
                zk.create("/long", &[7; 200_000]).or_exists().await.unwrap();
                calls += 1;
            }
            calls
        });
    }
    let mut pause = 1;
    loop {
        match timeout(Duration::from_millis(pause), callers.join_next()).await {
            Err(_) => server.drop_connections(),
            Ok(Some(calls)) => assert!(calls.unwrap() > 0),
            Ok(None) => break,
        }
        pause = pause * 7 % 307;
    }
    zk.close().await.unwrap();
}

/// A session of 4 s, and no server for 3 s, again and again.
#[tokio::test]
async fn no_request_is_blamed_for_outages() {
    let server = TestServer::start().await.unwrap();
    let proxy = server.proxy();
    let options = ConnectOptions::new(&proxy.connect_string()).unwrap();
    let zk = options.session_timeout(Duration::from_secs(4)).connect().await.unwrap();
    let node = zk.create("/node", b"").mode(CreateMode::Ephemeral).await.unwrap();
    for outage in [300, 3_000, 50, 3_000] {
        let reads: Vec<_> = (0..100).map(|_| zk.get("/node").submit()).collect();
        proxy.silence_way(Direction::ToClient);
        let write = zk.create("/other", &[7; 50_000]).or_exists().submit();
        proxy.refuse_connections().await;
        server.drop_connections();
        let session = zk.session();
        timeout(Duration::from_millis(outage), session.ended()).await.expect_err("it lives on");
        proxy.resume();
        proxy.accept_connections().await;
        for read in reads {
            timeout(PATIENCE, read).await.expect("it ends").unwrap();
        }
        timeout(PATIENCE, write).await.expect("it ends").unwrap();
    }
    drop(node);
    zk.close().await.unwrap();
}
