//! Servers that know neither containers nor metadata in the reply to a create.

use zk_locks::{Client, Lock, MultiLock};
use zk_testkit::real::{Release, Server};

use crate::locks::support::within;

#[tokio::test]
async fn server_3_4_tokens_grow() {
    let server = Server::start(Release::V3_4).await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    let lock = Lock::new(&zk, "/locks/old");
    let mut last = 0;
    for _ in 0..3 {
        let guard = within(lock.acquire()).await.unwrap();
        assert_eq!(zk.exists(guard.path()).await.unwrap().unwrap().czxid.0, guard.token().get());
        assert!(guard.token().get() > last);
        last = guard.token().get();
        guard.check().await.unwrap();
        assert!(lock.try_acquire().await.unwrap().is_none());
        let (waited, released) = tokio::join!(within(lock.acquire()), guard.release());
        released.unwrap();
        drop(waited.unwrap());
    }
    zk.sync("/").await.unwrap();
    assert!(zk.children("/locks/old").await.unwrap().0.is_empty());
}

#[tokio::test]
async fn server_3_4_grants_several_locks_together() {
    let server = Server::start(Release::V3_4).await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    let both = MultiLock::new(&zk, ["/locks/a", "/locks/b"]);
    let mut last = 0;
    for _ in 0..3 {
        let guards = within(both.acquire()).await.unwrap();
        for guard in &guards {
            let stat = zk.exists(guard.path()).await.unwrap().unwrap();
            assert_eq!(stat.czxid.0, guard.token().get());
            assert!(guard.token().get() > last);
        }
        last = guards.iter().map(|guard| guard.token().get()).max().unwrap();
        guards.check().await.unwrap();
        assert!(within(both.try_acquire()).await.unwrap().is_none());
        let (waited, released) = tokio::join!(within(both.acquire()), guards.release());
        released.unwrap();
        last = last.max(waited.unwrap().iter().map(|guard| guard.token().get()).max().unwrap());
    }
    zk.sync("/").await.unwrap();
    for path in ["/locks/a", "/locks/b"] {
        assert!(zk.children(path).await.unwrap().0.is_empty());
    }
}

/// The first create of a session pays for what the client cannot know: the server drops the connection, and the create
/// waits for the next one, as does whatever is asked for meanwhile.
#[tokio::test]
async fn server_3_4_refuses_create2_only_once() {
    let server = Server::start(Release::V3_4).await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    let (created, beside) = tokio::join!(zk.create("/a", b""), zk.create("/b", b""));
    let created = created.unwrap();
    beside.unwrap();
    assert_eq!(zk.session().epoch(), 2);
    let there = zk.exists("/a").await.unwrap().unwrap();
    assert_eq!((created.path.as_str(), created.stat.czxid), ("/a", there.czxid));
}
