//! Older releases know less, and say so as they did.

use zk_client::{CreateMode, Rejection, WriteError};
use zk_testkit::{TestServer, real::Release, server::Config};

use super::client;

async fn release(release: Release) -> TestServer {
    let mut config = Config::default();
    config.release = release;
    TestServer::start_with(config).await.unwrap()
}

#[tokio::test]
async fn servers_before_3_5_refuse_to_create_with_metadata_and_hang_up() {
    let server = release(Release::V3_4).await;
    let zk = client(&server).await;
    let refused = zk.create("/a", b"").await;
    assert_eq!(refused.unwrap_err(), WriteError::Rejected(Rejection::Unimplemented));
    // The client has learned, and creates without from now on.
    zk.create("/a", b"").await.unwrap();
    assert_eq!(server.proxy().accepted(), 2);
}

#[tokio::test]
async fn a_time_to_live_must_be_switched_on() {
    let server = release(Release::V3_9).await;
    let zk = client(&server).await;
    let ttl = CreateMode::PersistentTtl(std::time::Duration::from_secs(1));
    let refused = zk.create("/a", b"").mode(ttl).await;
    assert_eq!(refused.unwrap_err(), WriteError::Rejected(Rejection::Unimplemented));
    // That connection stays: the server knows the operation.
    zk.create("/a", b"").await.unwrap();
    assert_eq!(server.proxy().accepted(), 1);
}
