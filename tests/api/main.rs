//! The client's operations on real servers, of each release line that must be had.

use zk_client::{Client, ConnectOptions};
use zk_testkit::{
    proxy::Proxy,
    real::{Release, Server},
};

mod chroot;
mod doubt;
mod multi;
mod nodes;
mod secrets;
mod session;
mod watches;

/// Runs a test on a server of its own of each release line.
async fn on_each_release(test: impl AsyncFn(&Server)) {
    for release in [Release::V3_8, Release::V3_9] {
        let server = Server::start(release).await.unwrap();
        test(&server).await;
    }
}

async fn client(server: &Server) -> Client {
    options(server).connect().await.unwrap()
}

/// A client that talks to the server through a proxy of its own.
async fn behind_proxy(server: &Server) -> (Proxy, Client) {
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let options = ConnectOptions::new(&proxy.connect_string()).unwrap();
    let zk = options.connect().await.unwrap();
    (proxy, zk)
}

fn options(server: &Server) -> ConnectOptions {
    ConnectOptions::new(&server.connect_string()).unwrap()
}
