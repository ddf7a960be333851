//! Watches that fire once.

use zk_client::{EventType, ReadError, Rejection, SessionEnd};
use zk_tests::test_with;

use crate::{Place, client, on_each_release, on_each_release_to_restart};

#[test_with(on_each_release)]
async fn each_kind_of_watch_fires_for_its_changes(server: &Place) {
    let zk = client(server).await;
    let (missing, created) = zk.exists("/w").watch().await.unwrap();
    assert_eq!(missing, None);
    assert_eq!(
        zk.get("/w").watch().await.unwrap_err(),
        ReadError::Rejected(Rejection::NoNode),
        "no node, no watch"
    );
    zk.create("/w", b"").await.unwrap();
    let event = created.await.unwrap();
    assert_eq!((event.kind, event.path.as_str()), (EventType::NODE_CREATED, "/w"));

    let (_, data) = zk.get("/w").watch().await.unwrap();
    let (_, children) = zk.children("/w").watch().await.unwrap();
    zk.create("/w/c", b"").await.unwrap();
    assert_eq!(children.await.unwrap().kind, EventType::NODE_CHILDREN_CHANGED);
    zk.set("/w", b"x").await.unwrap();
    assert_eq!(data.await.unwrap().kind, EventType::NODE_DATA_CHANGED);

    let (_, gone) = zk.exists("/w/c").watch().await.unwrap();
    zk.delete("/w/c").await.unwrap();
    assert_eq!(gone.await.unwrap().kind, EventType::NODE_DELETED);
}

#[test_with(on_each_release)]
async fn event_arrives_before_the_reply_behind_it(server: &Place) {
    let (reader, writer) = (client(server).await, client(server).await);
    writer.create("/w", b"0").await.unwrap();
    for version in 1..200 {
        let (_, mut watch) = reader.get("/w").watch().await.unwrap();
        let write = writer.set("/w", b"x").submit();
        while reader.get("/w").await.unwrap().1.version < version {}
        assert!(watch.try_event().is_some(), "version {version} was seen before its event");
        write.await.unwrap();
    }
}

#[test_with(on_each_release_to_restart)]
async fn watches_survive_restart_and_catch_up(server: &Place) {
    let (zk, other) = (client(server).await, client(server).await);
    for path in ["/kept", "/changed", "/deleted"] {
        zk.create(path, b"").await.unwrap();
    }
    let (_, mut kept) = zk.get("/kept").watch().await.unwrap();
    let (_, later) = zk.exists("/later").watch().await.unwrap();
    server.restart_under(&other).await;
    other.create("/later", b"").await.unwrap();
    assert_eq!(later.await.unwrap().kind, EventType::NODE_CREATED);
    assert_eq!(kept.try_event(), None);
    other.set("/kept", b"x").await.unwrap();
    assert_eq!(kept.await.unwrap().kind, EventType::NODE_DATA_CHANGED);
}

#[test_with(on_each_release)]
async fn session_end_resolves_every_watch(server: &Place) {
    let zk = client(server).await;
    let (_, watch) = zk.exists("/never").watch().await.unwrap();
    zk.close().await.unwrap();
    assert_eq!(watch.await, Err(SessionEnd::Closed));
}
