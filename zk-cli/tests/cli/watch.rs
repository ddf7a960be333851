//! `zk watch`, `acl`.

use std::pin::pin;

use zk_client::Client;
use zk_locks::Election;
use zk_testkit::{TestServer, real::Release};

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

/// There, a copy is kept, of which differences are told: each is waited for, so that none is passed over.
#[tokio::test]
async fn changes_are_seen_on_servers_before_3_6() {
    for release in [Release::V3_4, Release::V3_5, Release::V3_9] {
        let world = World::of(release).await;
        let mut one = Running::start(world.zk().args(["watch", "--json", "/a"]));
        let mut tree = Running::start(world.zk().args(["watch", "-R", "--json", "/a"]));
        for watch in [&mut one, &mut tree] {
            assert_eq!(told(watch).await, ("watching".to_owned(), "/a".to_owned()));
        }
        for (args, of_one, of_tree) in [
            (&["create", "/a", "x"][..], Some(("created", "/a")), Some(("created", "/a"))),
            (&["set", "/a", "y"], Some(("written", "/a")), Some(("written", "/a"))),
            (&["create", "/a/b", "x"], Some(("children", "/a")), Some(("created", "/a/b"))),
            (&["set", "/a/b", "y"], None, Some(("written", "/a/b"))),
            (&["delete", "/a/b"], Some(("children", "/a")), Some(("deleted", "/a/b"))),
            (&["delete", "/a"], Some(("deleted", "/a")), Some(("deleted", "/a"))),
        ] {
            world.run(args).await.ok();
            for (watch, expected) in [(&mut one, of_one), (&mut tree, of_tree)] {
                if let Some((what, path)) = expected {
                    let expected = (what.to_owned(), path.to_owned());
                    assert_eq!(told(watch).await, expected, "{release} {args:?}");
                }
            }
        }
    }
}

/// A node that may not be read.
const HIDDEN: [&str; 4] =
    ["create", "--acl", "digest:ann:qJ7HQqzpyLxCuC/lYhQGu1yzMK0=:cdrwa", "/a/h"];

/// Which is there before.
#[tokio::test]
async fn node_with_hidden_children_is_watched() {
    for release in [Release::V3_4, Release::V3_5, Release::V3_9] {
        let world = World::of(release).await;
        world.run(["create", "/a"]).await.ok();
        world.run(HIDDEN).await.ok();
        let mut one = Running::start(world.zk().args(["watch", "--json", "/a"]));
        let mut tree = Running::start(world.zk().args(["watch", "-R", "--json", "/a"]));
        for watch in [&mut one, &mut tree] {
            assert_eq!(told(watch).await, ("watching".to_owned(), "/a".to_owned()));
        }
        if release < Release::V3_6 {
            let remark = tree.remark().await;
            assert!(remark.contains("may not be listed"), "{release} {remark}");
        }
        world.run(["create", "/a/b"]).await.ok();
        assert_eq!(told(&mut one).await, ("children".to_owned(), "/a".to_owned()));
        assert_eq!(told(&mut tree).await, ("created".to_owned(), "/a/b".to_owned()));
        if release < Release::V3_6 {
            // Later servers tell it to those who watch the node alone, and since 3.8.4 to no others.
            world.run(["delete", "/a/h"]).await.ok();
            assert_eq!(told(&mut one).await, ("children".to_owned(), "/a".to_owned()));
            assert_eq!(told(&mut tree).await, ("deleted".to_owned(), "/a/h".to_owned()));
        }
    }
}

async fn told(watch: &mut Running) -> (String, String) {
    let line: serde_json::Value = serde_json::from_str(&watch.line().await).unwrap();
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    (text("what"), text("path"))
}

#[tokio::test]
async fn a_command_is_run_for_each_change() {
    let world = World::of(Release::V3_9).await;
    let script =
        "echo \"> $ZK_WATCH_EVENT $ZK_WATCH_PATH $ZK_WATCH_ZXID\"; [ $ZK_WATCH_EVENT != written ]";
    let mut watch = Running::start(world.zk().args(["watch", "/a", "--", "sh", "-c", script]));
    assert!(watch.line().await.contains(" watching "));
    assert_eq!(watch.line().await, "> watching /a ");
    world.run(["create", "/a"]).await.ok();
    assert!(watch.line().await.contains(" created "));
    assert!(watch.line().await.starts_with("> created /a 0x"));
    world.run(["set", "/a", "x"]).await.ok();
    assert!(watch.line().await.contains(" written "));
    assert!(watch.line().await.starts_with("> written /a 0x"));
    let remark = watch.remark().await;
    assert!(remark.contains("the command has failed"), "{remark}");
    watch.signal(rustix::process::Signal::TERM);
    assert_eq!(watch.ended().await.code, Some(143));
}

#[tokio::test]
async fn command_of_a_watch_gets_its_signal() {
    let world = World::of(Release::V3_9).await;
    let script = "trap 'echo told; exit' TERM; echo ready; while :; do sleep 0.02; done";
    let mut watch = Running::start(world.zk().args(["watch", "/a", "--", "sh", "-c", script]));
    watch.line().await;
    assert_eq!(watch.line().await, "ready");
    watch.signal(rustix::process::Signal::TERM);
    let ended = watch.ended().await;
    assert_eq!((ended.code, &*ended.stdout), (Some(143), "told\n"), "{ended:?}");
}

/// As in `zk watch / | head -1`: with the first line that has no reader.
#[tokio::test]
async fn commands_that_last_end_with_their_reader() {
    let server = TestServer::start().await.unwrap();
    let client = Client::connect(&server.connect_string()).await.unwrap();
    let election = Election::new(&client, "/e");
    for line in [
        "watch -R /e",
        "watch -R --json /e",
        "holders --watch /e",
        "holders --watch --json /e",
        "elect /e",
        "elect --json /e",
    ] {
        let script = format!("{{ \"$0\" {line}; echo \"exit $?\" >&2; }} | head -n 1");
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_zk")]);
        let mut running = Running::start(command.env("ZK_SERVER", server.connect_string()));
        running.line().await;
        let mut ended = pin!(running.ended());
        let ended = loop {
            tokio::select! {
                ended = &mut ended => break ended,
                // The reader takes a moment to go.
                led = election.campaign(b"me") => led.unwrap().resign().await.unwrap(),
            }
        };
        assert_eq!((ended.code, &*ended.stderr), (Some(0), "exit 0\n"), "{line}");
    }
}

/// What it runs is what it is for.
#[tokio::test]
async fn watch_with_a_command_needs_no_reader() {
    let server = TestServer::start().await.unwrap();
    let client = Client::connect(&server.connect_string()).await.unwrap();
    let script = "\"$0\" watch /a -- sh -c 'echo $ZK_WATCH_EVENT >&2' | true";
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_zk")]);
    let mut running = Running::start(command.env("ZK_SERVER", server.connect_string()));
    assert_eq!(running.remark().await, "watching");
    for event in ["created", "written"] {
        match event {
            "created" => drop(client.create("/a", b"").await.unwrap()),
            _ => drop(client.set("/a", b"x").await.unwrap()),
        }
        assert_eq!(running.remark().await, event);
    }
    // It ends with its session.
    server.expire(server.sessions().into_iter().find(|id| *id != client.session().id()).unwrap());
    assert!(running.ended().await.stderr.contains("expired"));
}

#[tokio::test]
async fn acls_are_shown_and_replaced() {
    let world = World::new().await;
    world.run(["create", "/a"]).await.ok();
    assert_eq!(world.run(["acl", "/a"]).await.ok(), "world:anyone:cdrwa\n");
    let set = [
        "acl",
        "/a",
        "--version",
        "0",
        "world:anyone:ra",
        "digest:ann:qJ7HQqzpyLxCuC/lYhQGu1yzMK0=:cdrw",
    ];
    assert_eq!(world.run(set).await.ok(), "");
    let shown = world.run(["acl", "--json", "/a"]).await.json();
    assert_eq!(
        shown["acl"],
        serde_json::json!(["world:anyone:ra", "digest:ann:qJ7HQqzpyLxCuC/lYhQGu1yzMK0=:cdrw"])
    );
    assert_eq!(shown["aversion"], 1);
    let stale = world.run(set).await;
    assert_eq!(stale.complaint(), "/a: its version is not the one named");
    let wrong = world.run(["acl", "/a", "everybody"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("SCHEME:ID:PERMISSIONS"), "{wrong:?}");
}
