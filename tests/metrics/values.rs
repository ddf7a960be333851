//! What metrics say of sessions, in numbers: their states, their timeouts, and why connections fail.

use std::time::Duration;

use zk_client::ConnectOptions;
use zk_testkit::{
    TestServer,
    server::{Config, Member},
};
use zk_tests::{
    patience::{closed, within},
    site::SESSION_TIMEOUT_MAX,
};

use super::{
    counted::{options, until},
    recorder::Recording,
};

const SESSIONS: &str = "zookeeper_client_sessions";

/// A server of three that has lost the others.
async fn alone() -> (TestServer, Member) {
    let mut config = Config::default();
    (config.members, config.read_only_mode) = (3, true);
    (config.tick, config.sync_limit) = (Duration::from_millis(50), Duration::from_millis(100));
    config.session_timeout_max = Some(SESSION_TIMEOUT_MAX);
    let server = TestServer::start_with(config).await.unwrap();
    let member = server.with(|ensemble, now| {
        let member = ensemble.leader().unwrap();
        for other in (0..3).map(Member).filter(|it| *it != member) {
            ensemble.stop(now, other);
        }
        member
    });
    (server, member)
}

#[tokio::test(flavor = "current_thread")]
async fn session_on_a_member_alone_counts_as_read_only() {
    let recording = Recording::default();
    let _installed = metrics::set_default_local_recorder(&recording);
    let (server, member) = alone().await;
    let reader = ConnectOptions::new(&server.proxy_of(member).connect_string()).unwrap();
    let zk = within(reader.read_only(true).connect()).await.unwrap();
    for (state, count) in
        [("read_only", 1.0), ("connected", 0.0), ("connecting", 0.0), ("disconnected", 0.0)]
    {
        assert_eq!(recording.latest(SESSIONS, &[("state", state)]), count, "{state}");
    }
    drop(zk);
}

#[tokio::test(flavor = "current_thread")]
async fn granted_timeout_is_shown_in_seconds() {
    let recording = Recording::default();
    let _installed = metrics::set_default_local_recorder(&recording);
    let mut config = Config::default();
    config.session_timeout_max = Some(Duration::from_millis(5500));
    let server = TestServer::start_with(config).await.unwrap();
    let zk = options(&server).session_timeout(Duration::from_secs(12)).connect().await.unwrap();
    assert_eq!(recording.latest("zookeeper_client_session_timeout_seconds", &[]), 5.5);
    closed(&zk).await;
}

#[tokio::test(flavor = "current_thread")]
async fn reasons_of_failed_connections_are_told_apart() {
    let recording = Recording::default();
    let _installed = metrics::set_default_local_recorder(&recording);
    let server = TestServer::start().await.unwrap();
    let zk = options(&server).connect().await.unwrap();
    server.proxy().refuse_connections().await;
    server.drop_connections();
    for (name, reason) in [
        ("zookeeper_client_disconnections_total", "reset"),
        ("zookeeper_client_connection_failures_total", "refused"),
    ] {
        until(&recording, name, &[("reason", reason)], 1.0).await;
        let (all, such) =
            (recording.latest(name, &[]), recording.latest(name, &[("reason", reason)]));
        assert_eq!(all, such, "{name}");
    }
    server.proxy().accept_connections().await;
    within(zk.get("/")).await.unwrap();
    closed(&zk).await;
}
