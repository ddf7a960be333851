//! What tests can make happen.

use std::time::Duration;

use crate::support::within_limit;
use zk_client::{EventType, OpCode, SessionEnd, SessionState, WriteError};
use zk_testkit::{TestServer, proxy::Match};

use super::{client, ephemeral};

#[tokio::test]
async fn expiry_deletes_nodes_and_ends_session() {
    let server = TestServer::start().await.unwrap();
    let (zk, other) = (client(&server).await, client(&server).await);
    ephemeral(&zk, "/e").await;
    let (_, gone) = other.exists("/e").watch().await.unwrap();
    server.expire(zk.session().id());
    assert_eq!(gone.await.unwrap().kind, EventType::NODE_DELETED);
    assert_eq!(zk.session().ended().await, SessionEnd::Expired);
    assert_eq!(server.sessions(), [other.session().id()]);
    assert_eq!(server.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn paused_server_resumes_where_it_stopped() {
    let server = TestServer::start().await.unwrap();
    let zk = client(&server).await;
    server.pause();
    let mut created = Box::pin(zk.create("/late", b"").submit());
    within_limit(server.proxy().wait_for(|frame| frame.op == Some(OpCode::CREATE2))).await;
    let soon = tokio::time::timeout(Duration::from_millis(50), &mut created).await;
    assert!(soon.is_err(), "{soon:?}");
    assert_eq!(zk.session().state(), SessionState::Connected { read_only: false });
    server.resume();
    created.await.unwrap();
    assert_eq!(server.paths(), ["/late"]);
}

/// What a test does to it meanwhile is done, and not said.
#[tokio::test]
async fn paused_server_says_nothing_of_an_expiry() {
    let server = TestServer::start().await.unwrap();
    let zk = client(&server).await;
    ephemeral(&zk, "/e").await;
    server.pause();
    server.expire(zk.session().id());
    assert_eq!(server.paths(), Vec::<String>::new());
    let soon = tokio::time::timeout(Duration::from_millis(50), zk.session().changed()).await;
    assert!(soon.is_err(), "{:?}", zk.session().state());
    server.resume();
    assert_eq!(zk.session().ended().await, SessionEnd::Expired);
}

#[tokio::test]
async fn a_lost_answer_leaves_its_node() {
    let server = TestServer::start().await.unwrap();
    let zk = client(&server).await;
    let lost = server.on(Match::reply(OpCode::CREATE2).path("/order").once()).reset();
    assert!(matches!(zk.create("/order", b"").await, Err(WriteError::InDoubt { .. })));
    assert_eq!(lost.times_fired(), 1);
    assert_eq!(server.paths(), ["/order"]);
}

#[tokio::test]
async fn watches_can_be_counted() {
    let server = TestServer::start().await.unwrap();
    let zk = client(&server).await;
    let count = || server.with(|ensemble, _| ensemble.watch_count());
    assert_eq!(count(), 0);
    let (_, data) = zk.get("/").watch().await.unwrap();
    let (_, children) = zk.children("/").watch().await.unwrap();
    assert_eq!(count(), 2);
    zk.create("/a", b"").await.unwrap();
    assert_eq!(children.await.unwrap().kind, EventType::NODE_CHILDREN_CHANGED);
    assert_eq!(count(), 1);
    drop(data);
    zk.close().await.unwrap();
    assert_eq!(count(), 0);
}
