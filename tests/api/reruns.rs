//! Services that are run again: in which session, behind which pause, and what ends it.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{spawn, time::Instant};
use zk_client::{
    Client, ConnectError, Interruption, OpCode, ReadError, Rejection, SessionEnd, Supervise,
};
use zk_testkit::server::Config;
use zk_tests::{
    network::{Disposition, pass},
    patience::within,
};

use super::promises::{ME, MOMENT, connected, play};

/// At first, no server answers.
#[test]
fn session_is_resumed_behind_failed_attempts() {
    play(Config::default(), async |network| {
        let first = connected(network).await;
        let old = first.session().id();
        let left = first.detach().await.unwrap();
        network.cut(ME);
        let options = network.options(ME, "", 8).resume(left).connect_deadline(Some(MOMENT));
        let (healed, mut failures) = (network.clone(), 0);
        let resumed = Supervise::<()>::new(options)
            .stop_if(move |why| {
                let is_late = matches!(why, Interruption::NoSession(ConnectError::TimedOut { .. }));
                assert!(is_late, "{why:?}");
                failures += 1;
                if failures == 3 {
                    healed.heal();
                }
                false
            })
            .run(|zk| std::future::ready(Ok(zk.session().id())));
        assert_eq!(within(resumed).await, Ok(old));
    });
}

/// Of a service that waits for ever, of one that asks, and of one that has failed before the end is known.
#[test]
fn refused_credentials_end_supervision() {
    play(Config::default(), async |network| {
        for service in ["waits", "asks", "fails"] {
            let options = network.options(ME, "", 7).auth("nonsense", "x");
            let mut runs = 0;
            let ended = Supervise::new(options).run(|zk| {
                runs += 1;
                async move {
                    match service {
                        "waits" => pending().await,
                        "asks" => zk.get("/").await.map(drop),
                        _ => Err(ReadError::Rejected(Rejection::NoNode)),
                    }
                }
            });
            let refused = Interruption::SessionEnded(SessionEnd::AuthFailed);
            assert_eq!(within(ended).await, Err(refused), "{service}");
            assert_eq!(runs, 1, "{service}");
        }
    });
}

/// By then the pauses have grown up to the longest.
#[test]
fn long_session_starts_pauses_over() {
    play(Config::default(), async |network| {
        let [pause, pause_max] = [100, 1000].map(Duration::from_millis);
        let failed = Arc::new(Mutex::new(Instant::now()));
        let (last, mut pauses) = (failed.clone(), Vec::new());
        let ended = Supervise::new(network.options(ME, "", 7))
            .pause(pause)
            .pause_max(pause_max)
            .stop_if(move |_| {
                *failed.lock().unwrap() = Instant::now();
                false
            })
            .run(|_| {
                pauses.push(last.lock().unwrap().elapsed());
                let run = pauses.len();
                async move {
                    match run {
                        5 => pass(2 * pause_max).await,
                        6 => return Ok(()),
                        _ => {}
                    }
                    Err("again")
                }
            });
        assert_eq!(within(ended).await, Ok(()));
        // Before the first run there was none, but for the time that it takes to connect.
        let connecting = pauses[0];
        assert!(connecting < MOMENT, "{pauses:?}");
        assert!(pauses[4] > 4 * pause, "{pauses:?}");
        assert!(pauses[5] <= pause + 2 * connecting, "{pauses:?}");
    });
}

/// The close of the session has its usual time.
#[test]
fn stop_waits_two_seconds_for_held_servers() {
    play(Config::default(), async |network| {
        let service = async |_: Client| {
            network.hold(ME);
            pending::<Result<(), ReadError>>().await
        };
        let (began, lasts) = (Instant::now(), Duration::from_secs(1));
        let stopped = Supervise::new(network.options(ME, "", 7)).run_until(service, pass(lasts));
        assert_eq!(within(stopped).await, Ok(None));
        let closing = began.elapsed() - lasts;
        assert!(closing.abs_diff(Duration::from_secs(2)) < MOMENT, "{closing:?}");
        let sessions = network.look(|server| server.sessions().count());
        assert_eq!(sessions, 1, "no server has heard of it");
    });
}

/// The service hears of it from its next request, before the session has ended.
#[test]
fn client_closed_under_a_busy_service_ends_supervision() {
    play(Config::default(), async |network| {
        network.direct(|_, op| match op {
            OpCode::CLOSE_SESSION => Disposition::Late(Duration::from_millis(500)),
            _ => Disposition::Answered,
        });
        let mut runs = 0;
        let ended = Supervise::<ReadError>::new(network.options(ME, "", 7)).run(|zk| {
            runs += 1;
            let closing = zk.clone();
            spawn(async move { closing.close().await });
            async move {
                loop {
                    zk.exists("/").await?;
                }
            }
        });
        let ended: Result<(), _> = within(ended).await;
        assert_eq!(ended, Err(Interruption::SessionEnded(SessionEnd::Closed)));
        assert_eq!(runs, 1);
    });
}
