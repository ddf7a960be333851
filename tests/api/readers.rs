//! What members show that are not where the others are: those without a quorum, perhaps what the others never agree on, and
//! those that lag what is over.

use std::time::Duration;

use zk_client::{Acl, AclList, Cache, CacheEvent, Client, ConnectOptions, SessionState};
use zk_testkit::{
    TestServer,
    real::Release,
    server::{Config, Member},
};
use zk_tests::{patience::within, test_with};

use super::caches::{converged, follows};
use crate::api::{Place, behind_proxy, on_each_release};

/// A member that is alone and has logged more than the others, who go on without that: as two servers, of which one shows
/// the nodes with later changes than the other.
#[tokio::test]
async fn cache_forgets_what_others_never_agreed_on() {
    for release in Release::ALL {
        let mut config = Config::default();
        (config.release, config.members, config.read_only_mode) = (release, 3, true);
        (config.tick, config.sync_limit) = (Duration::from_millis(50), Duration::from_millis(100));
        let alone = TestServer::start_with(config).await.unwrap();
        let writer = Client::connect(&alone.connect_string()).await.unwrap();
        let mut config = Config::default();
        config.release = release;
        let others = TestServer::start_with(config).await.unwrap();
        let other = Client::connect(&others.connect_string()).await.unwrap();

        for path in ["/c", "/c/both", "/c/logged"] {
            writer.create(path, b"agreed").await.unwrap();
        }
        for path in ["/c", "/c/both", "/c/agreed"] {
            other.create(path, b"agreed").await.unwrap();
        }
        for path in ["/c", "/c/both"].repeat(10) {
            writer.set(path, b"logged").await.unwrap();
        }
        drop(writer);
        let member = alone.with(|ensemble, now| {
            let member = ensemble.leader().unwrap();
            for other in (0..3).map(Member).filter(|it| *it != member) {
                ensemble.stop(now, other);
            }
            member
        });
        let (readers, proxy) = (alone.proxy_of(member), others.proxy());
        proxy.refuse_connections().await;
        let servers = [readers.connect_string(), proxy.connect_string()].join(",");
        let zk = ConnectOptions::new(&servers).unwrap().read_only(true);
        let zk = within(zk.connect()).await.unwrap();
        assert_eq!(zk.session().state(), SessionState::Connected { read_only: true });
        let cache = Cache::subtree(&zk, "/c").start().unwrap();
        within(cache.ready()).await.unwrap();
        assert_eq!(&*cache.get("/c/both").unwrap().data, b"logged", "{release}");

        proxy.accept_connections().await;
        within(converged(&cache, &other, "/c", 1)).await;
        other.set("/c/both", b"new").await.unwrap();
        within(converged(&cache, &other, "/c", 1)).await;
    }
}

/// Also where all that is known is that there is nothing.
#[tokio::test]
async fn moved_cache_waits_for_a_server_that_lags() {
    let mut config = Config::default();
    config.members = 3;
    let server = TestServer::start_with(config).await.unwrap();
    let (leader, follower) = server.with(|ensemble, now| {
        let leader = ensemble.leader().unwrap();
        let follower = Member((leader.0 + 1) % 3);
        ensemble.set_lag(now, follower, Duration::from_millis(500));
        (leader, follower)
    });
    let connect =
        async |member| Client::connect(&server.proxy_of(member).connect_string()).await.unwrap();
    let (zk, late) = (connect(leader).await, connect(follower).await);
    zk.create("/c", b"old").await.unwrap();
    late.sync("/c").await.unwrap();
    let cache = Cache::node(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    let mut events = cache.events();
    zk.delete("/c").await.unwrap();
    assert!(matches!(within(events.next()).await, Some(CacheEvent::Deleted(_))));
    assert!(late.exists("/c").await.unwrap().is_some(), "it lags");
    cache.move_to(&late);
    within(cache.ready()).await.unwrap();
    assert!(cache.get("/c").is_none());
    late.create("/c", b"new").await.unwrap();
    assert_eq!(within(events.next()).await, Some(CacheEvent::Loaded));
    let next = within(events.next()).await;
    assert!(matches!(&next, Some(CacheEvent::Created(node)) if node.data == "new"), "{next:?}");
}

/// With the next full read, as behind a reconnect: no event tells that it has gone.
#[test_with(on_each_release)]
async fn refusal_of_what_has_gone_is_forgotten(server: &Place) {
    let owner = server.options().auth("digest", "ann:secret").connect().await.unwrap();
    owner.create("/c", b"").await.unwrap();
    let acl = AclList::from_iter([Acl::creator_all()]);
    owner.create("/c/closed", b"").acl(&acl).await.unwrap();
    let (proxy, zk) = behind_proxy(server).await;
    let cache = Cache::children(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap_err();
    owner.delete("/c/closed").await.unwrap();
    proxy.reset_all();
    follows(&cache).await;
}
