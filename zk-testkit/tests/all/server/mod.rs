//! The in-process server, seen by the client.

mod crowd;
mod ensemble;
mod faults;
mod membership;
mod quotas;
mod releases;

use zk_client::{Client, ConnectError, ConnectOptions, CreateMode, SessionEnd};
use zk_testkit::TestServer;

use crate::support::RawClient;

/// A client with a session of its own.
async fn client(server: &TestServer) -> Client {
    Client::connect(&server.connect_string()).await.unwrap()
}

/// Creates an ephemeral node.
async fn ephemeral(zk: &Client, path: &str) {
    zk.create(path, b"").mode(CreateMode::Ephemeral).await.unwrap();
}

/// The port of a server that has gone may be another's a moment later, while clients still dial it.
#[tokio::test]
async fn session_is_unknown_to_another_server() {
    let servers = [TestServer::start().await.unwrap(), TestServer::start().await.unwrap()];
    let one = client(&servers[0]).await;
    let other = client(&servers[1]).await;
    let credentials = one.detach().await.unwrap();
    let moved = ConnectOptions::new(&servers[1].connect_string()).unwrap().resume(credentials);
    let refused = moved.connect().await.map(drop);
    assert_eq!(refused, Err(ConnectError::SessionEnded(SessionEnd::Expired)));
    other.close().await.unwrap();
}

/// As on real servers: what is no word that they know is the length of a frame, which is too long.
#[tokio::test]
async fn word_that_no_server_knows_is_not_answered() {
    let server = TestServer::start().await.unwrap();
    for (word, is_known) in [(b"ruok", true), (b"dump", true), (b"nope", false)] {
        let mut client = RawClient::dial(server.proxy().addr()).await.unwrap();
        client.send(word).await;
        let answer = client.read_to_end().await;
        let answer = String::from_utf8_lossy(&answer);
        assert_eq!(!answer.is_empty(), is_known, "{answer}");
    }
}
