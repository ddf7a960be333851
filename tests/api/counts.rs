//! What is counted of requests and events: whatever a program has asked for, once.

use std::{
    future::{IntoFuture as _, poll_fn},
    pin::pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use zk_client::{
    Acl, AclList, Answered, Cause, Client, CreateMode, Ending, ErrorCode, OpCode, OwnedNode, Perms,
    SessionObserver, Stats, WriteError,
};
use zk_testkit::{proxy::Match, server::Config};
use zk_tests::{
    feature::Feature,
    network::Network,
    patience::{closed, within},
    paused, test_with,
};

use crate::api::{Place, behind_proxy, client, on_each_release};

#[derive(Default)]
struct Endings(Mutex<Vec<(OpCode, Ending)>>);

impl Endings {
    fn take(&self) -> Vec<(OpCode, Ending)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl SessionObserver for Endings {
    fn answered(&self, answered: &Answered) {
        self.0.lock().unwrap().push((answered.op, answered.ending));
    }
}

async fn observed(server: &Place) -> (Client, Arc<Endings>) {
    let endings = Arc::new(Endings::default());
    let zk = server.options().observer(endings.clone()).connect().await.unwrap();
    // Servers before 3.5 refuse the first one.
    zk.create("/p", b"").await.unwrap();
    zk.sync("/p").await.unwrap();
    endings.take();
    (zk, endings)
}

fn counts(stats: &Stats) -> (u64, u64, u64, u64) {
    (stats.answered, stats.rejected, stats.not_sent, stats.unknown)
}

async fn protected(zk: &Client, path: &str) -> Result<OwnedNode, WriteError> {
    let create = zk.create(path, b"").mode(CreateMode::EphemeralSequential).protected();
    create.await.map(|created| created.owned.expect("it is protected"))
}

#[test_with(on_each_release)]
async fn protected_create_and_its_delete_count(server: &Place) {
    let (zk, endings) = observed(server).await;
    let before = counts(&zk.stats());
    let node = protected(&zk, "/p/a-").await.unwrap();
    assert_eq!(endings.take(), [(OpCode::CREATE2, Ending::Ok)]);
    within(node.delete()).await.unwrap();
    assert_eq!(endings.take(), [(OpCode::DELETE, Ending::Ok)]);
    protected(&zk, "/missing/a-").await.unwrap_err();
    let rejected = Ending::Rejected(ErrorCode::NO_NODE);
    assert_eq!(endings.take(), [(OpCode::CREATE2, rejected)]);
    let stats = zk.stats();
    assert_eq!(counts(&stats), (before.0 + 3, before.1 + 1, before.2, before.3));
    assert_eq!(stats.latency().count(), stats.answered);

    // Those whose owner does not wait count too.
    drop(protected(&zk, "/p/a-").await.unwrap());
    zk.sync("/p").await.unwrap();
    let both = [OpCode::CREATE2, OpCode::DELETE].map(|op| (op, Ending::Ok));
    assert_eq!(endings.take()[..2], both);
}

/// What the session does to find a node that it has lost sight of is not what the program has asked for.
#[test_with(on_each_release)]
async fn create_with_a_lost_answer_counts_once(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/p", b"").await.unwrap();
    let before = counts(&zk.stats());
    let lost = proxy.on(Match::reply(server.create_op()).once()).reset();
    let node = within(protected(&zk, "/p/a-")).await.unwrap();
    assert_eq!(lost.times_fired(), 1);
    assert_eq!(counts(&zk.stats()), (before.0 + 1, before.1, before.2, before.3));
    drop(node);
}

#[test_with(on_each_release)]
async fn refused_delete_of_an_owner_counts(server: &Place) {
    let (zk, endings) = observed(server).await;
    let acl =
        AclList::from_iter([Acl { perms: Perms::READ | Perms::CREATE, ..Acl::open_unsafe() }]);
    zk.create("/kept", b"").acl(&acl).await.unwrap();
    let node = protected(&zk, "/kept/a-").await.unwrap();
    endings.take();
    within(node.delete()).await.unwrap_err();
    let refused = (OpCode::DELETE, Ending::Rejected(ErrorCode::NO_AUTH));
    assert_eq!(endings.take(), [refused]);
}

#[test_with(on_each_release)]
async fn requests_behind_the_end_count_as_not_sent(server: &Place) {
    let (zk, endings) = observed(server).await;
    let other = zk.clone();
    let before = counts(&zk.stats());
    closed(&zk).await;
    endings.take();
    other.get("/p").await.unwrap_err();
    protected(&other, "/p/a-").await.unwrap_err();
    other.add_auth("digest", "ann:secret").await.unwrap_err();
    let ops = [OpCode::GET_DATA, OpCode::CREATE2, OpCode::AUTH];
    assert_eq!(endings.take(), ops.map(|op| (op, Ending::NotSent)));
    assert_eq!(counts(&other.stats()), (before.0, before.1, before.2 + 3, before.3));
}

#[test_with(on_each_release)]
async fn requests_without_room_count_as_not_sent(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    drop(zk);
    let options = server.options_by(&proxy.connect_string()).requests_max(1);
    let zk = options.connect().await.unwrap();
    let before = counts(&zk.stats());
    let held = proxy.on(Match::reply(OpCode::EXISTS).once()).hold();
    let first = zk.exists("/").submit();
    assert!(within(zk.get("/").submit()).await.is_err_and(|error| is_full(&error)));
    let mut late = pin!(zk.get("/").timeout(Duration::from_millis(20)).into_future());
    // It waits for room when it gives up.
    assert!(poll_fn(|cx| Poll::Ready(late.as_mut().poll(cx).is_pending())).await);
    within(late).await.unwrap_err();
    held.release();
    within(first).await.unwrap();
    assert_eq!(counts(&zk.stats()), (before.0 + 1, before.1, before.2 + 2, before.3));
}

fn is_full(error: &zk_client::ReadError) -> bool {
    matches!(error, zk_client::ReadError::Unavailable(Cause::QueueFull))
}

#[test_with(on_each_release)]
async fn refused_transactions_count_as_rejected(server: &Place) {
    let (zk, endings) = observed(server).await;
    let before = counts(&zk.stats());
    zk.multi().check("/p").delete("/missing").await.unwrap().unwrap_err();
    let rejected = Ending::Rejected(ErrorCode::NO_NODE);
    assert_eq!(endings.take(), [(OpCode::MULTI, rejected)]);
    zk.multi().check("/p").await.unwrap().unwrap();
    assert_eq!(endings.take(), [(OpCode::MULTI, Ending::Ok)]);
    assert_eq!(counts(&zk.stats()), (before.0 + 2, before.1 + 1, before.2, before.3));
    if server.has(Feature::MultiRead) {
        // Each read has an answer of its own.
        zk.multi_read().get("/p").get("/missing").await.unwrap();
        assert_eq!(endings.take(), [(OpCode::MULTI_READ, Ending::Ok)]);
    }
}

/// Neither the end of a watch is an event, nor what nobody listens to.
#[test_with(on_each_release)]
async fn only_events_that_are_heard_count(server: &Place) {
    let (zk, other) = (client(server).await, client(server).await);
    other.create("/w", b"").await.unwrap();
    let (_, dropped) = zk.get("/w").watch().await.unwrap();
    drop(dropped);
    other.set("/w", b"1").await.unwrap();
    zk.sync("/w").await.unwrap();
    assert_eq!(zk.stats().watch_events, 0);
    let (_, heard) = zk.get("/w").watch().await.unwrap();
    other.set("/w", b"2").await.unwrap();
    within(heard).await.unwrap();
    assert_eq!(zk.stats().watch_events, 1);
    let (_, unheard) = zk.get("/w").watch().await.unwrap();
    closed(&zk).await;
    within(unheard).await.unwrap_err();
    assert_eq!(zk.stats().watch_events, 1);
}

/// It was given up while a cork held it, and is let go only when the session is over.
#[test]
fn request_that_was_given_up_is_counted_once() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let zk = network.options("me", "", 7).connect().await.unwrap();
        let before = zk.stats().not_sent;
        let cork = zk.cork();
        let given_up = cork.get("/").timeout(Duration::from_millis(20)).submit().await;
        assert!(given_up.is_err());
        zk.close().await.unwrap();
        drop(cork);
        assert_eq!(zk.stats().not_sent - before, 1);
    });
}
