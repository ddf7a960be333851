//! `zk export` and `zk import` that fail: what is left of them.

use std::fs;

use rustix::process::Signal;
use zk_client::OpCode;
use zk_testkit::{TestServer, proxy::Match};

use crate::support::{Running, must, run, zk};

/// Those that were asked for together with the one that fails are there, whether in front of it or behind.
#[tokio::test]
async fn an_import_that_fails_leaves_what_it_has_created() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string();
    run(zk(&addr).args(["create", "-p", "/x/b"])).await.ok();
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines = ["a", "b", "c"].map(|path| format!("{{\"path\": \"{path}\", \"data\": \"\"}}\n"));
    fs::write(file.path(), lines.concat()).unwrap();
    let ended = run(zk(&addr).arg("import").arg("/x").arg(file.path())).await;
    assert_eq!((ended.code, ended.complaint()), (Some(1), "/x/b: exists already"));
    assert_eq!(run(zk(&addr).args(["ls", "/x"])).await.ok(), "a\nb\nc\n");
}

/// Where no server is.
const NOBODY: &str = "127.0.0.1:1";

/// A part of a tree could be taken for all of it, and an empty file would be in the way of the next try.
#[tokio::test]
async fn an_export_that_fails_leaves_no_file() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string();
    run(zk(&addr).args(["create", "-p", "/t/a"])).await.ok();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.jsonl");
    let export = |addr: &str, path: &str| {
        let mut command = zk(addr);
        let limit = if addr == NOBODY { "300ms" } else { "60s" };
        command.args(["export", "--connect-timeout", limit, path]).arg(&file);
        command
    };
    for (addr, path, code) in [(NOBODY, "/t", 69), (&*addr, "/none", 1)] {
        let ended = run(&mut export(addr, path)).await;
        assert_eq!((ended.code, file.exists()), (Some(code), false), "{ended:?}");
    }
    // In the middle of it.
    let held = server.on(Match::request(OpCode::GET_DATA).once()).hold();
    let running = Running::start(&mut export(&addr, "/t"));
    must("a question", held.fired()).await;
    running.signal(Signal::INT);
    let ended = running.ended().await;
    assert_eq!((ended.code, file.exists()), (Some(130), false), "{ended:?}");
    held.release();
    assert_eq!(run(&mut export(&addr, "/t")).await.code, Some(0));
    // One that was there before is none of its own.
    let ended = run(&mut export(&addr, "/t")).await;
    assert_eq!(ended.code, Some(74));
    assert!(ended.stderr.contains("name another file"), "{ended:?}");
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);
}
