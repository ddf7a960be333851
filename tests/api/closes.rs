//! Closes: what they return, and how long they wait.

use std::time::Duration;

use tokio::time::Instant;
use zk_client::{Cause, SessionEnd, WriteError};
use zk_testkit::server::Config;
use zk_tests::{
    network::{Network, pass},
    patience::within,
};

use super::promises::{MOMENT, connected, play};

fn sessions(network: &Network) -> usize {
    network.look(|server| server.sessions().count())
}

/// There is no connection over which the servers would take it: they keep the session until it expires.
#[test]
fn close_behind_refused_credentials_is_not_applied() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        within(zk.add_auth("nonsense", "x")).await.unwrap_err();
        assert_eq!(within(zk.session().ended()).await, SessionEnd::AuthFailed);
        let refused = || WriteError::NotApplied(Cause::SessionEnded(SessionEnd::AuthFailed));
        assert_eq!(within(zk.close()).await, Err(refused()));
        assert_eq!(within(zk.close_within(Duration::from_secs(5))).await, Err(refused()));
        assert_eq!(sessions(network), 1);
        pass(Duration::from_secs(30)).await;
        assert_eq!(sessions(network), 0);
    });
}

/// The last quarter of the time is left to the close itself.
#[test]
fn close_waits_three_quarters_of_its_time_for_cleanup() {
    play(Config::default(), async |network| {
        for (limit, waits) in [(None, 1500), (Some(8), 6000)] {
            let zk = connected(network).await;
            let cleaner = zk.for_cleanup();
            let began = Instant::now();
            let closed = match limit {
                None => within(zk.close()).await,
                Some(seconds) => within(zk.close_within(Duration::from_secs(seconds))).await,
            };
            let took = began.elapsed();
            assert_eq!(closed, Ok(()), "{limit:?}");
            assert!(took.abs_diff(Duration::from_millis(waits)) < MOMENT, "{limit:?}: {took:?}");
            assert_eq!(sessions(network), 0);
            drop(cleaner);
        }
    });
}
