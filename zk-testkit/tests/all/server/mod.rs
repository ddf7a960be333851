//! The in-process server, seen by the client.

mod crowd;
mod ensemble;
mod faults;
mod releases;

use std::time::Duration;

use zk_client::{Client, ConnectOptions, CreateMode};
use zk_testkit::TestServer;

/// A client with a session of its own.
async fn client(server: &TestServer) -> Client {
    Client::connect(&server.connect_string()).await.unwrap()
}

/// A client whose session ends soon after it falls silent.
async fn short_lived(server: &TestServer) -> Client {
    let options = ConnectOptions::new(&server.connect_string()).unwrap();
    options.session_timeout(Duration::from_millis(400)).connect().await.unwrap()
}

/// Creates an ephemeral node.
async fn ephemeral(zk: &Client, path: &str) {
    zk.create(path, b"").mode(CreateMode::Ephemeral).await.unwrap();
}
