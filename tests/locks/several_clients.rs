//! Several locks as one, of clients with sessions of their own.

use zk_locks::{Client, Lock, MultiLock};
use zk_testkit::TestServer;
use zk_tests::test_with;

use crate::locks::support::{Setup, emptied, joined, on_each_release, within};

/// The servers do not know of each other.
#[tokio::test]
async fn path_on_two_servers_is_two_locks() {
    let servers = [TestServer::start().await.unwrap(), TestServer::start().await.unwrap()];
    let [one, other] = servers.each_ref().map(TestServer::connect_string);
    let [zk, second] =
        [Client::connect(&one).await.unwrap(), Client::connect(&other).await.unwrap()];
    let both = MultiLock::of([Lock::new(&zk, "/x"), Lock::new(&second, "/x")]);
    for tries in [false, true] {
        let guards = match tries {
            true => within(both.try_acquire()).await.unwrap().expect("both are free"),
            false => within(both.acquire()).await.unwrap(),
        };
        assert_eq!(guards.len(), 2, "{tries}");
        for servers in [&one, &other] {
            let outsider = Client::connect(servers).await.unwrap();
            let taken = within(Lock::new(&outsider, "/x").try_acquire()).await.unwrap();
            assert!(taken.is_none(), "{tries}: {taken:?}");
        }
        within(guards.release()).await.unwrap();
    }
}

/// Asked for in another order than that of their paths.
#[test_with(on_each_release)]
async fn tried_locks_belong_to_their_own_clients(setup: Setup) {
    let (one, other) = (setup.client().await, setup.client().await);
    let (root, plain) = (setup.existing("root").await, setup.path("plain"));
    let below = one.chrooted(&root).unwrap();
    let both = MultiLock::of([Lock::new(&below, "/lock"), Lock::new(&other, &plain)]);
    let guards = within(both.try_acquire()).await.unwrap().expect("both are free");
    assert_eq!(guards.len(), 2);
    for ((zk, path), guard) in [(&below, "/lock"), (&other, &plain)].into_iter().zip(&guards) {
        assert_eq!(zk_client::path::parent(guard.path()), Some(path));
        let node = zk.exists(guard.path()).await.unwrap();
        let owner = node.map(|node| node.ephemeral_owner);
        assert_eq!(owner, Some(zk.session().id()), "{}", guard.path());
    }
    let absolute = [format!("{root}/lock"), plain.clone()];
    for path in &absolute {
        joined(&setup.outsider, path, 1).await;
    }
    assert_eq!(within(guards.check()).await, Ok(()));
    within(guards.release()).await.unwrap();
    for path in &absolute {
        emptied(&setup.outsider, path).await;
    }
}
