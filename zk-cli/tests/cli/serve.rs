//! `zk serve`.

use std::time::SystemTime;

use rustix::process::Signal;

use crate::support::{Running, run, zk};

#[tokio::test]
async fn serve_prints_address_and_keeps_nothing() {
    for _ in 0..2 {
        let mut serve = Running::start(zk("").args(["serve", "--port", "0"]));
        let addr = serve.line().await;
        assert!(addr.starts_with("127.0.0.1:"), "{addr}");
        assert!(serve.line().await.contains("keeps nothing"));
        let list = run(zk(&addr).args(["ls", "/"])).await;
        assert_eq!(list.ok(), "zookeeper\n", "nothing is left of the one before");
        run(zk(&addr).args(["create", "--parents", "/a/b", "data"])).await.ok();
        assert_eq!(run(zk(&addr).args(["get", "/a/b"])).await.ok(), "data");
        let lock = ["lock", "/a/lock", "--", "sh", "-c", "test \"$ZK_LOCK_TOKEN\" -gt 0"];
        run(zk(&addr).args(lock)).await.ok();
        serve.signal(Signal::TERM);
        let ended = serve.ended().await;
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    }
}

#[tokio::test]
async fn sessions_have_their_clients_addresses() {
    let mut serve = Running::start(zk("").args(["serve", "--port", "0"]));
    let addr = serve.line().await;
    let client = zk_client::Client::connect(&addr).await.unwrap();
    let id = client.session().id().to_string();
    let found = run(zk(&addr).args(["sessions", "--json", &id])).await.json();
    let [session] = &**found["sessions"].as_array().unwrap() else { panic!("{found}") };
    assert_eq!(
        (session["server"].as_str(), &session["timeout_ms"]),
        (Some(&*addr), &10_000.into())
    );
    let from: std::net::SocketAddr = session["client"].as_str().unwrap().parse().unwrap();
    assert!(from.ip().is_loopback() && from.port() > 0, "{found}");
    client.close().await.unwrap();
}

#[tokio::test]
async fn ensemble_members_show_the_same_nodes() {
    let mut serve = Running::start(zk("").args(["serve", "--port", "0", "--members", "3"]));
    let addrs = serve.line().await;
    let members: Vec<_> = addrs.split(',').collect();
    assert_eq!(members.len(), 3, "{addrs}");
    run(zk(members[0]).args(["create", "/a"])).await.ok();
    for member in members {
        assert_eq!(run(zk(member).args(["ls", "/"])).await.ok(), "a\nzookeeper\n");
    }
    serve.signal(Signal::INT);
    assert_eq!(serve.ended().await.code, Some(0));
}

#[tokio::test]
async fn members_are_stopped_and_started_by_stdin() {
    let args = ["serve", "--port", "0", "--members", "3", "--control"];
    let mut serve = Running::start(zk("").args(args));
    let addrs = serve.line().await;
    serve.line().await;
    let first = addrs.split(',').next().unwrap();
    for (order, answer) in [
        ("stop 0", "ok"),
        ("stop 3", "refused: \"3\" is no member"),
        ("fly", "refused: \"fly\" is no command: help lists them"),
        ("expire 0xzz", "refused: invalid digit found in string"),
        ("expire 0x7", "refused: there is no session 0x7: sessions lists them"),
        ("sessions", "0 sessions: "),
        ("help", "stop N, start N, cut N, heal N, drop, expire SESSION, sessions, add ID PORT"),
    ] {
        serve.tell(order).await;
        assert_eq!(serve.line().await, answer);
    }
    serve.tell(b"fl\xff").await;
    assert!(serve.line().await.ends_with("is no command: help lists them"));
    let stopped = run(zk(first).args(["ls", "/", "--connect-timeout", "300ms"])).await;
    assert_eq!(stopped.code, Some(69), "{stopped:?}");
    serve.tell("start 0").await;
    assert_eq!(serve.line().await, "ok");
    run(zk(first).args(["ls", "/"])).await.ok();
    serve.signal(Signal::TERM);
    assert_eq!(serve.ended().await.code, Some(0));
}

#[tokio::test]
async fn sessions_are_listed_and_expired_by_stdin() {
    let mut serve = Running::start(zk("").args(["serve", "--port", "0", "--control"]));
    let addr = serve.line().await;
    serve.line().await;
    let client = zk_client::Client::connect(&addr).await.unwrap();
    let id = client.session().id();
    serve.tell("sessions").await;
    assert_eq!(serve.line().await, format!("1 sessions: {id}"));
    serve.tell(&format!("expire {id}")).await;
    assert_eq!(serve.line().await, "ok");
    let end = crate::support::must("the end", client.session().ended()).await;
    assert_eq!(end, zk_client::SessionEnd::Expired);
}

#[tokio::test]
async fn nothing_expires_without_a_leader() {
    let args = ["serve", "--port", "0", "--members", "3", "--control"];
    let mut serve = Running::start(zk("").args(args));
    let addrs = serve.line().await;
    serve.line().await;
    let client = zk_client::Client::connect(&addrs).await.unwrap();
    let id = client.session().id();
    for (order, answer) in [
        ("stop 0".to_owned(), "ok".to_owned()),
        ("stop 1".to_owned(), "ok".to_owned()),
        (format!("expire {id}"), "refused: there is no leader that could end it".to_owned()),
        ("sessions".to_owned(), format!("1 sessions: {id}")),
        ("start 0".to_owned(), "ok".to_owned()),
    ] {
        serve.tell(&order).await;
        assert_eq!(serve.line().await, answer, "{order}");
    }
}

/// No session would outlive its handshake, and real servers do not start with some of them.
#[tokio::test]
async fn a_server_whose_time_stands_still_is_refused() {
    for option in ["--tick", "--container-check", "--min-session-timeout", "--max-session-timeout"]
    {
        let refused = run(zk("").args(["serve", "--port", "0", option, "0"])).await;
        assert_eq!(refused.code, Some(2), "{option}: {refused:?}");
    }
}

#[tokio::test]
async fn only_supported_releases_are_offered() {
    let refused = run(zk("").args(["serve", "--port", "0", "--release", "4.0"])).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("3.4, 3.5"), "{}", refused.stderr);
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let mut first = Running::start(zk("").args(["serve", "--port", "0"]));
    let addr = first.line().await;
    let (_, port) = addr.split_once(':').unwrap();
    let second = run(zk("").args(["serve", "--port", port])).await;
    assert_eq!((second.code, &*second.stdout), (Some(74), ""));
    assert!(second.stderr.contains(port), "{}", second.stderr);
}

#[tokio::test]
async fn nodes_have_the_time_of_the_machine() {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let before = now();
    let mut serve = Running::start(zk("").args(["serve", "--port", "0"]));
    let addr = serve.line().await;
    let created = run(zk(&addr).args(["create", "--json", "/a"])).await.json();
    let created = created["ctime_ms"].as_u64().map(u128::from).unwrap();
    assert!((before..=now()).contains(&created), "{created}");
    let mut held =
        Running::start(zk(&addr).args(["lock", "/l", "--", "sh", "-c", "echo; read -r go"]));
    held.line().await;
    let holders = run(zk(&addr).args(["holders", "--json", "/l"])).await.json();
    let age = holders["queue"][0]["age_ms"].as_i64().unwrap();
    assert!((0..3_600_000).contains(&age), "{holders}");
}

#[tokio::test]
async fn servers_are_added_by_stdin() {
    let args = ["serve", "--port", "0", "--members", "3", "--control"];
    let mut serve = Running::start(zk("").args(args));
    serve.line().await;
    serve.line().await;
    for (order, answer) in [
        ("add 4 0", "ok"),
        ("add 4 0", "refused: no leader, or there is one of that number already"),
        ("add four", "refused: \"four\" is no number and port"),
        ("add", "refused: \"\" is no number and port"),
        ("stop 3", "ok"),
    ] {
        serve.tell(order).await;
        assert_eq!(serve.line().await, answer);
    }
}

#[tokio::test]
async fn ports_are_one_for_each_member_or_the_first() {
    for (args, why) in [
        (&["--port", "1,2", "--members", "3"][..], "--port: one for each member, or the first"),
        (&["--port", "65535", "--members", "2"], "--port: too few are left for the members"),
        (&["--port", "0", "--sasl-user", "ann"], "--sasl-user: user:password"),
    ] {
        let refused = run(zk("").arg("serve").args(args)).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
}

/// A free port helps where one is taken, and nowhere else.
#[tokio::test]
async fn another_port_is_advised_where_one_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = run(zk("").args(["serve", "--port", &port])).await;
    assert_eq!(ended.code, Some(74), "{ended:?}");
    assert!(ended.stderr.contains("--port 0 takes a free port"), "{ended:?}");
    let ended = run(zk("").args(["serve", "--port", "0", "--server", "nonsense"])).await;
    assert_eq!(ended.code, Some(74), "{ended:?}");
    assert!(ended.stderr.contains("names no server of an ensemble"), "{ended:?}");
    assert!(!ended.stderr.contains("--port 0"), "{ended:?}");
}
