//! Paths that are missing, or go while a client is about to use them.

use zk_locks::{AcquireError, Layout, Lock, MultiLock, Names};
use zk_proto::OpCode;
use zk_testkit::{TestServer, proxy::Match, real::Release, server::Config};
use zk_tests::test_with;

use crate::locks::support::{Setup, emptied, on_each_release, within};

/// Scenario 4. Both find that nothing is there, and each level is made by one of them.
#[test_with(on_each_release)]
async fn two_contenders_create_a_missing_path(setup: Setup) {
    let path = setup.path("none/of/this");
    let (one, other) = (setup.proxied().await, setup.proxied().await);
    let refused =
        |proxy: &zk_testkit::proxy::Proxy| proxy.on(Match::reply(OpCode::CREATE2).once()).hold();
    let (first, second) = (refused(&one.0), refused(&other.0));
    let both_refused = async {
        within(first.fired()).await;
        within(second.fired()).await;
        first.release();
        second.release();
    };
    let take = async |zk| within(Lock::new(zk, &path).acquire()).await.unwrap();
    let turn = async |zk| {
        let guard = take(zk).await;
        let token = guard.token();
        within(guard.release()).await.unwrap();
        token
    };
    let (a, b, ()) = tokio::join!(turn(&one.1), turn(&other.1), both_refused);
    assert_ne!(a, b);
    emptied(&setup.outsider, &path).await;
}

/// Scenario 5: as if the server had reaped the containers for being empty.
#[test_with(on_each_release)]
async fn path_reaped_before_use_is_recreated(setup: Setup) {
    let path = setup.path("reaped");
    let (proxy, zk) = setup.proxied().await;
    let second_try = proxy.on(Match::request(OpCode::CREATE2).nth(2)).hold();
    let lock = Lock::new(&zk, &path);
    let reap = async {
        within(second_try.fired()).await;
        // The levels were made in front of it.
        let made = async {
            while setup.outsider.exists(&path).await.unwrap().is_none() {
                tokio::task::yield_now().await;
            }
        };
        within(made).await;
        setup.outsider.delete(&path).await.unwrap();
        second_try.release();
    };
    let (guard, ()) = tokio::join!(within(lock.acquire()), reap);
    assert_eq!(proxy.counts().requests(OpCode::CREATE2), 3);
    within(guard.unwrap().release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// Scenario 45. Where numbers end, 3.6 and later repeat the last one, and 3.4 goes on with the smallest.
#[tokio::test]
async fn no_grant_at_sequence_overflow() {
    for release in Release::ALL {
        let mut config = Config::default();
        config.release = release;
        let server = TestServer::start_with(config).await.unwrap();
        let zk = zk_locks::Client::connect(&server.connect_string()).await.unwrap();
        let as_it_is = Lock::builder(&zk, "/exhausted").rotate_at(i32::MAX).build();
        let before = within(as_it_is.acquire()).await.unwrap();
        let last = before.token();
        within(before.release()).await.unwrap();
        server.with(|ensemble, _| assert!(ensemble.set_sequence("/exhausted", i32::MAX - 1)));

        let refused = within(as_it_is.acquire()).await.map(drop);
        let exhausted = AcquireError::SequenceExhausted { sequence: i32::MAX - 1 };
        assert_eq!(refused, Err(exhausted), "{release}");
        emptied(&zk, "/exhausted").await;

        let renewed = within(Lock::new(&zk, "/exhausted").acquire()).await.unwrap();
        assert!(renewed.path().ends_with("-0000000000"), "{release}: {}", renewed.path());
        assert!(renewed.token() > last, "{release}");
        within(renewed.release()).await.unwrap();
        // A path that has to be made anew from its first number on is, once for each attempt.
        let always = Lock::builder(&zk, "/exhausted").rotate_at(0).build();
        let once = within(always.acquire()).await.unwrap();
        assert!(once.path().ends_with("-0000000000"), "{release}: {}", once.path());
        within(once.release()).await.unwrap();
        let together = within(MultiLock::of([always]).acquire()).await.unwrap();
        within(together.release()).await.unwrap();
    }
}

/// Before 3.5 numbers go on behind the last one with a sign, which ends any layout's names.
#[tokio::test]
async fn wrapped_number_is_one_in_every_layout() {
    let mut config = Config::default();
    config.release = Release::V3_4;
    let server = TestServer::start_with(config).await.unwrap();
    let zk = zk_locks::Client::connect(&server.connect_string()).await.unwrap();
    let custom = Names::new("lock-").read_write("read-", "write-").marker_first();
    for layout in [
        Layout::Curator,
        Layout::Kazoo,
        Layout::Recipe,
        Layout::HostType,
        Layout::Bare,
        Layout::Custom(custom),
    ] {
        let lock = Lock::builder(&zk, "/wrapped").layout(layout).build();
        let holder = within(lock.acquire()).await.unwrap();
        for next in [i32::MIN, i32::MIN + 1, -1_234_567_890, -1_000_000_000, -999_999_999, -1] {
            server.with(|ensemble, _| assert!(ensemble.set_sequence("/wrapped", next)));
            let refused = within(lock.enqueue()).await.map(drop);
            let exhausted = AcquireError::SequenceExhausted { sequence: next };
            assert_eq!(refused, Err(exhausted), "{layout:?}");
        }
        within(holder.release()).await.unwrap();
        emptied(&zk, "/wrapped").await;
        zk.delete("/wrapped").await.unwrap();
    }
}
