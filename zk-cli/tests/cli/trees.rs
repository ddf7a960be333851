//! `zk ls -R`, `multi`: many nodes at once.

use serde_json::json;

use crate::support::{Running, World};

#[tokio::test]
async fn a_tree_is_listed_each_node_behind_its_parent() {
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
async fn operations_of_a_file_happen_together_or_not_at_all() {
    let world = World::new().await;
    world.run(["create", "/jobs", "one"]).await.ok();
    let file = tempfile::NamedTempFile::new().unwrap();
    let text =
        "# jobs\ncheck /jobs --version 0\ncreate --sequential /jobs/j- 'a \"b\"'\nset /jobs -two\n";
    std::fs::write(file.path(), text).unwrap();
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
async fn operations_come_from_standard_input_too_and_results_go_out_as_json() {
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
