//! Links that are slow and not dead: what takes long to come does come, and the session lives meanwhile.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use zk_client::{Client, ConnectOptions, path::join};
use zk_testkit::{
    proxy::{Direction, Proxy},
    real::{Release, Server},
    server::Config,
};
use zk_tests::{
    network::{Network, Way},
    patience::LIMIT,
    paused,
};

/// The name of the only client.
const ME: &str = "me";

const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

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

/// Longer than anything takes here.
async fn in_the_end<F: IntoFuture>(future: F) -> F::Output {
    timeout(Duration::from_secs(120), future.into_future()).await.expect("it comes")
}

/// Lists so many nodes, and has others ask for something meanwhile.
async fn listed(zk: &Client, count: usize) -> Duration {
    let epoch = zk.session().epoch();
    let start = Instant::now();
    let listing = zk.children("/slow").submit();
    let others: Vec<_> = (0..3).map(|_| zk.get("/slow").submit()).collect();
    let (names, _) = in_the_end(listing).await.unwrap();
    let took = start.elapsed();
    assert_eq!(names.len(), count);
    for other in others {
        in_the_end(other).await.unwrap();
    }
    in_the_end(zk.set("/slow", b"")).await.unwrap();
    assert_eq!(zk.session().epoch(), epoch, "over one connection");
    took
}

/// Plays in virtual time.
fn play(test: impl AsyncFn(&Network)) {
    paused::block_on(async { test(&Network::new(Config::default())).await });
}

#[test]
fn listing_may_outlast_the_session_timeout() {
    play(async |network| {
        let zk = network.options(ME, "", 7).session_timeout(SESSION_TIMEOUT).connect();
        let zk = zk.await.unwrap();
        fill(&zk, "/slow", 3_000).await;
        network.slow(ME, Way::ToClient, 4_000);
        let took = listed(&zk, 3_000).await;
        assert!(took > SESSION_TIMEOUT * 2, "that was no slow link: {took:?}");
        network.heal();
        zk.close().await.unwrap();
    });
}

#[tokio::test]
async fn server_3_9_is_listed_at_25_kb_per_second() {
    let server = Server::start(Release::V3_9).await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let options = ConnectOptions::new(&proxy.connect_string()).unwrap();
    let zk = options.session_timeout(SESSION_TIMEOUT).connect().await.unwrap();
    assert_eq!(zk.session().timeout(), SESSION_TIMEOUT);
    // By another session: on a busy machine that many nodes take longer than this one may be without an answer.
    let filler = Client::connect(&proxy.connect_string()).await.unwrap();
    fill(&filler, "/slow", NODES).await;
    filler.close().await.unwrap();
    proxy.limit_rate(Direction::ToClient, Some(25_000));
    let took = listed(&zk, NODES).await;
    println!("{NODES} names in {took:.1?}");
    assert!(took > SESSION_TIMEOUT, "that was no slow link: {took:?}");
    proxy.limit_rate(Direction::ToClient, None);
    zk.close_within(LIMIT).await.unwrap();
}

/// What leaves slowly: writes, with pings behind them.
#[test]
fn slow_outbound_writes_arrive() {
    play(async |network| {
        let zk = network.options(ME, "", 7).session_timeout(SESSION_TIMEOUT).connect();
        let zk = zk.await.unwrap();
        zk.create("/slow", b"").await.unwrap();
        let epoch = zk.session().epoch();
        network.slow(ME, Way::ToServer, 8_000);
        let start = Instant::now();
        let writes: Vec<_> = (0..10).map(|_| zk.set("/slow", &[7; 20_000]).submit()).collect();
        for write in writes {
            in_the_end(write).await.unwrap();
        }
        let took = start.elapsed();
        assert!(took > SESSION_TIMEOUT * 2, "that was no slow link: {took:?}");
        assert_eq!(zk.session().epoch(), epoch, "over one connection");
        network.heal();
        zk.close().await.unwrap();
    });
}
