//! Acquires that are given up at chosen moments; `cancel` gives them up everywhere.

use zk_locks::{Client, Lock};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::test_with;

use crate::locks::support::{
    Setup, dropped_on_waking, dropped_when, emptied, on_each_release, within,
};

/// How often an acquire is given up at one point.
const TIMES: usize = 50;

/// Whether the queue is empty although the session lives, and the lock can be had.
async fn nothing_left(zk: &Client, path: &str) {
    emptied(zk, path).await;
    within(Lock::new(zk, path).acquire()).await.unwrap().release().await.unwrap();
}

/// There is nothing to find, in one case because the create never came to the server and in the other
/// because there is no such path.
#[test_with(on_each_release)]
async fn abandoned_create_in_doubt_is_not_resent(setup: Setup) {
    let unseen = (setup.existing("unseen").await, Match::request(OpCode::CREATE2));
    let refused = (setup.path("nowhere"), Match::reply(OpCode::CREATE2));
    for (path, lost) in [unseen, refused] {
        let (proxy, zk) = setup.proxied().await;
        let lost = proxy.on(lost.once()).reset();
        let listed = proxy.on(Match::reply(OpCode::GET_CHILDREN)).watch();
        let lock = Lock::new(&zk, &path);
        within(Box::pin(dropped_when(async { drop(lost.fired().await) }, lock.acquire()))).await;
        within(listed.fired()).await;
        // Behind the listing, and behind what came of it.
        zk.sync("/").await.unwrap();
        zk.sync("/").await.unwrap();
        assert_eq!(proxy.counts().requests(OpCode::CREATE2), 1, "{}", proxy.frames());
    }
}

/// The event that the predecessor is gone has arrived, and is not polled for any more.
#[test_with(on_each_release)]
async fn acquire_drops_between_grant_and_poll(setup: Setup) {
    let path = setup.existing("news").await;
    let (proxy, zk) = setup.proxied().await;
    for _ in 0..TIMES {
        let holder = Lock::new(&setup.outsider, &path).acquire().await.unwrap();
        let successor = Lock::new(&setup.outsider, &path);
        let armed = proxy.on(Match::reply(OpCode::GET_DATA).nth(2)).watch();
        let asleep = async {
            armed.fired().await;
            zk.sync("/").await.unwrap();
        };
        let release = async { holder.release().await.unwrap() };
        let lock = Lock::new(&zk, &path);
        within(Box::pin(dropped_on_waking(lock.acquire(), asleep, release))).await;
        within(successor.acquire()).await.unwrap().release().await.unwrap();
        nothing_left(&zk, &path).await;
    }
}
