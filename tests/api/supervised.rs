//! Services that are run again under a new session when theirs ends.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{spawn, sync::oneshot, time::Instant};
use zk_client::{
    Client, ConnectError, ConnectOptions, CreateMode, Error, Interruption, ReadError, SessionEnd,
    SessionState, Supervise,
};
use zk_testkit::{TestServer, server::Config};
use zk_tests::{
    network::{Network, pass},
    patience::{closed, within},
    paused,
};

fn options(server: &TestServer) -> ConnectOptions {
    ConnectOptions::new(&server.connect_string()).unwrap()
}

/// Pauses that a test does not wait for.
fn quickly<E>(options: ConnectOptions) -> Supervise<E> {
    Supervise::new(options).pause(Duration::from_millis(1)).pause_max(Duration::from_millis(8))
}

/// A live service: counts up as long as it is there.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_service_that_is_done_ends_its_session() {
    let server = TestServer::start().await.unwrap();
    let mut sessions = Vec::new();
    let value = Supervise::new(options(&server)).run(|zk: Client| {
        sessions.push(zk.session());
        async move {
            zk.create("/here", b"").mode(CreateMode::Ephemeral).await?;
            Ok::<_, Error>(7)
        }
    });
    assert_eq!(within(value).await, Ok(7));
    assert_eq!(sessions.len(), 1);
    assert_eq!(within(sessions[0].ended()).await, SessionEnd::Closed);
    let zk = options(&server).connect().await.unwrap();
    assert_eq!(zk.exists("/here").await.unwrap(), None);
}

#[tokio::test]
async fn errors_are_retried_until_stop_if_matches() {
    let server = TestServer::start().await.unwrap();
    let mut runs = 0;
    let ended =
        quickly(options(&server)).stop_if(|why| *why == Interruption::Failed(5)).run(|_| {
            runs += 1;
            std::future::ready(Err::<(), _>(runs))
        });
    assert_eq!(within(ended).await, Err(Interruption::Failed(5)));
    assert_eq!(runs, 5);
}

/// A service that chooses its nodes' names itself: with the next run they are free.
#[tokio::test]
async fn failed_run_closes_its_session_first() {
    let server = TestServer::start().await.unwrap();
    let mut runs = 0;
    let ended = quickly(options(&server)).run(|zk| {
        runs += 1;
        let is_last = runs == 20;
        async move {
            let created = zk.create("/fixed", b"").mode(CreateMode::Ephemeral).await;
            assert!(created.is_ok(), "{created:?}");
            if is_last { Ok(()) } else { Err("again") }
        }
    });
    assert_eq!(within(ended).await, Ok(()));
}

/// However the connection of the session is.
#[test]
fn failed_run_closes_its_session_although_it_is_disconnected() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let mut runs = 0;
        let ended = quickly(network.options("service", "", 1)).run(|zk| {
            runs += 1;
            let (is_last, network) = (runs == 3, network.clone());
            async move {
                let created = zk.create("/fixed", b"").mode(CreateMode::Ephemeral).await;
                assert!(created.is_ok(), "{created:?}");
                if is_last {
                    return Ok(());
                }
                let mut session = zk.session();
                network.cut("service");
                assert_eq!(within(session.changed()).await, SessionState::Disconnected);
                // Long before the session expires.
                spawn(async move {
                    pass(Duration::from_secs(1)).await;
                    network.heal();
                });
                Err("again")
            }
        });
        assert_eq!(within(ended).await, Ok(()));
    });
}

/// Of a service that waits for ever, and of one that notices and returns what it makes of it.
#[tokio::test]
async fn session_end_restarts_the_service() {
    let server = TestServer::start().await.unwrap();
    for notices in [false, true] {
        let alive = Arc::new(AtomicUsize::new(0));
        let mut runs = 0;
        let ended = quickly(options(&server)).run(|zk| {
            assert_eq!(alive.load(Ordering::SeqCst), 0, "two at once");
            runs += 1;
            let (is_last, alive) = (runs == 11, Alive::new(&alive));
            let server = &server;
            async move {
                let _alive = alive;
                if is_last {
                    return Ok(());
                }
                server.expire(zk.session().id());
                if notices {
                    zk.session().ended().await;
                    return Err("the session has ended");
                }
                std::future::pending().await
            }
        });
        assert_eq!(within(ended).await, Ok(()), "{notices}");
        assert_eq!((runs, alive.load(Ordering::SeqCst)), (11, 0));
    }
}

/// The service hears of it first, by a connection that is lost.
#[test]
fn end_of_the_session_is_not_a_failure_of_the_service() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let mut runs = 0;
        let ended = Supervise::new(network.options("service", "", 1))
            .stop_if(|why| matches!(why, Interruption::Failed(_)))
            .run(|zk| {
                runs += 1;
                let (is_last, network) = (runs == 3, &network);
                async move {
                    if is_last {
                        return Ok(());
                    }
                    network.expire(zk.session().id());
                    loop {
                        zk.exists("/").fail_fast().await?;
                    }
                }
            });
        assert_eq!(within(ended).await, Ok::<(), Interruption<ReadError>>(()));
        assert_eq!(runs, 3);
    });
}

/// What it returns then counts if it is good news.
#[tokio::test]
async fn service_has_a_grace_after_session_end() {
    let server = TestServer::start().await.unwrap();
    let mut runs = 0;
    let ended = quickly::<&str>(options(&server)).grace(Duration::from_secs(20)).run(|zk| {
        runs += 1;
        let run = runs;
        let server = &server;
        async move {
            server.expire(zk.session().id());
            zk.session().ended().await;
            tokio::task::yield_now().await;
            if run == 3 { Ok(run) } else { Err("written down") }
        }
    });
    assert_eq!(within(ended).await, Ok(3));
}

#[tokio::test]
async fn service_ignoring_its_grace_is_dropped() {
    let server = TestServer::start().await.unwrap();
    let mut runs = 0;
    let ended = quickly::<()>(options(&server)).grace(Duration::from_millis(20)).run(|zk| {
        runs += 1;
        let run = runs;
        let server = &server;
        async move {
            if run == 2 {
                return Ok(());
            }
            server.expire(zk.session().id());
            std::future::pending().await
        }
    });
    assert_eq!(within(ended).await, Ok(()));
}

#[tokio::test]
async fn closed_client_ends_supervision() {
    let server = TestServer::start().await.unwrap();
    let ended = quickly::<()>(options(&server)).run(|zk| async move {
        closed(&zk).await;
        std::future::pending::<Result<(), ()>>().await
    });
    assert_eq!(within(ended).await, Err(Interruption::SessionEnded(SessionEnd::Closed)));
}

/// The last service of an old session learns of its end, and goes on with a new one.
#[tokio::test]
async fn a_resumed_session_is_resumed_once() {
    let server = TestServer::start().await.unwrap();
    for lives in [true, false] {
        let first = options(&server).connect().await.unwrap();
        let old = first.session().id();
        let credentials = first.detach().await.unwrap();
        if !lives {
            server.expire(old);
        }
        let mut seen = Vec::new();
        let ended = quickly::<&str>(options(&server).resume(credentials)).run(|zk| {
            seen.push(zk.session().id());
            let run = seen.len();
            async move { if run == 2 { Ok(()) } else { Err("again") } }
        });
        assert_eq!(within(ended).await, Ok(()));
        assert_eq!(seen[0] == old, lives);
        assert_ne!(seen[1], old);
    }
}

/// At first, no server answers.
#[tokio::test]
async fn servers_that_are_away_are_waited_for() {
    let server = TestServer::start().await.unwrap();
    server.pause();
    let options = options(&server).connect_deadline(Some(Duration::from_millis(50)));
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = attempts.clone();
    let server = Arc::new(server);
    let back = server.clone();
    let ended = quickly::<()>(options)
        .stop_if(move |why| {
            assert!(matches!(why, Interruption::NoSession(ConnectError::TimedOut { .. })));
            if counted.fetch_add(1, Ordering::SeqCst) == 3 {
                back.resume();
            }
            false
        })
        .run(|_| std::future::ready(Ok(())));
    assert_eq!(within(ended).await, Ok(()));
    assert!(attempts.load(Ordering::SeqCst) >= 4);
}

/// The service first, and the session behind it.
#[tokio::test]
async fn drop_or_stop_ends_service_then_session() {
    let server = TestServer::start().await.unwrap();
    for stops in [true, false] {
        let alive = Arc::new(AtomicUsize::new(0));
        let session = Arc::new(Mutex::new(None));
        let (begun, has_begun) = oneshot::channel();
        let mut begun = Some(begun);
        let (kept, counted) = (session.clone(), alive.clone());
        let service = move |zk: Client| {
            *kept.lock().unwrap() = Some(zk.session());
            let (begun, alive) = (begun.take().unwrap(), Alive::new(&counted));
            async move {
                let _alive = alive;
                zk.create("/served", b"").mode(CreateMode::Ephemeral).await?;
                begun.send(()).unwrap();
                std::future::pending::<Result<(), Error>>().await
            }
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let supervised = spawn(Supervise::new(options(&server)).run_until(service, stopped));
        within(has_begun).await.unwrap();
        if stops {
            drop(stop);
            assert_eq!(within(supervised).await.unwrap(), Ok(None));
        } else {
            supervised.abort();
            assert!(within(supervised).await.unwrap_err().is_cancelled());
        }
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        let session = session.lock().unwrap().take().unwrap();
        assert_eq!(within(session.ended()).await, SessionEnd::Closed);
        let zk = options(&server).connect().await.unwrap();
        assert_eq!(zk.exists("/served").await.unwrap(), None);
    }
}

#[tokio::test]
async fn panic_propagates_and_closes_the_session() {
    let server = TestServer::start().await.unwrap();
    let session = Arc::new(Mutex::new(None));
    let kept = session.clone();
    let supervised = spawn(Supervise::new(options(&server)).run(move |zk: Client| {
        *kept.lock().unwrap() = Some(zk.session());
        async move {
            zk.sync("/").await?;
            assert!(zk.session().state() == SessionState::Closing, "on purpose");
            Ok::<(), Error>(())
        }
    }));
    assert!(within(supervised).await.unwrap_err().is_panic());
    let session = session.lock().unwrap().take().unwrap();
    assert_eq!(within(session.ended()).await, SessionEnd::Closed);
}

/// By a simulated clock: pauses grow, are never longer than the longest, and differ from seed to seed.
#[tokio::test(start_paused = true)]
async fn pauses_grow_up_to_the_longest_and_differ() {
    let mut first_pauses = Vec::new();
    for seed in 0..8 {
        let refused = ConnectOptions::new("127.0.0.1:1").unwrap().seed(seed);
        let refused = refused.connector(Nowhere).connect_deadline(Some(Duration::ZERO));
        let times = Arc::new(Mutex::new(Vec::new()));
        let noted = times.clone();
        let ended = Supervise::<()>::new(refused)
            .pause(Duration::from_secs(1))
            .pause_max(Duration::from_secs(10))
            .stop_if(move |_| {
                let mut times = noted.lock().unwrap();
                times.push(Instant::now());
                times.len() == 9
            })
            .run(|_| std::future::ready(Ok(())));
        assert!(matches!(ended.await, Err(Interruption::NoSession(_))));
        let times = times.lock().unwrap();
        let pauses: Vec<f64> =
            times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        for (pause, most) in pauses.iter().zip([1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0]) {
            assert!((most / 2.0..=most + 0.1).contains(pause), "{pauses:?}");
        }
        first_pauses.push(pauses[0].to_bits());
    }
    first_pauses.sort_unstable();
    first_pauses.dedup();
    assert!(first_pauses.len() > 3, "they come back in step");
}

/// However long it took to end the session.
#[test]
fn short_sessions_do_not_start_pauses_over() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let (failed, healed) = (Arc::new(Mutex::new(Instant::now())), network.clone());
        let (last, mut pauses) = (failed.clone(), Vec::new());
        let ended = Supervise::new(network.options("service", "", 1))
            .pause(Duration::from_millis(100))
            .pause_max(Duration::from_secs(1))
            .stop_if(move |_| {
                healed.heal();
                *failed.lock().unwrap() = Instant::now();
                false
            })
            .run(|_| {
                pauses.push(last.lock().unwrap().elapsed());
                // The close waits for as long as it may.
                network.hold("service");
                std::future::ready(if pauses.len() > 4 { Ok(()) } else { Err("at once") })
            });
        assert_eq!(within(ended).await, Ok(()));
        assert!(pauses[4] > Duration::from_millis(400), "{pauses:?}");
    });
}

/// However long the service went on without it.
#[test]
fn grace_does_not_start_pauses_over() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let failed = Arc::new(Mutex::new(Instant::now()));
        let (last, mut pauses) = (failed.clone(), Vec::new());
        let ended = Supervise::<()>::new(network.options("service", "", 1))
            .pause(Duration::from_millis(100))
            .pause_max(Duration::from_secs(1))
            .grace(Duration::from_secs(5))
            .stop_if(move |_| {
                *failed.lock().unwrap() = Instant::now();
                false
            })
            .run(|zk| {
                pauses.push(last.lock().unwrap().elapsed());
                network.expire(zk.session().id());
                let is_enough = pauses.len() > 4;
                async move {
                    match is_enough {
                        true => Ok(()),
                        false => std::future::pending().await,
                    }
                }
            });
        assert_eq!(within(ended).await, Ok(()));
        assert!(pauses[4] > Duration::from_millis(400), "{pauses:?}");
    });
}

/// There is no server.
struct Nowhere;

impl zk_client::Connect for Nowhere {
    fn connect(
        &self,
        _server: &str,
    ) -> zk_client::BoxFuture<'static, std::io::Result<Box<dyn zk_client::Transport>>> {
        Box::pin(std::future::pending())
    }
}
