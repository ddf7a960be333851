//! Requests that cost the connection: identified, named, and harmless to others. And those that are only unlucky, which
//! are not blamed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use zk_client::{Cause, Client, Costly, CreateMode, OpCode, ReadError, WriteError, bytes::Bytes};
use zk_testkit::{
    real::{Release, Server},
    server::Config,
};
use zk_tests::{
    network::{Disposition, Network, pass},
    patience::{LIMIT, within},
    paused,
};

/// The name of the only client.
const ME: &str = "me";

/// Of the servers: shorter than that of clients.
const LEN_MAX: usize = 262_144;

/// Longer than that.
const LEN: usize = 400_000;

/// Plays in virtual time, with a server that takes requests of such a length: how often a connection has to be lost before a request is
/// blamed depends on how long connections live.
fn play(len_max: usize, test: impl AsyncFn(&Network)) {
    let mut config = Config::default();
    config.request_len_max = len_max;
    paused::block_on(async { test(&Network::new(config)).await });
}

async fn connected(network: &Network) -> Client {
    network.options(ME, "", 7).connect().await.unwrap()
}

/// A request of 400 kB, and two others that go on asking beside it. Returns what it has cost.
async fn one_is_too_long(zk: &Client) -> Costly {
    for path in ["/a", "/b"] {
        within(zk.create(path, b"")).await.unwrap();
    }
    let has_failed = Arc::new(AtomicBool::new(false));
    let mut others = JoinSet::new();
    for path in ["/a", "/b"] {
        let (zk, has_failed) = (zk.clone(), has_failed.clone());
        others.spawn(async move {
            let mut behind = 0;
            while behind < 100 {
                let (read, _) = within(zk.get(path)).await.unwrap();
                assert_eq!(read, Bytes::new());
                behind += u32::from(has_failed.load(Ordering::Relaxed));
            }
        });
    }
    let data = vec![7; LEN];
    let error = within(zk.create("/long", &data).or_exists()).await.unwrap_err();
    println!("{error}");
    has_failed.store(true, Ordering::Relaxed);
    while let Some(other) = others.join_next().await {
        other.unwrap();
    }
    let WriteError::InDoubt { cause: Cause::CostsConnection(costly), .. } = error else {
        panic!("{error:?}")
    };
    let Costly { op, path, len, len_answered, .. } = &*costly;
    assert_eq!((*op, path.as_deref()), (OpCode::CREATE2, Some("/long")));
    assert!(*len > LEN && *len_answered < 1_000, "{costly}");
    within(zk.close_within(LIMIT)).await.unwrap();
    *costly
}

#[test]
fn oversized_request_fails_by_name() {
    play(LEN_MAX, async |network| {
        let zk = connected(network).await;
        let before = zk.stats().connects;
        let costly = one_is_too_long(&zk).await;
        assert_eq!(costly.connections, 3, "{costly}");
        let dials = zk.stats().connects - before;
        assert!(dials <= 3, "{dials} connections behind the first");
    });
}

/// On a slow machine, where connections live long enough to be no evidence, that takes more of them.
#[tokio::test]
async fn oversized_request_fails_by_name_on_3_9() {
    let server = Server::builder()
        .release(Release::V3_9)
        .property("jute.maxbuffer", LEN_MAX.to_string())
        .start()
        .await
        .unwrap();
    let zk = within(Client::connect(&server.connect_string())).await.unwrap();
    let costly = one_is_too_long(&zk).await;
    assert!(costly.connections >= 3, "{costly}");
}

/// Short ones too, if there is something in them that servers fail over; that takes more evidence.
#[test]
fn poisonous_short_request_is_isolated() {
    play(LEN_MAX, async |network| {
        let zk = connected(network).await;
        network.direct(|_, op| match op {
            OpCode::GET_DATA => Disposition::Lost,
            _ => Disposition::Answered,
        });
        let before: Vec<_> = (0..300).map(|_| zk.exists("/").submit()).collect();
        let poison = zk.get("/poison").submit();
        let behind: Vec<_> = (0..300).map(|_| zk.exists("/").submit()).collect();
        let error = within(poison).await.unwrap_err();
        assert!(matches!(error, ReadError::Unavailable(Cause::CostsConnection(_))), "{error:?}");
        println!("{error}");
        for other in before.into_iter().chain(behind) {
            within(other).await.unwrap();
        }
        let connects = zk.stats().connects;
        assert!(connects <= 7, "{connects} connections");
        zk.close().await.unwrap();
    });
}

/// Watches that are more than a server takes at once are restored in smaller batches.
#[test]
fn watches_are_restored_in_smaller_batches() {
    play(20_000, async |network| {
        let zk = connected(network).await;
        let watched: Vec<_> = (0..1_500)
            .map(|number| zk.exists(&format!("/watched/{number:040}")).watch().submit())
            .collect();
        let mut watches = Vec::new();
        for watch in watched {
            watches.push(within(watch).await.unwrap().1);
        }
        let before = zk.stats().connects;
        network.cut(ME);
        network.heal();
        within(zk.exists("/")).await.unwrap();
        let dials = zk.stats().connects - before;
        assert!(dials <= 5, "{dials} connections");
        zk.close().await.unwrap();
    });
}

/// Connections that end at random, many of them with requests under way: every read is answered.
#[test]
fn random_connection_loss_fails_no_request() {
    play(LEN_MAX, async |network| {
        let zk = connected(network).await;
        zk.create("/long", &[7; 100_000]).await.unwrap();
        let until = Instant::now() + Duration::from_secs(8);
        let mut callers = JoinSet::new();
        for _ in 0..8 {
            let zk = zk.clone();
            callers.spawn(async move {
                while Instant::now() < until {
                    zk.get("/long").await.unwrap();
                    zk.create("/long", &[7; 200_000]).or_exists().await.unwrap();
                }
            });
        }
        let mut pause = 1;
        loop {
            match timeout(Duration::from_millis(pause), callers.join_next()).await {
                Err(_) => {
                    network.cut(ME);
                    network.heal();
                }
                Ok(Some(caller)) => caller.unwrap(),
                Ok(None) => break,
            }
            pause = pause * 7 % 307;
        }
        zk.close().await.unwrap();
    });
}

/// A session of 4 s, and no server for 3 s, again and again.
#[test]
fn no_request_is_blamed_for_outages() {
    play(LEN_MAX, async |network| {
        let options = network.options(ME, "", 7).session_timeout(Duration::from_secs(4));
        let zk = options.connect().await.unwrap();
        let node = zk.create("/node", b"").mode(CreateMode::Ephemeral).await.unwrap();
        for outage in [300, 3_000, 50, 3_000] {
            let reads: Vec<_> = (0..100).map(|_| zk.get("/node").submit()).collect();
            network.hold(ME);
            let write = zk.create("/other", &[7; 50_000]).or_exists().submit();
            pass(Duration::from_millis(1)).await;
            network.cut(ME);
            let session = zk.session();
            let outage = Duration::from_millis(outage);
            timeout(outage, session.ended()).await.expect_err("it lives on");
            network.heal();
            for read in reads {
                within(read).await.unwrap();
            }
            within(write).await.unwrap();
        }
        drop(node);
        zk.close().await.unwrap();
    });
}
