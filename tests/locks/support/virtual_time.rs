//! A server and clients for tests of long times, which pass at once.

use std::time::Duration;

use zk_locks::Client;
use zk_testkit::server::Config;
use zk_tests::{
    network::{Name, Network, pass},
    paused,
    share::hash,
};

/// Of every session.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a test on simulated time.
pub(crate) fn in_virtual_time(test: impl AsyncFn(Network)) {
    paused::block_on(async {
        let mut config = Config::default();
        config.tick = Duration::from_secs(1);
        let network = Network::new(config);
        // Until there is a leader.
        pass(SESSION_TIMEOUT).await;
        test(network).await;
    });
}

/// A client with a session of its own, whose lease ends long before that.
pub(crate) async fn client_on(network: &Network, name: Name) -> Client {
    let options = network.options(name, "", hash(name)).session_timeout(SESSION_TIMEOUT);
    options.lease_margin(SESSION_TIMEOUT / 2).connect().await.unwrap()
}
