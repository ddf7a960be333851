//! Sessions that are left: what comes between the wish, the offer of the driver, and the caller that takes it.

use std::{
    future::Future as _,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use tokio::time::Instant;
use zk_client::{Cause, CreateMode, OpCode, ReadError, SessionEnd, SessionState, WriteError};
use zk_testkit::server::Config;
use zk_tests::{
    network::{Disposition, Network, pass},
    patience::within,
    polls::{dropped_after, dropped_when_woken},
};

use super::promises::{ME, MOMENT, connected, play};

fn sessions(network: &Network) -> usize {
    network.look(|server| server.sessions().count())
}

#[test]
fn detach_that_is_dropped_closes() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        assert!(dropped_after(1, zk.detach()).await.is_none());
        pass(MOMENT).await;
        assert_eq!(sessions(network), 0, "by the last client");

        let zk = connected(network).await;
        assert!(dropped_after(1, zk.clone().detach()).await.is_none());
        assert_eq!(within(zk.session().ended()).await, SessionEnd::Closed);
        assert_eq!(sessions(network), 0, "by one of several");

        // Before it was looked at, and with the answer on its way to the caller.
        for wakes in [0, 1] {
            for is_last in [false, true] {
                let zk = connected(network).await;
                let kept = (!is_last).then(|| zk.clone());
                assert!(dropped_when_woken(wakes, zk.detach()).await.is_none());
                pass(MOMENT).await;
                assert_eq!(sessions(network), 0, "woken {wakes} times, {is_last}");
                drop(kept);
            }
        }
    });
}

#[test]
fn detach_does_not_undo_a_close() {
    play(Config::default(), async |network| {
        for close_first in [true, false] {
            let zk = connected(network).await;
            let mut cx = Context::from_waker(Waker::noop());
            let (mut close, mut detach) = (pin!(zk.close()), pin!(zk.clone().detach()));
            if close_first {
                assert!(close.as_mut().poll(&mut cx).is_pending());
            }
            assert!(detach.as_mut().poll(&mut cx).is_pending());
            assert_eq!(close.await, Ok(()));
            assert_eq!(detach.await, None);
            assert_eq!(sessions(network), 0);
        }
    });
}

/// A caller that has asked and looks elsewhere stops nobody.
#[test]
fn detach_that_nobody_polls_holds_nothing_up() {
    play(Config::default(), async |network| {
        let refused = || Cause::SessionEnded(SessionEnd::Closed);
        // The driver has offered the session when each of these comes.
        let offered = async || {
            let zk = connected(network).await;
            zk.create("/mine", b"").mode(CreateMode::Ephemeral).await.unwrap();
            let left = zk.clone().detach();
            pass(MOMENT).await;
            (zk, left)
        };

        let (zk, left) = offered().await;
        assert_eq!(within(zk.close()).await, Ok(()));
        assert_eq!(left.await, None);
        assert_eq!(sessions(network), 0);

        let (zk, left) = offered().await;
        assert_eq!(within(async { tokio::join!(biased; zk.close(), left) }).await, (Ok(()), None));
        assert_eq!(sessions(network), 0);

        let (zk, left) = offered().await;
        network.cut(ME);
        let limit = Duration::from_secs(1);
        assert!(matches!(within(zk.close_within(limit)).await, Err(WriteError::InDoubt { .. })));
        assert_eq!(left.await, None);
        network.heal();
        pass(Duration::from_secs(30)).await;

        let (zk, left) = offered().await;
        assert_eq!(within(zk.get("/")).await.unwrap_err(), ReadError::Unavailable(refused()));
        let late = within(zk.add_auth("digest", "ann:secret")).await.unwrap_err();
        assert_eq!(late, ReadError::Unavailable(refused()));
        // It is kept alive, however long nobody looks.
        pass(Duration::from_secs(60)).await;
        let heir = network.options(ME, "", 8).resume(left.await.unwrap()).connect().await.unwrap();
        assert!(heir.exists("/mine").await.unwrap().is_some());
        heir.close().await.unwrap();

        let (zk, left) = offered().await;
        network.cut(ME);
        assert_eq!(within(zk.session().ended()).await, SessionEnd::Expired);
        assert_eq!(left.await, None);
        network.heal();
        pass(Duration::from_secs(30)).await;

        // What has to be given back is taken back from the heir's sight.
        let zk = connected(network).await;
        let made = zk.create("/own", b"").mode(CreateMode::Ephemeral).protected().await;
        let own = made.unwrap().owned.unwrap();
        let path = own.path().to_owned();
        let left = zk.clone().detach();
        pass(MOMENT).await;
        assert_eq!(zk.session().state(), SessionState::Closing);
        // The driver has not looked when the caller does.
        drop(own);
        let heir = network.options(ME, "", 9).resume(left.await.unwrap()).connect().await.unwrap();
        assert_eq!(heir.exists(&path).await.unwrap(), None);
    });
}

/// The close that a dropped detach makes is confirmed to those that ask too.
#[test]
fn close_behind_a_dropped_detach_is_confirmed() {
    play(Config::default(), async |network| {
        for waits in [false, true] {
            let zk = connected(network).await;
            drop(zk.clone().detach());
            if waits {
                pass(MOMENT).await;
                assert_eq!(sessions(network), 0);
            }
            assert_eq!(within(zk.close()).await, Ok(()));
            assert_eq!(sessions(network), 0);
        }
    });
}

/// Both wait for what must not be abandoned: here, a create whose answer is late.
#[test]
fn last_of_several_detaches_has_the_session() {
    play(Config::default(), async |network| {
        let late = Duration::from_secs(1);
        network.direct(move |_, op| match op {
            OpCode::CREATE2 => Disposition::Late(late),
            _ => Disposition::Answered,
        });
        for waits in [false, true] {
            let zk = connected(network).await;
            let create = zk.create("/mine", b"").mode(CreateMode::Ephemeral).protected();
            let created = waits.then(|| create.submit());
            let began = Instant::now();
            let (first, second) = (zk.clone().detach(), zk.detach());
            let (first, second) = within(async { tokio::join!(first, second) }).await;
            assert_eq!(first, None, "{waits}");
            assert_eq!(began.elapsed() >= late, waits);
            let left = second.unwrap();
            let heir = network.options(ME, "", 8).resume(left).connect().await.unwrap();
            if let Some(created) = created {
                let path = within(created).await.unwrap().path;
                assert!(heir.exists(&path).await.unwrap().is_some());
            }
            heir.close().await.unwrap();
        }
    });
}
