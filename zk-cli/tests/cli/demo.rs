//! `zk demo`.

use zk_testkit::{TestServer, proxy::Match};

use crate::support::{World, run, zk};

#[tokio::test]
async fn demo_runs_fifty_contenders_on_own_server() {
    let ended =
        run(zk("127.0.0.1:1").args(["demo", "--contenders", "50", "--hold", "5", "--json"])).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: serde_json::Value =
        serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(report["passed"], true, "{report}");
    assert_eq!(report["acquisitions"], 50);
    assert_eq!(report["overlaps"], 0);
    assert_eq!(report["stale_tokens"], 0);
    assert_eq!(report["in_order"], true);
    assert_eq!(report["orphans"], 0);
    // Counted frames, so they come out even: one create and one delete for each, and nothing for the
    // lock's path or the sessions.
    let operations = report["requests_by_operation"].as_object().unwrap();
    assert_eq!(
        (&operations["create2"], &operations["delete"]),
        (&50.into(), &50.into()),
        "{report}"
    );
    let sum: u64 = operations.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(report["requests"], sum);
    assert_eq!(report["requests_per_acquisition"].as_f64().unwrap(), sum as f64 / 50.0);
    // A line for each grant, and the server that was started.
    assert_eq!(ended.stderr.lines().filter(|line| line.contains("/50  contender")).count(), 50);
    assert!(ended.stderr.starts_with("in-process server"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("PASSED\n"), "{}", ended.stderr);
}

#[tokio::test]
async fn demo_leaves_a_running_server_unchanged() {
    let world = World::new().await;
    let server = world.server.connect_string();
    let args = ["demo", "--server", &server, "--contenders", "3", "--rounds", "4", "--hold", "0"];
    let ended = run(zk("127.0.0.1:1").args(args).args(["--path", "/x/y"])).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("12 of 12"), "{ended:?}");
    assert!(ended.stdout.ends_with("PASSED\n"), "{ended:?}");
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ended.stdout);
    assert_eq!(world.run(["ls", "/"]).await.ok(), "zookeeper\n");
}

/// Such as where servers accept fewer connections of one address than there are contenders.
#[tokio::test]
async fn demo_that_fails_leaves_no_path() {
    let server = TestServer::start().await.unwrap();
    // Who comes after the referee is told that the session is over.
    let refuse = |answer: &mut Vec<u8>| answer[4..16].fill(0);
    let refused = server.on(Match::connect_response().skip(1)).rewrite(refuse);
    let addr = server.connect_string();
    let args = ["demo", "--server", &addr, "--contenders", "2", "--path", "/x/y"];
    let ended = run(zk("").args(args)).await;
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert!(refused.times_fired() > 0, "{ended:?}");
    assert!(!server.paths().iter().any(|path| path.starts_with("/x")), "{:?}", server.paths());
}

#[tokio::test]
async fn demo_refuses_a_lock_in_use() {
    let world = World::new().await;
    world.run(["create", "--parents", "/used/by-somebody"]).await.ok();
    let server = world.server.connect_string();
    let ended = run(zk("").args(["demo", "--server", &server, "--path", "/used"])).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("has 1 children"), "{ended:?}");
    assert_eq!(world.run(["ls", "/used"]).await.ok(), "by-somebody\n");
}

#[tokio::test]
async fn demo_without_server_names_the_package() {
    let empty = tempfile::tempdir().unwrap();
    let mut command = zk("");
    command
        .args(["demo", "--real"])
        .env("PATH", empty.path())
        .env("ZK_TESTKIT_CACHE", empty.path());
    command.env_remove("JAVA_HOME").env_remove("ZK_TESTKIT_HOME").env("ZK_TESTKIT_INSTALL", "0");
    let ended = run(&mut command).await;
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert!(ended.stderr.contains("install") && ended.stderr.contains("--install"), "{ended:?}");
}
