//! Clients whose root is somewhere below the servers'.

use zk_client::{CreateMode, EventType, OpResult, Rejection, WriteError};
use zk_tests::{feature::Feature, test_with};

use crate::api::{Place, client, on_each_release, on_each_release_to_restart};

#[test_with(on_each_release)]
async fn chroot_is_added_to_paths_and_removed(server: &Place) {
    let root = client(server).await;
    let servers = format!("{}/app/x", server.connect_string());
    let zk = server.options_for(&servers).connect().await.unwrap();
    let missing = WriteError::Rejected(Rejection::NoNode);
    let refused = zk.create("/a", b"").await.unwrap_err();
    assert_eq!(refused, missing, "the chroot is not created");
    root.create("/app", b"").await.unwrap();
    zk.create("/", b"top").await.unwrap();

    let (_, watch) = zk.exists("/a-0000000000").watch().await.unwrap();
    let a = zk.create("/a-", b"").mode(CreateMode::EphemeralSequential).await.unwrap();
    assert_eq!(a.path, "/a-0000000000");
    assert_eq!(watch.await.unwrap().path, "/a-0000000000");
    assert!(root.exists("/app/x/a-0000000000").await.unwrap().is_some());
    // A number that is all of the name.
    let numbered = zk.create("/", b"").mode(CreateMode::PersistentSequential).await.unwrap();
    assert_eq!(numbered.path, "/0000000001");
    let numbered = zk.multi().create("/", b"", CreateMode::PersistentSequential).await;
    let results = numbered.unwrap().unwrap();
    assert!(matches!(&results[..], [OpResult::Created { path, .. }] if path == "/0000000002"));

    let node =
        zk.create("/p", b"").mode(CreateMode::Ephemeral).protected().await.unwrap().owned.unwrap();
    assert_eq!(node.path(), format!("/{}", node.name()));
    let results = zk.multi().create("/m", b"", CreateMode::Persistent).await.unwrap().unwrap();
    assert!(matches!(&results[..], [OpResult::Created { path, .. }] if path == "/m"));

    assert_eq!(&*zk.get("/").await.unwrap().0, b"top");
    let deeper = zk.chrooted("/m").unwrap();
    deeper.create("/n", b"").await.unwrap();
    assert!(root.exists("/app/x/m/n").await.unwrap().is_some());
    assert_eq!(deeper.session().id(), zk.session().id());
}

#[test_with(on_each_release_to_restart)]
async fn watches_in_a_chroot_survive_a_restart(server: &Place) {
    let root = client(server).await;
    root.create("/app", b"").await.unwrap();
    let servers = format!("{}/app", server.connect_string());
    let zk = server.options_for(&servers).connect().await.unwrap();
    zk.create("/a", b"").await.unwrap();
    // Of the same name outside: not what is watched.
    root.create("/a", b"").await.unwrap();
    let (_, on_top) = zk.get("/").watch().await.unwrap();
    let (_, below_top) = zk.children("/").watch().await.unwrap();
    let (_, below) = zk.get("/a").watch().await.unwrap();
    let (_, missing) = zk.exists("/b").watch().await.unwrap();
    server.restart_under(&zk).await;
    zk.sync("/").await.unwrap();
    root.set("/a", b"x").await.unwrap();
    root.set("/app", b"x").await.unwrap();
    root.set("/app/a", b"x").await.unwrap();
    root.create("/app/b", b"").await.unwrap();
    for (watch, kind, path) in [
        (on_top, EventType::NODE_DATA_CHANGED, "/"),
        (below_top, EventType::NODE_CHILDREN_CHANGED, "/"),
        (below, EventType::NODE_DATA_CHANGED, "/a"),
        (missing, EventType::NODE_CREATED, "/b"),
    ] {
        let event = watch.await.unwrap();
        assert_eq!((event.kind, &*event.path), (kind, path));
    }
    // Events from outside the chroot are not reported, and nothing breaks.
    root.delete("/a").await.unwrap();
    zk.get("/a").await.unwrap();
}

#[test_with(on_each_release)]
async fn views_are_the_same_by_session_and_root(server: &Place) {
    let (zk, other) = (client(server).await, client(server).await);
    let below = zk.chrooted("/a").unwrap();
    assert!(zk.is_same_view(&zk.clone()) && zk.is_same_view(&zk.patient()));
    assert!(below.is_same_view(&zk.chrooted("/a").unwrap()));
    assert!(!zk.is_same_view(&below) && !zk.is_same_view(&other));
    assert!(!below.is_same_view(&below.chrooted("/a").unwrap()));
    // Below the root that it has.
    below.chrooted("/b").unwrap().create("/c", b"").parents().await.unwrap();
    assert!(zk.exists("/a/b/c").await.unwrap().is_some());
}

#[test_with(on_each_release)]
async fn chroots_own_node_is_among_its_ephemeral_ones(server: &Place) {
    if !server.has(Feature::Ephemerals) {
        return;
    }
    let zk = client(server).await;
    let below = zk.chrooted("/mine").unwrap();
    below.create("/", b"").mode(CreateMode::Ephemeral).await.unwrap();
    zk.create("/mine-not", b"").mode(CreateMode::Ephemeral).await.unwrap();
    assert_eq!(below.ephemerals("/").await.unwrap(), ["/"]);
}
