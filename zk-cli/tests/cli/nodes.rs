//! `zk ls`, `get`, `set`, `create`, `delete`, `stat`; and what all commands have in common.

use std::process::Stdio;

use serde_json::json;
use zk_client::{CreateMode, ErrorCode, OpCode};
use zk_testkit::{
    TestServer,
    proxy::{Match, Proxy},
    real::Release,
};

use crate::support::{Running, World, must, run, zk};

#[tokio::test]
async fn node_commands_create_read_write_delete() {
    let world = World::new().await;
    assert_eq!(world.run(["create", "/a", "one"]).await.ok(), "/a\n");
    assert_eq!(world.run(["get", "/a"]).await.ok(), "one");
    assert_eq!(world.run(["set", "/a", "two"]).await.ok(), "");
    assert_eq!(world.run(["set", "--version", "1", "/a", "--", "-three"]).await.ok(), "");
    assert_eq!(world.run(["get", "/a"]).await.ok(), "-three");
    assert_eq!(world.run(["ls"]).await.ok(), "a\nzookeeper\n");
    assert_eq!(world.run(["delete", "--version", "2", "/a"]).await.ok(), "");
    assert_eq!(world.run(["ls", "/"]).await.ok(), "zookeeper\n");
}

#[tokio::test]
async fn every_command_speaks_json() {
    let world = World::new().await;
    let created = world.run(["create", "--json", "/a", "one"]).await.json();
    assert_eq!((&created["path"], &created["version"]), (&json!("/a"), &json!(0)));
    let got = world.run(["get", "--json", "/a"]).await.json();
    assert_eq!((&got["data"], &got["bytes"]), (&json!("one"), &json!(3)));
    assert_eq!(world.run(["set", "--json", "/a", "two"]).await.json()["version"], 1);
    let stat = world.run(["stat", "--json", "/a"]).await.json();
    assert_eq!(stat["czxid"], created["czxid"]);
    assert!(stat["mzxid"].as_i64() > stat["czxid"].as_i64());
    let listed = world.run(["ls", "--json", "/"]).await.json();
    assert_eq!(listed, json!({"path": "/", "children": ["a", "zookeeper"]}));
    let listed = world.run(["ls", "--json", "-l", "/"]).await.json();
    assert_eq!(listed["children"][0]["mzxid"], stat["mzxid"]);
    assert_eq!(world.run(["delete", "--json", "/a"]).await.json(), json!({"deleted": "/a"}));
}

#[tokio::test]
async fn data_may_be_binary_and_come_from_stdin() {
    let world = World::new().await;
    let mut create = world.zk();
    create.args(["create", "--json", "/a", "-"]);
    let mut running = Running::start(&mut create);
    running.tell("from standard input").await;
    running.close_input();
    running.ended().await.json();
    assert_eq!(world.run(["get", "/a"]).await.ok(), "from standard input\n");
    world.client.set("/a", b"\xff\x00\n").await.unwrap();
    assert_eq!(world.run(["get", "--json", "/a"]).await.json()["data_base64"], "/wAK");
    let output = world.zk().args(["get", "/a"]).output().await.unwrap();
    assert_eq!(output.stdout, b"\xff\x00\n");
}

#[tokio::test]
async fn nodes_of_every_kind_can_be_created() {
    let world = World::new().await;
    assert_eq!(world.run(["create", "--parents", "/p/q/r"]).await.ok(), "/p/q/r\n");
    assert_eq!(world.run(["create", "-p", "/p/q/s"]).await.ok(), "/p/q/s\n");
    assert_eq!(world.run(["create", "--sequential", "/p/n-"]).await.ok(), "/p/n-0000000001\n");
    assert_eq!(world.run(["create", "--container", "/c"]).await.ok(), "/c\n");
    assert_eq!(world.run(["create", "--ttl", "1h", "/t"]).await.ok(), "/t\n");
    let numbered = world.run(["create", "--ttl", "1h", "--sequential", "/p/n-"]).await;
    assert_eq!(numbered.ok(), "/p/n-0000000002\n");
    assert_eq!(world.run(["ls", "/"]).await.ok(), "c\np\nt\nzookeeper\n");
}

/// A node of the chroot itself is above those in it.
#[tokio::test]
async fn missing_chroot_is_created_with_the_parents() {
    let world = World::new().await;
    let inside = |chroot: &str| zk(&format!("{}{chroot}", world.server.connect_string()));
    for (chroot, path) in [("/one", "/q"), ("/two/levels", "/q/r")] {
        assert_eq!(run(inside(chroot).args(["ls", "/"])).await.code, Some(1));
        let refused = run(inside(chroot).args(["create", path])).await;
        assert!(refused.stderr.contains("--parents creates it"), "{refused:?}");
        let created = run(inside(chroot).args(["create", "-p", path, "x"])).await;
        assert_eq!(created.ok(), format!("{path}\n"));
        assert_eq!(world.run(["get", &format!("{chroot}{path}")]).await.ok(), "x");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), world.run(["export", "/one"]).await.stdout).unwrap();
    for (chroot, path) in
        [("/three", "/x"), ("/four", "/x/y"), ("/five", "/"), ("/six/levels", "/")]
    {
        let ended = run(inside(chroot).args(["import", path]).arg(file.path())).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let node = if path == "/" { format!("{chroot}/q") } else { format!("{chroot}{path}/q") };
        assert_eq!(world.run(["get", &node]).await.ok(), "x");
    }
    // The root of the chroot itself, and numbers that are all of a name.
    for (path, acl) in [("/seven", "world:anyone:cdrwa"), ("/eight/levels", "world:anyone:crw")] {
        let args = ["create", "-p", "--acl", acl, "/", "data"];
        assert_eq!(run(inside(path).args(args)).await.ok(), "/\n");
        assert_eq!(world.run(["get", path]).await.ok(), "data");
        assert_eq!(world.run(["acl", path]).await.ok(), format!("{acl}\n"));
    }
    assert_eq!(world.run(["acl", "/eight"]).await.ok(), "world:anyone:cdrwa\n");
    for (chroot, path) in [("", "/q/"), ("/nine", "/"), ("/ten/levels", "/"), ("/levels", "/q/r/")]
    {
        let created = run(inside(chroot).args(["create", "-p", "--sequential", path])).await;
        assert_eq!(created.ok(), format!("{path}0000000000\n"));
    }
    // The list is that of the node, and not of the root in which it is.
    let args = ["create", "-p", "--sequential", "--acl", "world:anyone:r", "/", "x"];
    assert_eq!(run(inside("/eleven/levels").args(args)).await.ok(), "/0000000000\n");
    let acl = async |path| world.run(["acl", path]).await.ok();
    assert_eq!(acl("/eleven/levels/0000000000").await, "world:anyone:r\n");
    assert_eq!(acl("/eleven/levels").await, "world:anyone:cdrwa\n");
}

/// They know neither containers nor the create that others are asked for.
#[tokio::test]
async fn servers_before_3_5_are_served_too() {
    let world = World::of(Release::V3_4).await;
    assert_eq!(world.run(["create", "--parents", "/p/q/r", "x"]).await.ok(), "/p/q/r\n");
    assert_eq!(world.run(["create", "--sequential", "/p/n-"]).await.ok(), "/p/n-0000000001\n");
    assert_eq!(world.run(["get", "/p/q/r"]).await.ok(), "x");
    let created = world.run(["create", "--json", "/p/m", "data"]).await.json();
    assert_eq!(created, world.run(["stat", "--json", "/p/m"]).await.json());
    assert_eq!(world.run(["lock", "/l", "--", "echo", "mine"]).await.ok(), "mine\n");
    let server = world.server.connect_string();
    let args = ["demo", "--server", &server, "--contenders", "5", "--hold", "0", "--json"];
    let demo = run(zk("").args(args)).await;
    assert_eq!(demo.code, Some(0), "{demo:?}");
    let refused = world.run(["create", "--container", "/c"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("older than 3.5"), "{refused:?}");
}

#[tokio::test]
async fn long_listing_and_stat_show_the_owner() {
    let world = World::new().await;
    let ephemeral = world.client.create("/e", b"12345").mode(CreateMode::Ephemeral);
    let created = ephemeral.await.unwrap();
    let session = world.client.session().id().to_string();
    let listed = world.run(["ls", "-l", "/"]).await.ok();
    let lines: Vec<Vec<&str>> = listed.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["VERSION", "CHILDREN", "BYTES", "WRITTEN", "SESSION", "NAME"]);
    assert_eq!((lines[1][2], lines[1][4], lines[1][5]), ("5", &*session, "e"));
    assert_eq!((lines[2][4], lines[2][5]), ("-", "zookeeper"));
    let stat = world.run(["stat", "/e"]).await.ok();
    assert!(stat.contains(&format!("as long as session {session}\n")), "{stat}");
    assert!(stat.contains(&created.stat.czxid.to_string()), "{stat}");
}

#[tokio::test]
async fn rejection_names_path_and_exits_with_1() {
    let world = World::new().await;
    world.run(["create", "--parents", "/a/b"]).await.ok();
    for (args, message) in [
        (&["get", "/none"][..], "/none: no such node"),
        (&["stat", "/none"], "/none: no such node"),
        (&["ls", "/none"], "/none: no such node"),
        (&["set", "/none", "x"], "/none: no such node"),
        (&["delete", "/none"], "/none: no such node"),
        (&["set", "/a", "x", "--version", "7"], "/a: its version is not the one named"),
        (&["delete", "/a/b", "--version", "7"], "/a/b: its version is not the one named"),
        (&["delete", "/a"], "/a: has children"),
        (&["create", "/a"], "/a: exists already"),
        (&["create", "/x/y"], "/x/y: its parent does not exist"),
    ] {
        let ended = world.run(args).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert_eq!(ended.complaint(), message, "{args:?}");
    }
}

#[tokio::test]
async fn write_in_doubt_has_its_own_exit_code() {
    let world = World::new().await;
    world.run(["create", "/a", "one"]).await.ok();
    let proxy = Proxy::start(world.server.addr()).await.unwrap();
    let _cut = proxy.on(Match::reply(OpCode::SET_DATA).once()).reset();
    let ended = run(zk(&proxy.connect_string()).args(["set", "/a", "two"])).await;
    assert_eq!(ended.code, Some(76), "{ended:?}");
    assert!(ended.stderr.starts_with("zk: /a: setData in doubt: "), "{ended:?}");
    // It was carried out, as it happens.
    assert_eq!(world.run(["get", "/a"]).await.ok(), "two");
}

#[tokio::test]
async fn paths_are_relative_to_the_chroot() {
    let world = World::new().await;
    world.run(["create", "--parents", "/app/a", "x"]).await.ok();
    let server = format!("{}/app", world.server.connect_string());
    assert_eq!(world.run(["ls", "--server", &server, "/"]).await.ok(), "a\n");
    assert_eq!(run(zk(&server).args(["create", "/b"])).await.ok(), "/b\n");
    assert_eq!(world.run(["ls", "/app"]).await.ok(), "a\nb\n");
}

#[tokio::test]
async fn closed_output_pipe_is_no_failure() {
    let world = World::new().await;
    for i in 0..2_000 {
        drop(world.client.create(&format!("/{i:0>60}"), b"").submit());
    }
    world.client.resolve_in_doubt().await.unwrap();
    // The pipe holds less than the listing, and `true` reads none of it.
    let script = "{ \"$0\" ls /; echo \"exit $?\" >&2; } | true";
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_zk")]);
    let ended = run(command.env("ZK_SERVER", world.server.connect_string())).await;
    assert_eq!(ended.stderr, "exit 0\n");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn unwritable_output_has_its_own_exit_code() {
    let world = World::new().await;
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status = world.zk().args(["ls", "/"]).stdout(full).stderr(Stdio::null()).status().await;
    assert_eq!(status.unwrap().code(), Some(74));
}

#[tokio::test]
async fn invalid_command_line_exits_with_2() {
    for args in [
        &["lock", "/l"][..],
        &["lock", "--try", "--timeout", "1", "/l", "--", "true"],
        &["lock", "--timeout", "soon", "/l", "--", "true"],
        &["create", "--container", "--sequential", "/a"],
        &["set", "/a"],
        &["get", "--server", "a:b:c", "/a"],
        &["demo", "--contenders", "0"],
        &["frobnicate"],
        &[],
    ] {
        let ended = run(zk("127.0.0.1:1").args(args)).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(!ended.stderr.is_empty(), "{args:?}");
    }
}

#[tokio::test]
async fn invalid_path_fails_before_connecting() {
    for args in
        [&["get", "no/slash"][..], &["lock", "no/slash", "--", "true"], &["stat", "no/slash"]]
    {
        let ended = run(zk("127.0.0.1:1").args(args)).await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("not absolute"), "{ended:?}");
    }
}

/// Servers since 3.8.4 and 3.9.2 do not tell whether a node is there that may not be read.
#[tokio::test]
async fn ephemeral_node_may_be_unreadable() {
    let server = TestServer::start().await.unwrap();
    let asked = server.on(Match::reply(OpCode::EXISTS)).watch();
    let args = ["create", "--ephemeral", "--acl", "world:anyone:c", "/here"];
    let mut held = Running::start(zk(&server.connect_string()).args(args));
    assert_eq!(held.line().await, "/here");
    let answer = must("the answer", asked.fired()).await;
    assert_eq!(answer.error, Some(ErrorCode::NO_AUTH));
    server.expire(server.sessions()[0]);
    let ended = held.ended().await;
    assert_eq!(ended.complaint(), "/here: deleted with the session, which has expired");
}
