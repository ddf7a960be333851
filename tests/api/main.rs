//! The client's operations, on real servers of each release line that must be had, and on the
//! in-process one.

use zk_client::{Client, ConnectOptions};
use zk_testkit::proxy::Proxy;
use zk_tests::site::Site;

mod caches;
mod chroot;
mod doubt;
mod limits;
mod multi;
mod nodes;
mod operations;
mod roaming;
mod secrets;
mod session;
mod streams;
mod together;
mod watches;

/// Runs a test on a server of its own of each kind.
async fn on_each_release(test: impl AsyncFn(&Site)) {
    for kind in Site::ALL {
        println!("on {kind}");
        test(&Site::start(kind).await).await;
    }
}

/// Kills the server and starts it again, and waits until this client has come back to it. A server in
/// this process is back before anybody has noticed that it was gone.
async fn restart_under(server: &Site, zk: &Client) {
    let mut session = zk.session();
    let before = session.epoch();
    server.kill().await;
    server.restart().await;
    while session.epoch() == before {
        session.changed().await;
    }
}

async fn client(server: &Site) -> Client {
    options(server).connect().await.unwrap()
}

/// A client that talks to the server through a proxy of its own.
async fn behind_proxy(server: &Site) -> (Proxy, Client) {
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let options = ConnectOptions::new(&proxy.connect_string()).unwrap();
    let zk = options.connect().await.unwrap();
    (proxy, zk)
}

fn options(server: &Site) -> ConnectOptions {
    server.options()
}
