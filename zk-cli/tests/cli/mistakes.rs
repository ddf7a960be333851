//! Command lines with a mistake: nothing is done, and what to do instead is said.

use zk_testkit::TestServer;

use crate::support::{run, zk};

/// The walk over all subcommands and places is beside the command line itself; this is what it is for.
#[tokio::test]
async fn mistyped_option_is_never_data() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string();
    run(zk(&addr).args(["create", "/x", "old"])).await.ok();
    for args in [
        &["create", "/eph", "--ephemerall"][..],
        &["create", "/eph", "data", "--paretns"],
        &["create", "--sequental", "/eph"],
        &["set", "/x", "--verison=3"],
        &["set", "/x", "new", "--verison=3"],
        &["set", "/x", "--verison=3", "new"],
        &["lock", "/x", "--tyr", "--", "true"],
        &["acl", "/x", "--recursiv"],
        &["delete", "/x", "--versoin", "7"],
    ] {
        let ended = run(zk(&addr).args(args)).await;
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains("tip: "), "{args:?}: {ended:?}");
    }
    assert_eq!(run(zk(&addr).args(["ls", "/"])).await.ok(), "x\nzookeeper\n");
    assert_eq!(run(zk(&addr).args(["get", "/x"])).await.ok(), "old");
    assert_eq!(run(zk(&addr).args(["acl", "/x"])).await.ok(), "world:anyone:cdrwa\n");
    run(zk(&addr).args(["set", "/x", "--", "--verison=3"])).await.ok();
    assert_eq!(run(zk(&addr).args(["get", "/x"])).await.ok(), "--verison=3");
}

#[tokio::test]
async fn every_error_says_what_to_do_next() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string();
    run(zk(&addr).args(["create", "--parents", "/a/b"])).await.ok();
    for (args, next) in [
        (&["get", "/none"][..], "zk ls /"),
        (&["create", "/a"], "zk set /a"),
        (&["create", "/x/y"], "--parents"),
        (&["delete", "/a"], "zk delete -r /a"),
        (&["set", "/a", "x", "--version", "9"], "zk stat /a"),
        (&["set", "/a", "--file", "/nowhere/at/all"], "check that it exists"),
        (&["get", "/a", "--profile", "none"], "zk help"),
        (&["lock", "/l", "--", "/nowhere/at/all"], "check the command"),
        (&["evict", "/l", "7"], "zk holders /l"),
        (&["quota", "/a"], "--nodes"),
        (&["get", "/a", "--server", "127.0.0.1:1", "--connect-timeout", "1ms"], "zk health"),
        (&["sessions", "0x7"], "zk ephemerals --session 0x7"),
        (&["set", "/none", "x"], "zk create -p /none"),
        (&["lock", "/l", "true"], "-- true"),
        (&["elect", "/l", "true", "x"], "-- true"),
        (&["exists", "/a"], "zk stat PATH"),
        (&["deleteall", "/a"], "zk delete -r PATH"),
        (&["rm", "/a"], "zk delete PATH"),
        (&["put", "/a", "x"], "zk set PATH DATA"),
        (&["GETACL", "/a"], "zk acl PATH"),
        (&["help", "rm"], "zk delete PATH"),
        (&["help", "nothing-like-that"], "zk help"),
        (&["get"], "zk help"),
    ] {
        let ended = run(zk(&addr).args(args).env("ZK_CONFIG", "/nowhere/config")).await;
        assert_ne!(ended.code, Some(0), "{args:?}");
        assert!(ended.stderr.contains("\n    "), "{args:?}: {ended:?}");
        let (_, said) = ended.stderr.rsplit_once("\n    ").unwrap();
        assert!(said.contains(next), "{args:?}: {ended:?}");
    }
}

/// As fingers that know zkCli.sh type them.
#[tokio::test]
async fn options_of_zkcli_are_answered_with_ours() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string();
    run(zk(&addr).args(["create", "/a"])).await.ok();
    for (args, next) in [
        (&["create", "-e", "/b", "x"][..], "-e: --ephemeral"),
        (&["create", "-s", "-e", "/b", "x"], "-s: --sequential, -e: --ephemeral"),
        (&["create", "-s", "/b", "x"], "-s: --sequential"),
        (&["create", "-c", "/b"], "-c: --container"),
        (&["create", "-t", "1000", "/b"], "-t: --ttl"),
        (&["set", "-v", "3", "/a", "x"], "--version 3"),
        (&["delete", "-v", "3", "/a"], "--version 3"),
        (&["get", "-s", "/a"], "-s: zk stat PATH"),
        (&["ls", "-s", "/"], "-s: -l"),
        (&["create", "-s", &addr, "b", "x"], "do not end in one: /b"),
        (&["ls", "-w", "/"], "-w: zk watch PATH"),
        (&["get", "-w", "/a"], "-w: zk watch PATH"),
        (&["watch", "-m", "PERSISTENT", "/a"], "-m: without --recursive"),
        (&["-server", "127.0.0.1:1", "ls", "/"], "options stand behind the subcommand"),
        (&["-s", "127.0.0.1:1", "ls", "/"], "options stand behind the subcommand"),
        (&["ls", "-server", "127.0.0.1:1", "/"], "-server: --server"),
        (&["delete", "-R", "/a"], "-R: -r"),
        (&["set", "/a", "-v", "3"], "--version 3"),
        (&["-v", "set", "/a", "-v", "3"], "--version 3"),
        (&["lock", "-n", "3", "/l", "true"], "-n: --semaphore"),
        (&["lock", "-try", "/l", "true"], "-try: --try"),
        (&["stat", "a"], "do not end in one: /a"),
        (&["ls", "/a/"], "do not end in one: /a"),
        (&["create", "b", "x"], "do not end in one: /b"),
        (&["lock", "l", "--", "true"], "do not end in one: /l"),
        (&["mntr"], "zk health"),
        (&["health", "--server", "127.0.0.1:1"], "does it run"),
        (&["lease", "list"], "zk sessions"),
        (&["acl", "/a", "digest:u:p:r"], "zk help"),
        (&["evict", "/l", "name"], "zk holders PATH"),
        (&["delete", "/"], "neither created nor deleted"),
        (&["delete", "/zookeeper"], "neither created nor deleted"),
    ] {
        let ended = run(zk(&addr).args(args)).await;
        assert_ne!(ended.code, Some(0), "{args:?}");
        let (_, said) = ended.stderr.rsplit_once("\n    ").unwrap();
        assert!(said.contains(next), "{args:?}: {ended:?}");
    }
    assert_eq!(run(zk(&addr).args(["ls", "/"])).await.ok(), "a\nzookeeper\n");
    assert_eq!(run(zk(&addr).args(["get", "/a"])).await.ok(), "");
    // With $ZK_SERVER nothing has to be named.
    let usage = run(zk(&addr).args(["revoke", "/a"])).await;
    assert!(usage.stderr.contains("Usage: zk revoke <PATH> <TOKEN>"), "{usage:?}");
}

/// A word of another tool that looks like one that takes a lock away.
#[tokio::test]
async fn nothing_harmful_is_suggested() {
    for (args, has, lacks) in [
        (&["exists", "/a"][..], "zk stat", "evict"),
        (&["help", "lok"], "'lock'", "evict"),
        (&["lock", "/l", "--timeout", "5 parsecs", "--", "true"], "500ms, 30s", "evict"),
    ] {
        let ended = run(zk("127.0.0.1:1").args(args)).await;
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}: {ended:?}");
        let said = &ended.stderr;
        assert!(said.contains(has) && !said.contains(lacks), "{args:?}: {ended:?}");
    }
}

/// `zk` alone shows its help, not a complaint.
#[tokio::test]
async fn no_arguments_show_the_help() {
    let ended = run(&mut zk("127.0.0.1:1")).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("Usage: zk") && !ended.stderr.starts_with("zk: "), "{ended:?}");
}
