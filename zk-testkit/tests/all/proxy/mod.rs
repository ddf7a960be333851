//! The proxy, shown on a scripted peer.

mod log;
mod rules;
mod switches;

use zk_testkit::proxy::Proxy;

use crate::peer::EchoPeer;
use crate::support::RawClient;

/// A peer, a proxy in front of it, and a client that has a session.
async fn trio() -> (EchoPeer, Proxy, RawClient) {
    let peer = EchoPeer::start().await;
    let proxy = Proxy::start(peer.addr()).await.expect("a proxy");
    let client = RawClient::connect(proxy.addr()).await;
    (peer, proxy, client)
}
