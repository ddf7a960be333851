//! What is left behind a session's last client, and behind its runtime.

use std::{sync::Arc, time::Duration};

use zk_client::{Cause, CreateMode, SessionEnd, SessionState, WatchEnd, WriteError};
use zk_testkit::server::Config;
use zk_tests::{
    network::{Network, pass},
    patience::within,
    paused,
};

const MOMENT: Duration = Duration::from_millis(100);

#[test]
fn requests_with_timeouts_keep_no_session() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let zk = network.options("me", "", 7).connect().await.unwrap();
        let submitted = || zk.get("/").timeout(Duration::from_secs(5)).submit();
        let (mut finished, unasked) = (submitted(), submitted());
        (&mut finished).await.unwrap();
        drop(zk);
        pass(MOMENT).await;
        assert_eq!(network.look(|server| server.sessions().count()), 0);
        unasked.await.unwrap();
        drop(finished);
    });
}

#[test]
fn streams_keep_no_session() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let zk = network.options("me", "", 7).connect().await.unwrap();
        let other = network.options("other", "", 8).connect().await.unwrap();
        zk.create("/mine", b"").mode(CreateMode::Ephemeral).await.unwrap();
        let mut streams =
            [zk.watch("/w").await.unwrap(), zk.watch("/w").recursive().await.unwrap()];
        drop(zk);
        for stream in &mut streams {
            // Besides gaps that arming both may have told of.
            while within(stream.next()).await.is_some() {}
            assert_eq!(stream.end(), Some(WatchEnd::Session(SessionEnd::Closed)));
        }
        assert_eq!(within(other.exists("/mine")).await, Ok(None));
        assert_eq!(network.look(|server| server.sessions().count()), 1, "the other's");
    });
}

/// What a library keeps for each session.
#[derive(Debug, Default)]
struct Kept;

#[test]
fn extensions_go_with_the_last_client() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let zk = network.options("me", "", 7).connect().await.unwrap();
        let kept = Arc::downgrade(&zk.extension::<Kept>());
        let (session, pending) = (zk.session(), zk.get("/").timeout(MOMENT).submit());
        let last = zk.clone();
        drop(zk);
        assert!(kept.upgrade().is_some(), "there is another client");
        drop(last);
        assert!(kept.upgrade().is_none(), "no client is left");
        within(pending).await.unwrap();
        assert_eq!(within(session.ended()).await, SessionEnd::Closed);
    });
}

/// The time that its caller has set for it goes on, not that of a session whose last client goes.
#[test]
fn close_outlives_its_caller_and_all_clients() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let options = network.options("me", "", 7).session_timeout(Duration::from_secs(30));
        let zk = options.connect().await.unwrap();
        network.hold("me");
        let closed = zk.close_within(Duration::from_secs(20));
        assert!(tokio::time::timeout(MOMENT, closed).await.is_err(), "nothing is answered");
        let session = zk.session();
        drop(zk);
        pass(Duration::from_secs(12)).await;
        assert_eq!(session.state(), SessionState::Closing);
        network.heal();
        assert_eq!(within(session.ended()).await, SessionEnd::Closed);
        assert_eq!(network.look(|server| server.sessions().count()), 0);
    });
}

#[test]
fn runtime_leaves_nothing_open() {
    let runtime = paused::runtime();
    let (zk, mut watch, sent, unsent) = runtime.block_on(async {
        let network = Network::new(Config::default());
        let zk = network.options("held", "", 7).connect().await.unwrap();
        let away = network.options("away", "", 8).connect().await.unwrap();
        let (_, watch) = zk.exists("/").watch().await.unwrap();
        network.hold("held");
        network.cut("away");
        let sent = zk.set("/", b"sent").submit();
        pass(MOMENT).await;
        let waits = away.set("/", b"for a connection").submit();
        pass(MOMENT).await;
        assert_eq!((zk.stats().in_flight, away.stats().in_flight), (1, 1));
        let untaken = zk.set("/", b"in the queue").submit();
        (zk, watch, sent, [waits, untaken])
    });
    drop(runtime);
    assert_eq!((zk.stats().in_flight, zk.stats().in_flight_bytes), (0, 0));
    assert_eq!(watch.try_event(), Some(Err(SessionEnd::Closed)));
    paused::block_on(async {
        let sent = within(sent).await;
        assert!(matches!(sent, Err(WriteError::InDoubt { .. })), "{sent:?}");
        for unsent in unsent {
            let over = WriteError::NotApplied(Cause::SessionEnded(SessionEnd::Closed));
            assert_eq!(within(unsent).await, Err(over));
        }
    });
}
