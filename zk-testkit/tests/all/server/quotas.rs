//! What counts against limits, and what is refused for them.

use zk_client::{Client, CreateMode, Rejection, WriteError};
use zk_testkit::{TestServer, real::Release, server::Config};

use super::client;

/// Limits a path as `zkCli.sh` does.
async fn limit(zk: &Client, path: &str, limits: &str) {
    let place = format!("/zookeeper/quota{path}");
    zk.create(&place, b"").parents().await.unwrap();
    for (name, numbers) in [("limits", limits), ("stats", "count=0,bytes=0")] {
        let node = format!("{place}/zookeeper_{name}");
        zk.create(&node, numbers.as_bytes()).mode(CreateMode::Persistent).await.unwrap();
    }
}

async fn counted(zk: &Client, path: &str) -> String {
    let stats = format!("/zookeeper/quota{path}/zookeeper_stats");
    let (numbers, _) = zk.get(&stats).await.unwrap();
    String::from_utf8_lossy(&numbers).into_owned()
}

/// As on real servers, to which only the root is different.
#[tokio::test]
async fn a_path_that_begins_like_the_servers_own_counts() {
    let mut config = Config::default();
    config.enforce_quota = true;
    let server = TestServer::start_with(config).await.unwrap();
    let zk = client(&server).await;
    for path in ["/zookeeper-app", "/zookeeper/app"] {
        zk.create(path, b"12345").await.unwrap();
        limit(&zk, path, "count=-1,bytes=-1=;countHardLimit=2").await;
        zk.create(&format!("{path}/a"), b"xyz").await.unwrap();
        assert_eq!(counted(&zk, path).await, "count=2,bytes=8", "{path}");
        let refused = zk.create(&format!("{path}/b"), b"").await;
        assert_eq!(refused.unwrap_err(), WriteError::Rejected(Rejection::QuotaExceeded));
    }
}

/// They count, and refuse nothing.
#[tokio::test]
async fn quotas_before_3_7_are_not_enforced() {
    for (release, refuses) in [(Release::V3_6, false), (Release::V3_7, true)] {
        let mut config = Config::default();
        (config.release, config.enforce_quota) = (release, true);
        let server = TestServer::start_with(config).await.unwrap();
        let zk = client(&server).await;
        zk.create("/a", b"").await.unwrap();
        limit(&zk, "/a", "count=-1,bytes=-1=;countHardLimit=1").await;
        assert_eq!(zk.create("/a/b", b"").await.is_err(), refuses, "{release}");
    }
}
