//! `zk watch`, `acl`.

use zk_testkit::real::Release;

use crate::support::{Running, World, must};

#[tokio::test]
async fn tree_events_are_printed_as_they_happen() {
    let world = World::of(Release::V3_9).await;
    let mut command = world.zk();
    command.args(["watch", "-R", "--json", "/a"]);
    let mut watch = Running::start(&mut command);
    let mut next =
        async || -> serde_json::Value { serde_json::from_str(&watch.line().await).unwrap() };
    assert_eq!(next().await["what"], "watching");
    world.run(["create", "--parents", "/a/b", "x"]).await.ok();
    world.run(["set", "/a/b", "y"]).await.ok();
    world.run(["delete", "-r", "/a"]).await.ok();
    for (what, path) in [
        ("created", "/a"),
        ("created", "/a/b"),
        ("written", "/a/b"),
        ("deleted", "/a/b"),
        ("deleted", "/a"),
    ] {
        let line = next().await;
        assert_eq!((line["what"].as_str(), line["path"].as_str()), (Some(what), Some(path)));
        assert!(line["zxid"].is_i64(), "{line}");
    }
    watch.signal(rustix::process::Signal::INT);
    assert_eq!(must("the end", watch.ended()).await.code, Some(130));
}

#[tokio::test]
async fn servers_that_cannot_be_watched_say_so() {
    let world = World::of(Release::V3_5).await;
    let ended = world.run(["watch", "/a"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("before 3.6"), "{ended:?}");
}

#[tokio::test]
async fn acls_are_shown_and_replaced() {
    let world = World::new().await;
    world.run(["create", "/a"]).await.ok();
    assert_eq!(world.run(["acl", "/a"]).await.ok(), "world:anyone:cdrwa\n");
    let set = ["acl", "/a", "--version", "0", "world:anyone:ra", "digest:ann:hash=:cdrw"];
    assert_eq!(world.run(set).await.ok(), "");
    let shown = world.run(["acl", "--json", "/a"]).await.json();
    assert_eq!(shown["acl"], serde_json::json!(["world:anyone:ra", "digest:ann:hash=:cdrw"]));
    assert_eq!(shown["aversion"], 1);
    let stale = world.run(set).await;
    assert_eq!(stale.stderr, "zk: /a: its version is another one\n");
    let wrong = world.run(["acl", "/a", "everybody"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("SCHEME:ID:PERMISSIONS"), "{wrong:?}");
}
