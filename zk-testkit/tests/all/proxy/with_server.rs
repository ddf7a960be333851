//! The same on a real server, which has something to lose.

use std::io::ErrorKind;

use zk_proto::{ErrorCode, OpCode};
use zk_testkit::proxy::{Match, Proxy};
use zk_testkit::real::{Server, Wanted};

use crate::support::{RawClient, create2, exists, within_limit};

#[tokio::test]
async fn create_with_lost_reply_was_applied() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    let proxy = Proxy::start(server.addr()).await.expect("a proxy");
    let rule = proxy.on(Match::reply(OpCode::CREATE2).nth(2)).reset();
    let mut client = RawClient::connect(proxy.addr()).await;
    client.call(&create2("/first")).await.expect("a reply");
    let lost = client.call(&create2("/second")).await;
    let lost = lost.expect_err("the reply is lost");
    assert_eq!(lost.kind(), ErrorKind::ConnectionReset);
    let reply = within_limit(rule.fired()).await;
    assert_eq!(reply.error, Some(ErrorCode::OK));
    assert!(reply.zxid.is_some_and(|zxid| zxid.0 > 0));

    let mut witness = RawClient::connect(server.addr()).await;
    let found = witness.call(&exists("/second")).await.expect("a reply");
    assert_eq!(found, ErrorCode::OK);
}

#[tokio::test]
async fn create_reset_before_forwarding_is_lost() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    let proxy = Proxy::start(server.addr()).await.expect("a proxy");
    let _rule = proxy.on(Match::request(OpCode::CREATE2).path("/node")).reset();
    let mut client = RawClient::connect(proxy.addr()).await;
    let lost = client.call(&create2("/node")).await;
    assert!(lost.is_err());
    let mut witness = RawClient::connect(server.addr()).await;
    let found = witness.call(&exists("/node")).await.expect("a reply");
    assert_eq!(found, ErrorCode::NO_NODE);
}

#[tokio::test]
async fn four_letter_words_pass_the_proxy() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    let proxy = Proxy::start(server.addr()).await.expect("a proxy");
    let mut word = RawClient::dial(proxy.addr()).await.expect("a connection");
    word.send(b"ruok").await;
    assert_eq!(word.read_to_end().await, b"imok");
}

/// A member that is killed and comes back is the same target; its port cannot be taken meanwhile.
#[tokio::test]
async fn proxy_outlives_the_servers_restart() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    let proxy = Proxy::start(server.addr()).await.expect("a proxy");
    let mut client = RawClient::connect(proxy.addr()).await;
    client.call(&create2("/kept")).await.expect("a reply");
    server.kill().await.expect("a kill");
    client.end().await;
    server.restart().await.expect("a restart");
    let mut client = RawClient::connect(proxy.addr()).await;
    let found = client.call(&exists("/kept")).await.expect("a reply");
    assert_eq!(found, ErrorCode::OK);
}
