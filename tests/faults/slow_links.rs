//! Links that are slow and not dead: what takes long to come does come, and the session lives meanwhile.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use zk_client::{Client, ConnectOptions, path::join};
use zk_testkit::{
    TestServer,
    proxy::{Direction, Proxy},
    real::{Release, Server},
};

/// Bound on a whole test.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many nodes are listed.
const NODES: usize = 5_000;

/// As long as those of locks are.
fn name(number: usize) -> String {
    format!("_c_01234567-89ab-cdef-0123-456789abcdef-worker-lock-{number:010}")
}

async fn fill(zk: &Client, path: &str, count: usize) {
    zk.create(path, b"").await.unwrap();
    let creates: Vec<_> =
        (0..count).map(|number| zk.create(&join(path, &name(number)), b"").submit()).collect();
    for create in creates {
        create.await.unwrap();
    }
}

/// Lists so many nodes, and has others ask for something meanwhile.
async fn listed(proxy: &Proxy, session_timeout: Duration, rate: u64, count: usize) -> Duration {
    // By another session: on a busy machine that many nodes take longer than the short one may be without an answer.
    let filler = Client::connect(&proxy.connect_string()).await.unwrap();
    fill(&filler, "/slow", count).await;
    filler.close().await.unwrap();
    let options = ConnectOptions::new(&proxy.connect_string()).unwrap();
    let zk = options.session_timeout(session_timeout).connect().await.unwrap();
    assert_eq!(zk.session().timeout(), session_timeout);
    let epoch = zk.session().epoch();
    proxy.limit_rate(Direction::ToClient, Some(rate));
    let start = Instant::now();
    let listing = zk.children("/slow").submit();
    let others: Vec<_> = (0..3).map(|_| zk.get("/slow").submit()).collect();
    let (names, _) = timeout(PATIENCE, listing).await.expect("it comes").unwrap();
    let took = start.elapsed();
    assert_eq!(names.len(), count);
    for other in others {
        timeout(PATIENCE, other).await.expect("behind it").unwrap();
    }
    timeout(PATIENCE, zk.set("/slow", b"")).await.expect("and writes").unwrap();
    assert_eq!(zk.session().epoch(), epoch, "over one connection");
    proxy.limit_rate(Direction::ToClient, None);
    zk.close().await.unwrap();
    took
}

#[tokio::test]
async fn listing_may_outlast_the_session_timeout() {
    let server = TestServer::start().await.unwrap();
    let session_timeout = Duration::from_secs(1);
    let took = listed(server.proxy(), session_timeout, 40_000, 3_000).await;
    assert!(took > session_timeout * 2, "that was no slow link: {took:?}");
}

#[tokio::test]
async fn server_3_9_is_listed_at_25_kb_per_second() {
    let server = Server::start(Release::V3_9).await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let took = listed(&proxy, Duration::from_secs(10), 25_000, NODES).await;
    println!("{NODES} names in {took:.1?}");
    assert!(took > Duration::from_secs(10), "that was no slow link: {took:?}");
}

/// What leaves slowly: writes, with pings behind them.
#[tokio::test]
async fn slow_outbound_writes_arrive() {
    let server = TestServer::start().await.unwrap();
    let proxy = server.proxy();
    let options = ConnectOptions::new(&proxy.connect_string()).unwrap();
    let zk = options.session_timeout(Duration::from_secs(2)).connect().await.unwrap();
    zk.create("/slow", b"").await.unwrap();
    let epoch = zk.session().epoch();
    proxy.limit_rate(Direction::ToServer, Some(40_000));
    let writes: Vec<_> = (0..10).map(|_| zk.set("/slow", &[7; 20_000]).submit()).collect();
    for write in writes {
        timeout(PATIENCE, write).await.expect("it arrives").unwrap();
    }
    assert_eq!(zk.session().epoch(), epoch, "over one connection");
    zk.close().await.unwrap();
}
