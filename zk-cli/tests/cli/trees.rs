//! `zk ls -R`, `delete -r`, `multi`, `export`, `import`: many nodes at once.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use rustix::process::Signal;
use serde_json::json;
use zk_client::{CreateMode, ErrorCode, Id, OpCode, Perms, Xid};
use zk_testkit::{
    TestServer,
    proxy::{Match, Proxy},
    real::Release,
};

use crate::support::{Running, World, must, run, zk};

/// What is there to see is printed, and what is not is named.
#[tokio::test]
async fn unreadable_nodes_are_left_out_and_named() {
    let world = World::new().await;
    let server = world.server.connect_string();
    for path in ["/t/open/x", "/t/shut/y"] {
        world.run(["create", "-p", path]).await.ok();
    }
    let mut held = world.lock(&[], "/t/locks/a", "echo ready; read -r go");
    held.line().await;
    let owner = zk_client::ConnectOptions::new(&server).unwrap().auth("digest", "ann:secret");
    let owner = owner.connect().await.unwrap();
    let creator = zk_client::AclList::from_iter([zk_client::Acl::creator_all()]);
    owner.set_acl("/t/shut", &creator).await.unwrap();
    let listed = world.run(["ls", "-R", "/t"]).await;
    assert_eq!(listed.code, Some(1), "{listed:?}");
    assert!(listed.stdout.contains("/t/open/x\n/t/shut\n"), "{listed:?}");
    assert!(listed.stderr.starts_with("zk: /t/shut: not listed, no permission\n"), "{listed:?}");
    let holders = world.run(["holders", "-R", "/t"]).await;
    assert_eq!(holders.code, Some(1), "{holders:?}");
    assert!(
        holders.stdout.contains("/t/locks/a\n") && holders.stdout.contains("holds"),
        "{holders:?}"
    );
    assert!(holders.stderr.contains("/t/shut: not listed"), "{holders:?}");
    let top = world.run(["top", "--once", "/t"]).await;
    assert!(top.stdout.contains("1 nodes could not be listed"), "{top:?}");
    // A copy that lacks something is none.
    let export = world.run(["export", "/t", "-"]).await;
    assert_eq!((export.code, &*export.stdout), (Some(1), ""), "{export:?}");
    held.tell("go").await;
    assert_eq!(held.ended().await.code, Some(0));
}

/// Since 3.9.2 servers tell nothing of nodes that may not be read.
#[tokio::test]
async fn unreadable_child_hides_no_other() {
    let world = World::of(Release::V3_9).await;
    for path in ["/t/open/x", "/t/shut/y"] {
        world.run(["create", "-p", path]).await.ok();
    }
    world.client.create("/t/mine", b"").mode(CreateMode::Ephemeral).await.unwrap();
    let owner = zk_client::ConnectOptions::new(&world.server.connect_string()).unwrap();
    let owner = owner.auth("digest", "ann:secret").connect().await.unwrap();
    let creator = zk_client::AclList::from_iter([zk_client::Acl::creator_all()]);
    owner.set_acl("/t/shut", &creator).await.unwrap();
    for (args, shown) in [
        (&["ls", "-l", "/t"][..], &[" open\n", " mine\n"][..]),
        (&["ls", "-l", "-R", "/t"], &[" /t/open/x\n", " /t/mine\n"]),
        (&["ephemerals", "/t"], &[" /t/mine\n"]),
    ] {
        let listed = world.run(args).await;
        assert_eq!(listed.code, Some(1), "{listed:?}");
        assert!(shown.iter().all(|shown| listed.stdout.contains(shown)), "{listed:?}");
        assert!(
            listed.stderr.starts_with("zk: /t/shut: not listed, no permission\n"),
            "{listed:?}"
        );
    }
}

#[tokio::test]
async fn tree_is_deleted_or_the_obstacle_is_named() {
    let world = World::new().await;
    for path in ["/a/b/c", "/a/d", "/ab"] {
        world.run(["create", "--parents", path]).await.ok();
    }
    let report = world.run(["delete", "-r", "--json", "/a"]).await.json();
    assert_eq!(report, json!({"deleted": "/a", "nodes": 4}));
    assert_eq!(world.run(["ls", "/"]).await.ok(), "ab\nzookeeper\n");
    assert_eq!(world.run(["delete", "-r", "/a"]).await.complaint(), "/a: no such node");
    world.run(["create", "--parents", "/k/l/m"]).await.ok();
    // Children of this one must not be deleted.
    world.run(["acl", "/k/l", "world:anyone:r"]).await.ok();
    let refused = world.run(["delete", "-r", "/k"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let message = "/k/l/m: no permission (0 nodes have been deleted before)";
    assert_eq!(refused.complaint(), message);
}

#[tokio::test]
async fn exported_tree_is_imported_elsewhere() {
    let world = World::new().await;
    world.run(["create", "--parents", "/a/b/c", "text"]).await.ok();
    world.client.set("/a", b"\xff\x00").await.unwrap();
    world.run(["acl", "/a/b", "world:anyone:cdrwa", "ip:127.0.0.1:r"]).await.ok();
    world.client.create("/a/e", b"").mode(CreateMode::Ephemeral).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.jsonl");
    let path = file.to_str().unwrap();
    let exported = world.run(["export", "--acl", "/a", path]).await;
    let told = "zk: 3 nodes exported, 1 ephemeral ones left out, 0 gone meanwhile\n";
    assert_eq!((exported.code, &*exported.stderr), (Some(0), told));
    // It does not overwrite.
    assert_eq!(world.run(["export", "/a", path]).await.code, Some(74));

    let imported = world.run(["import", "/x/y", path]).await;
    assert_eq!((imported.code, &*imported.stderr), (Some(0), "zk: 3 nodes created, 0 written\n"));
    assert_eq!(&*world.client.get("/x/y").await.unwrap().0, b"\xff\x00");
    assert_eq!(world.run(["get", "/x/y/b/c"]).await.ok(), "text");
    let entries = "world:anyone:cdrwa\nip:127.0.0.1:r\n";
    assert_eq!(world.run(["acl", "/x/y/b"]).await.ok(), entries);

    let again = world.run(["import", "/x/y", path]).await;
    assert_eq!(again.complaint(), "/x/y: exists already");
    world.run(["set", "/x/y/b/c", "other"]).await.ok();
    let over = world.run(["import", "--overwrite", "/x/y", path]).await;
    assert_eq!((over.code, &*over.stderr), (Some(0), "zk: 0 nodes created, 3 written\n"));
    assert_eq!(world.run(["get", "/x/y/b/c"]).await.ok(), "text");
}

/// Servers keep entries that permit nothing.
#[tokio::test]
async fn entry_without_permissions_is_imported_as_exported() {
    let world = World::new().await;
    world.client.create("/a", b"").await.unwrap();
    let here = Id::address([127, 0, 0, 1].into());
    let list = [Id::anyone().may(Perms::NONE), here.may(Perms::ALL)];
    world.client.set_acl("/a", &list.into_iter().collect()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.jsonl");
    let path = file.to_str().unwrap();
    for run in [["export", "--acl", "/a", path].as_slice(), &["import", "/b", path]] {
        let ended = world.run(run.iter().copied()).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    for path in ["/a", "/b"] {
        let entries = "world:anyone:\nip:127.0.0.1:cdrwa\n";
        assert_eq!(world.run(["acl", path]).await.ok(), entries, "{path}");
    }
    // A person who types that has forgotten something.
    assert_eq!(world.run(["acl", "/a", "world:anyone:"]).await.code, Some(2));
}

#[tokio::test]
async fn a_file_with_a_mistake_creates_nothing() {
    let world = World::new().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    for wrong in [
        "nonsense",
        r#"{"path": "b"}"#,
        r#"{"path": "b", "data_base64": "?"}"#,
        r#"{"path": "b", "data": "", "acl": ["all"]}"#,
        // As servers show it to those who may not change it: nobody could use it.
        r#"{"path": "b", "data": "", "acl": ["digest:ann:x:cdrwa"]}"#,
        r#"{"path": "b//c", "data": ""}"#,
        r#"{"path": "/b", "data": ""}"#,
        r#"{"path": "../b", "data": ""}"#,
    ] {
        fs::write(file.path(), format!("{{\"path\": \"\", \"data\": \"\"}}\n{wrong}\n")).unwrap();
        let ended = world.run(["import", "/new", path]).await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.starts_with(&format!("zk: {path}:2: ")), "{ended:?}");
    }
    assert_eq!(world.run(["ls", "/"]).await.ok(), "zookeeper\n");
}

#[tokio::test]
async fn export_of_root_omits_system_nodes() {
    let world = World::new().await;
    world.run(["create", "--parents", "/a/b"]).await.ok();
    let exported = world.run(["export", "/"]).await;
    let paths = exported.stdout.lines().map(|line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["path"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    assert_eq!(paths.collect::<Vec<_>>(), ["", "a", "a/b"]);
}

/// Below a chroot a node of that name is as good as any other.
#[tokio::test]
async fn node_called_zookeeper_below_a_chroot_is_exported() {
    let world = World::new().await;
    world.run(["create", "--parents", "/app/zookeeper/b", "text"]).await.ok();
    let chroot = format!("{}/app", world.server.connect_string());
    let exported = run(zk(&chroot).args(["export", "/"])).await;
    assert!(exported.stdout.contains(r#""path":"zookeeper/b","data":"text""#), "{exported:?}");
}

/// Servers show those who may not change a list no hashes: what is exported would be nobody's.
#[tokio::test]
async fn list_without_its_hashes_is_not_exported() {
    let world = World::new().await;
    let readable = [zk_client::Acl::creator_all(), Id::anyone().may(Perms::READ)];
    let owner = zk_client::ConnectOptions::new(&world.server.connect_string()).unwrap();
    let owner = owner.auth("digest", "ann:secret").connect().await.unwrap();
    owner.create("/anns", b"").acl(&readable.into_iter().collect()).await.unwrap();
    let shown = world.run(["acl", "/anns"]).await.ok();
    assert!(shown.contains("digest:ann:x:"), "{shown}");
    let exported = world.run(["export", "--acl", "/anns"]).await;
    assert_eq!((exported.code, &*exported.stdout), (Some(1), ""), "{exported:?}");
    assert!(exported.stderr.starts_with("zk: /anns: servers tell its digests"), "{exported:?}");
    // The rest of it is there for all.
    assert_eq!(world.run(["export", "/anns"]).await.code, Some(0));
    owner.close().await.unwrap();
}

#[tokio::test]
async fn tree_lists_children_after_their_parent() {
    let world = World::new().await;
    for path in ["/a/b/d", "/a/b-c", "/a/e"] {
        world.run(["create", "--parents", path]).await.ok();
    }
    // A hyphen comes before a slash among bytes, but not among paths.
    assert_eq!(world.run(["ls", "-R", "/a"]).await.ok(), "/a/b\n/a/b/d\n/a/b-c\n/a/e\n");
    let listed = world.run(["ls", "-R", "--json", "/a/b"]).await.json();
    assert_eq!(listed, json!({"path": "/a/b", "descendants": ["/a/b/d"]}));
    let listed = world.run(["ls", "-lR", "--json", "/a"]).await.json();
    assert_eq!(listed["descendants"][1]["path"], "/a/b/d");
    let listed = world.run(["ls", "-lR", "/a"]).await.ok();
    assert!(listed.lines().nth(2).unwrap().ends_with(" /a/b/d"), "{listed}");
    assert_eq!(world.run(["ls", "-R", "/none"]).await.code, Some(1));
}

#[tokio::test]
async fn multi_file_is_all_or_nothing() {
    let world = World::new().await;
    world.run(["create", "/jobs", "one"]).await.ok();
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "# jobs\ncheck /jobs --version 0\ncreate --sequential /jobs/j- 'a \"b\"'\nset /jobs -- -two\n";
    fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(world.run(["multi", path]).await.ok(), "/jobs/j-0000000000\n");
    assert_eq!(world.run(["get", "/jobs/j-0000000000"]).await.ok(), "a \"b\"");
    assert_eq!(world.run(["get", "/jobs"]).await.ok(), "-two");
    // Its version is another one now.
    let refused = world.run(["multi", path]).await;
    let message = format!("{path}:2: /jobs: its version is not the one named; nothing was done");
    assert_eq!((refused.code, refused.complaint()), (Some(1), &*message));
    // What is missing is the node above.
    fs::write(file.path(), "create /none/a x\n").unwrap();
    let refused = world.run(["multi", path]).await;
    let message = format!("{path}:1: /none/a: its parent does not exist; nothing was done");
    assert_eq!((refused.code, refused.complaint()), (Some(1), &*message));
    fs::write(file.path(), "create --sequential /q/r/ x\n").unwrap();
    let refused = world.run(["multi", path]).await;
    assert!(refused.stderr.contains("zk create -p /q/r creates it"), "{refused:?}");
    assert_eq!(world.run(["ls", "/jobs"]).await.ok(), "j-0000000000\n");
}

#[tokio::test]
async fn multi_reads_stdin_and_prints_json() {
    let world = World::new().await;
    let mut multi = world.zk();
    multi.args(["multi", "-", "--json"]);
    let mut running = Running::start(&mut multi);
    running.tell("create /a one").await;
    running.tell("delete /a").await;
    running.tell("check /").await;
    running.close_input();
    let report = running.ended().await.json();
    assert_eq!(report["results"][0]["created"]["path"], "/a");
    assert_eq!(report["results"][1], json!({"deleted": "/a"}));
    assert_eq!(report["results"][2], json!({"checked": "/"}));
    let wrong = world.run(["multi", "/nowhere/at/all"]).await;
    assert_eq!(wrong.code, Some(74), "{wrong:?}");
}

/// Each create of an import is turned away once by a server that has too much to do: the command asks again, and for what
/// is below it as well.
#[tokio::test]
async fn import_retries_on_a_busy_server() {
    let world = World::new().await;
    world.run(["create", "--parents", "/from/a/b/c", "text"]).await.ok();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.jsonl");
    let file = file.to_str().unwrap();
    world.run(["export", "/from", file]).await;
    for nth in 1..=4 {
        let proxy = Proxy::start(world.server.addr()).await.unwrap();
        let number = Arc::new(Mutex::new(None));
        let asked = number.clone();
        let busy = proxy.on(Match::request(OpCode::CREATE2).nth(nth)).rewrite(move |request| {
            let xid = request[..4].iter().fold(0, |xid, byte| xid << 8 | i32::from(*byte));
            *asked.lock().unwrap() = Some(Xid(xid));
            // The server is asked something else, which keeps its turn: exists "/", unwatched.
            request.truncate(4);
            request.extend([0, 0, 0, 3, 0, 0, 0, 1, b'/', 0]);
        });
        let owed = Match::replies()
            .when(move |frame| frame.xid.is_some() && frame.xid == *number.lock().unwrap());
        let told = proxy.on(owed.once()).rewrite(|reply| {
            reply.truncate(12);
            let code = ErrorCode::THROTTLED_OP.0;
            reply.extend([24, 16, 8, 0].map(|shift| (code >> shift & 0xFF) as u8));
        });
        let to = format!("/to-{nth}");
        let imported = run(zk(&proxy.connect_string()).args(["import", &to, file])).await;
        let report = "zk: 4 nodes created, 0 written\n";
        assert_eq!((imported.code, &*imported.stderr), (Some(0), report), "{nth}");
        assert_eq!((busy.times_fired(), told.times_fired()), (1, 1), "{nth}");
        assert_eq!(&*world.client.get(&format!("{to}/a/b/c")).await.unwrap().0, b"text");
    }
}

#[tokio::test]
async fn closed_pipe_ends_an_export() {
    let world = World::new().await;
    for i in 0..2_000 {
        drop(world.client.create(&format!("/{i:0>60}"), b"").submit());
    }
    world.client.resolve_in_doubt().await.unwrap();
    // The pipe holds less than all nodes, and `true` reads none of them.
    let script = "{ \"$0\" export /; echo \"exit $?\" >&2; } | true";
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_zk")]);
    let ended = run(command.env("ZK_SERVER", world.server.connect_string())).await;
    assert_eq!(ended.stderr, "exit 0\n");
}

#[tokio::test]
async fn nodes_are_counted_on_every_release() {
    for release in Release::ALL {
        let world = World::of(release).await;
        for path in ["/a/b/c", "/a/d", "/ab"] {
            world.run(["create", "--parents", path]).await.ok();
        }
        assert_eq!(world.run(["count", "/a"]).await.ok(), "3\n", "{release}");
        let json = world.run(["count", "--json", "/a/b"]).await.json();
        assert_eq!(json, json!({"path": "/a/b", "descendants": 1}), "{release}");
        assert_eq!(world.run(["count", "/none"]).await.code, Some(1), "{release}");
        assert_eq!(world.run(["sync", "/a"]).await.ok(), "", "{release}");
    }
}

#[tokio::test]
async fn ephemerals_are_listed_with_their_sessions() {
    for release in [Release::V3_4, Release::V3_9] {
        let world = World::of(release).await;
        world.run(["create", "--parents", "/a/b/plain"]).await.ok();
        world.client.create("/a/e", b"").mode(CreateMode::Ephemeral).await.unwrap();
        let mut kept = Running::start(world.zk().args(["create", "--ephemeral", "/a/b/k", "mine"]));
        assert_eq!(kept.line().await, "/a/b/k");
        let session = world.client.session().id().to_string();
        let all = world.run(["ephemerals", "--json", "/a"]).await.json();
        let paths: Vec<_> =
            all["ephemerals"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
        assert_eq!(paths, ["/a/b/k", "/a/e"]);
        let mine = world.run(["ephemerals", "--session", &session]).await.ok();
        assert_eq!(mine.lines().count(), 2, "{mine}");
        assert!(mine.lines().nth(1).unwrap().starts_with(&session), "{mine}");
        assert_eq!(world.run(["get", "/a/b/k"]).await.ok(), "mine");
        kept.signal(Signal::TERM);
        assert_eq!(kept.ended().await.code, Some(143));
        assert_eq!(world.run(["ls", "/a/b"]).await.ok(), "plain\n");
        let mut kept = Running::start(world.zk().args(["create", "--ephemeral", "/a/k"]));
        kept.line().await;
        world.client.delete("/a/k").await.unwrap();
        let ended = kept.ended().await;
        assert!(ended.complaint().contains("deleted by another client"), "{ended:?}");
    }
}

#[tokio::test]
async fn acls_of_a_tree_and_of_new_nodes_are_set() {
    let world = World::new().await;
    let open = ["--acl", "world:anyone:ra", "--acl", "ip:127.0.0.1:cdrwa"];
    world.run([&["create"][..], &open, &["/a"]].concat()).await.ok();
    assert_eq!(world.run(["acl", "/a"]).await.ok(), "world:anyone:ra\nip:127.0.0.1:cdrwa\n");
    world.run(["create", "--parents", "/a/b/c"]).await.ok();
    world.run(["acl", "-R", "/a", "ip:127.0.0.1:cdrwa"]).await.ok();
    for path in ["/a", "/a/b", "/a/b/c"] {
        assert_eq!(world.run(["acl", path]).await.ok(), "ip:127.0.0.1:cdrwa\n", "{path}");
    }
}

/// What servers keep for themselves has lists of its own.
#[tokio::test]
async fn acls_of_everything_leave_out_the_nodes_of_the_servers() {
    let world = World::new().await;
    world.run(["create", "--parents", "/a/b"]).await.ok();
    let before = world.run(["acl", "/zookeeper/quota"]).await.ok();
    world.run(["acl", "-R", "/", "ip:127.0.0.1:cdrwa"]).await.ok();
    assert_eq!(world.run(["acl", "/a/b"]).await.ok(), "ip:127.0.0.1:cdrwa\n");
    assert_eq!(world.run(["acl", "/zookeeper/quota"]).await.ok(), before);
}

/// The root is there, whatever is imported into it.
#[tokio::test]
async fn export_of_root_is_imported_into_an_empty_server() {
    let (from, to) = (World::new().await, World::new().await);
    from.run(["create", "--parents", "/a/b", "text"]).await.ok();
    from.run(["set", "/", "top"]).await.ok();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all");
    let name = file.to_str().unwrap();
    for (world, args) in [(&from, ["export", "/", name]), (&to, ["import", "/", name])] {
        let done = world.run(args).await;
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    assert_eq!(to.run(["get", "/a/b"]).await.ok(), "text");
    assert_eq!(to.run(["get", "/"]).await.ok(), "top");
    let again = to.run(["import", "/", name]).await;
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("/a: exists already"), "{again:?}");
}

#[tokio::test]
async fn a_node_that_goes_during_an_export_is_counted() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string();
    run(zk(&addr).args(["create", "-p", "/t/a"])).await.ok();
    run(zk(&addr).args(["create", "/t/b"])).await.ok();
    let held = server.on(Match::request(OpCode::GET_ACL).path("/t/a").once()).hold();
    let mut export = zk(&addr);
    let exported = run(export.args(["export", "--acl", "/t", "-"]));
    let deleted = async {
        must("a question", held.fired()).await;
        run(zk(&addr).args(["delete", "/t/a"])).await.ok();
        held.release();
    };
    let (exported, ()) = tokio::join!(exported, deleted);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    assert_eq!(exported.stdout.lines().count(), 2, "{exported:?}");
    assert!(exported.stderr.contains("1 gone meanwhile"), "{exported:?}");
}

/// Who gives a tree away may not list it afterwards.
#[tokio::test]
async fn a_whole_tree_can_be_given_away() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string();
    run(zk(&addr).args(["create", "-p", "/g/a/b"])).await.ok();
    let others = "digest:ann:qJ7HQqzpyLxCuC/lYhQGu1yzMK0=:cdrwa";
    run(zk(&addr).args(["acl", "-R", "/g", others])).await.ok();
    for path in ["/g", "/g/a", "/g/a/b"] {
        let kept = run(zk(&addr).args(["get", path])).await;
        assert_eq!(kept.code, Some(1), "{path}: {kept:?}");
    }
}
