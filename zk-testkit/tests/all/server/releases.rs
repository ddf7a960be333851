//! Older releases know less, and say so as they did.

use std::{net::Ipv4Addr, time::Duration};

use bytes::BytesMut;
use zk_client::{ConnectOptions, CreateMode, Rejection, WriteError};
use zk_proto::{
    Acl, CreateFlags, ErrorCode, Time, Xid,
    frame::RequestFrame,
    request::{CreateRequest, MultiOp, MultiRequest},
};
use zk_testkit::{
    TestServer,
    real::Release,
    server::{Config, Ensemble, Member},
};

use super::client;
use crate::support::{RawClient, connect_request, create2};

async fn release(release: Release) -> TestServer {
    let mut config = Config::default();
    config.release = release;
    TestServer::start_with(config).await.unwrap()
}

#[tokio::test]
async fn create2_before_3_5_closes_the_connection() {
    let server = release(Release::V3_4).await;
    let zk = client(&server).await;
    // The client asks in another way then, over the next connection, and from now on.
    zk.create("/a", b"").await.unwrap();
    zk.create("/b", b"").await.unwrap();
    assert_eq!(server.proxy().accepted(), 2);
}

/// Before 3.5 a session that has been heard of never ends the earlier for it.
#[tokio::test]
async fn resuming_with_a_shorter_timeout_shortens_a_session() {
    for line in [Release::V3_4, Release::V3_5, Release::V3_9] {
        let server = release(line).await;
        let servers = server.connect_string();
        let lasting = |seconds| {
            let options = ConnectOptions::new(&servers).unwrap();
            options.session_timeout(Duration::from_secs(seconds))
        };
        let zk = lasting(40).connect().await.unwrap();
        let zk = lasting(4).resume(zk.detach().await.unwrap()).connect().await.unwrap();
        assert_eq!(zk.session().timeout(), Duration::from_secs(4));
        let left = server.with(|ensemble, now| {
            let (_, session) = ensemble.sessions().next().unwrap();
            session.expires().since(now)
        });
        // Up to the end of the tick.
        let is_short = left <= Duration::from_secs(4 + 2);
        assert_eq!(is_short, line >= Release::V3_5, "{line}: {left:?}");
    }
}

#[tokio::test]
async fn a_time_to_live_must_be_switched_on() {
    let server = release(Release::V3_9).await;
    let zk = client(&server).await;
    let ttl = CreateMode::PersistentTtl(Duration::from_secs(1));
    let refused = zk.create("/a", b"").mode(ttl).await;
    assert_eq!(refused.unwrap_err(), WriteError::Rejected(Rejection::Unimplemented));
    // That connection stays: the server knows the operation.
    zk.create("/a", b"").await.unwrap();
    assert_eq!(server.proxy().accepted(), 1);
}

#[tokio::test]
async fn before_3_5_new_flags_and_ops_are_unknown() {
    let server = release(Release::V3_4).await;
    let mut client = RawClient::connect(server.proxy().addr()).await;
    let node = |flags| CreateRequest {
        path: "/a".into(),
        data: None,
        acl: [Acl::open_unsafe()].into_iter().collect(),
        flags,
    };
    for flags in [
        CreateFlags::CONTAINER,
        CreateFlags::PERSISTENT_TTL,
        CreateFlags::PERSISTENT_SEQUENTIAL_TTL,
    ] {
        let refused = client.call(&node(flags)).await.unwrap();
        assert_eq!(refused, ErrorCode::BAD_ARGUMENTS, "{flags:?}");
    }
    let create2 = MultiOp::Create2(node(CreateFlags::PERSISTENT));
    let multi: MultiRequest = [create2].into_iter().collect();
    assert_eq!(client.call(&multi).await.unwrap(), ErrorCode::MARSHALLING_ERROR);
    // What it does know it carries out.
    let create = MultiOp::Create(node(CreateFlags::PERSISTENT));
    let multi: MultiRequest = [create].into_iter().collect();
    assert_eq!(client.call(&multi).await.unwrap(), ErrorCode::OK);
}

/// Real servers note that they hear of a session before they look at what it asks for.
#[test]
fn an_unknown_request_is_a_sign_of_life() {
    let mut config = Config::default();
    config.release = Release::V3_4;
    let mut server = Ensemble::new(config);
    let at = |seconds| Time::ZERO.after(Duration::from_secs(seconds));
    let conn = server.accept(at(0), Member(0), Ipv4Addr::LOCALHOST.into()).unwrap();
    server.received(at(0), conn, &connect_request());
    let mut create = BytesMut::new();
    RequestFrame::of(&create2("/a")).write(Xid::FIRST, &mut create);
    server.received(at(9), conn, &create);

    // It wished for 10 s.
    server.elapsed(at(15));
    assert_eq!(server.sessions().count(), 1);
    server.elapsed(at(25));
    assert_eq!(server.sessions().count(), 0);
}
