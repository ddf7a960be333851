//! `zk ls -R`, `delete -r`, `multi`, `export`, `import`: many nodes at once.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use serde_json::json;
use zk_client::{CreateMode, ErrorCode, OpCode, Xid};
use zk_testkit::proxy::{Match, Proxy};

use crate::support::{Running, World, run, zk};

#[tokio::test]
async fn tree_is_deleted_or_the_obstacle_is_named() {
    let world = World::new().await;
    for path in ["/a/b/c", "/a/d", "/ab"] {
        world.run(["create", "--parents", path]).await.ok();
    }
    let report = world.run(["delete", "-r", "--json", "/a"]).await.json();
    assert_eq!(report, json!({"deleted": "/a", "nodes": 4}));
    assert_eq!(world.run(["ls", "/"]).await.ok(), "ab\nzookeeper\n");
    assert_eq!(world.run(["delete", "-r", "/a"]).await.stderr, "zk: /a: no such node\n");
    world.run(["create", "--parents", "/k/l/m"]).await.ok();
    // Children of this one must not be deleted.
    world.run(["acl", "/k/l", "world:anyone:r"]).await.ok();
    let refused = world.run(["delete", "-r", "/k"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let message = "zk: /k/l/m: no permission (0 nodes have been deleted before)\n";
    assert_eq!(refused.stderr, message);
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
    assert_eq!(again.stderr, "zk: /x/y: exists already\n");
    world.run(["set", "/x/y/b/c", "other"]).await.ok();
    let over = world.run(["import", "--overwrite", "/x/y", path]).await;
    assert_eq!((over.code, &*over.stderr), (Some(0), "zk: 0 nodes created, 3 written\n"));
    assert_eq!(world.run(["get", "/x/y/b/c"]).await.ok(), "text");
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
    let text =
        "# jobs\ncheck /jobs --version 0\ncreate --sequential /jobs/j- 'a \"b\"'\nset /jobs -two\n";
    fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(world.run(["multi", path]).await.ok(), "/jobs/j-0000000000\n");
    assert_eq!(world.run(["get", "/jobs/j-0000000000"]).await.ok(), "a \"b\"");
    assert_eq!(world.run(["get", "/jobs"]).await.ok(), "-two");
    // Its version is another one now.
    let refused = world.run(["multi", path]).await;
    let message = format!("zk: {path}:2: /jobs: its version is another one; nothing was done\n");
    assert_eq!((refused.code, refused.stderr), (Some(1), message));
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
