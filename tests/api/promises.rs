//! Promises that were kept alone and broken together: an option with a way to end, a trouble with a stage of life.

use std::{
    future::{Future, poll_fn},
    io,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
    time::Duration,
};

use tokio::time::Instant;
use zk_client::{
    BoxFuture, Cache, CacheState, Cause, Client, Connect, ConnectError, ConnectOptions, CreateMode,
    OpCode, ReadError, SessionEnd, Supervise, Transport, WriteError,
};
use zk_testkit::{real::Release, server::Config};
use zk_tests::{
    log::Log,
    network::{Connector, Disposition, Network, Way, pass},
    patience::within,
    paused,
    polls::dropped_after,
};

/// The name of the only client.
pub(super) const ME: &str = "me";

/// A moment in which whatever is under way arrives.
pub(super) const MOMENT: Duration = Duration::from_millis(100);

/// Plays in virtual time, on a server of its own.
pub(super) fn play(config: Config, test: impl AsyncFn(&Network)) {
    paused::block_on(async { test(&Network::new(config)).await });
}

pub(super) async fn connected(network: &Network) -> Client {
    network.options(ME, "", 7).connect().await.unwrap()
}

/// Answers requests for data a second late.
pub(super) fn slow_reads(network: &Network) {
    network.direct(|_, op| match op {
        OpCode::GET_DATA => Disposition::Late(Duration::from_secs(1)),
        _ => Disposition::Answered,
    });
}

#[test]
fn fail_fast_waits_for_no_other_server() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        slow_reads(network);
        let owed = zk.get("/").submit();
        pass(MOMENT).await;
        zk.update_servers("elsewhere").unwrap();
        let hasty = zk.exists("/").fail_fast().await;
        assert_eq!(hasty, Err(ReadError::Unavailable(Cause::NotConnected)));
        owed.await.unwrap();
        zk.exists("/").await.unwrap();
        assert_eq!(zk.session().epoch(), 2);
    });
}

#[test]
fn fail_fast_waits_for_no_room() {
    play(Config::default(), async |network| {
        let zk = network.options(ME, "", 7).requests_max(1).connect().await.unwrap();
        slow_reads(network);
        let owed = zk.get("/").submit();
        for hasty in
            [zk.patient().exists("/").fail_fast().submit(), zk.exists("/").fail_fast().submit()]
        {
            assert_eq!(hasty.await, Err(ReadError::Unavailable(Cause::QueueFull)));
        }
        assert_eq!(
            zk.patient().exists("/").fail_fast().await,
            Err(ReadError::Unavailable(Cause::QueueFull))
        );
        owed.await.unwrap();
    });
}

#[test]
fn close_sends_what_waits_for_room() {
    play(Config::default(), async |network| {
        for closes in [true, false] {
            let zk = network.options(ME, "", 7).requests_max(1).connect().await.unwrap();
            slow_reads(network);
            let owed = zk.get("/").submit();
            let write = zk.patient().set("/", b"at last").submit();
            if closes {
                zk.close().await.unwrap();
            }
            drop(zk);
            owed.await.unwrap();
            write.await.unwrap();
        }
    });
}

#[test]
fn session_outlives_attempts_to_resume_it() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        zk.create("/mine", b"").mode(CreateMode::Ephemeral).await.unwrap();
        let left = zk.detach().await.unwrap();
        let resume = || network.options(ME, "", 7).resume(left.clone());
        network.cut(ME);
        let brief = resume().connect_deadline(Some(MOMENT)).connect().await;
        assert!(matches!(brief, Err(ConnectError::TimedOut { .. })), "{brief:?}");
        network.heal();
        pass(Duration::from_secs(3)).await;
        // Given up where it connects, and where it is connected.
        for polls in 1..8 {
            let resumed = dropped_after(polls, resume().connect()).await;
            assert!(!matches!(resumed, Some(Err(_))), "{resumed:?}");
            if let Some(Ok(heir)) = resumed {
                heir.detach().await.unwrap();
            }
            pass(Duration::from_millis(1)).await;
        }
        pass(Duration::from_secs(3)).await;
        let heir = resume().connect().await.unwrap();
        assert!(heir.exists("/mine").await.unwrap().is_some());
    });
}

#[test]
fn margin_of_a_resumed_session_is_judged_by_its_shortest_timeout() {
    play(Config::default(), async |network| {
        let wish =
            |seconds| network.options(ME, "", 7).session_timeout(Duration::from_secs(seconds));
        for (granted, is_told) in [(10, true), (30, false)] {
            let left = wish(granted).connect().await.unwrap().detach().await.unwrap();
            let log = Log::of_this_thread();
            let margin = Duration::from_secs(8);
            let heir = wish(30).lease_margin(margin).resume(left).connect().await.unwrap();
            assert_eq!(log.text().contains("the margin of the lease is half"), is_told);
            heir.close().await.unwrap();
        }
    });
}

#[test]
fn resumed_session_lasts_as_granted_and_not_as_its_heir_wishes() {
    play(Config::default(), async |network| {
        let wish =
            |seconds| network.options(ME, "", 7).session_timeout(Duration::from_secs(seconds));
        let zk = wish(40).connect().await.unwrap();
        zk.create("/mine", b"").mode(CreateMode::Ephemeral).await.unwrap();
        let left = zk.detach().await.unwrap();
        let inherit = || wish(4).connect_deadline(None).resume(left.clone()).connect();
        network.cut(ME);
        let (heir, ()) = tokio::join!(inherit(), async {
            pass(Duration::from_secs(20)).await;
            network.heal();
        });
        let heir = heir.unwrap();
        assert!(heir.exists("/mine").await.unwrap().is_some());
        assert_eq!(heir.detach().await.unwrap().timeout, Duration::from_secs(4));
        // Without any server it ends by the clock, a third beyond what was granted to it.
        network.cut(ME);
        let began = Instant::now();
        let ended = inherit().await.unwrap_err();
        assert!(matches!(ended, ConnectError::SessionEnded(SessionEnd::Expired)), "{ended:?}");
        assert!(began.elapsed().abs_diff(Duration::from_secs(54)) < Duration::from_secs(2));
    });
}

#[test]
fn node_is_taken_back_where_nothing_was_sent() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        let node = |path| zk.create(path, b"").mode(CreateMode::Ephemeral);
        let mut old = node("/old").protected().await.unwrap().owned.unwrap();
        let trade = |old| zk.create_all_protected([node("/new")]).replacing(old);
        for no_version in [false, true] {
            let trade = trade(old);
            let trade =
                if no_version { trade.check_version("/", -1) } else { trade.check("no path") };
            let mut pending = trade.submit();
            let error = (&mut pending).await.map(drop).unwrap_err();
            assert!(matches!(error, WriteError::NotApplied(_)), "{error:?}");
            old = pending.take_back().unwrap();
        }
        assert!(zk.exists(old.path()).await.unwrap().is_some());
    });
}

/// A transaction would delete whatever has the name by then.
#[test]
fn node_of_a_shared_name_is_not_replaced() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        let other = network.options("other", "", 8).connect().await.unwrap();
        let node = |path| zk.create(path, b"ours").mode(CreateMode::Ephemeral);
        for path in ["/name", "/numbered-"] {
            let node = match path {
                "/name" => node(path),
                _ => node(path).mode(CreateMode::EphemeralSequential),
            };
            let old = node.protected_by_its_data().await.unwrap().owned.unwrap();
            let path = old.path().to_owned();
            other.delete(&path).await.unwrap();
            other.create(&path, b"theirs").await.unwrap();
            let new = zk.create("/new", b"").mode(CreateMode::Ephemeral).protected();
            let error = zk.create_all_protected([new]).replacing(old).await.map(drop).unwrap_err();
            assert!(matches!(error, WriteError::NotApplied(_)), "{error:?}");
            pass(MOMENT).await;
            assert_eq!(other.get(&path).await.unwrap().0, "theirs");
        }
    });
}

/// A connector whose first attempts get no answer.
struct Deaf(Connector, AtomicUsize);

impl Connect for Deaf {
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        match self.1.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Box::pin(std::future::pending()),
            Err(_) => self.0.connect(server),
        }
    }
}

/// However long a timeout its heir wishes for: of three servers, two do not answer.
#[test]
fn resumed_session_tries_every_server_within_its_life() {
    play(Config::default(), async |network| {
        let wish = |seconds| {
            let deaf = Deaf(network.connector(ME), AtomicUsize::new(2));
            let start = Instant::now();
            ConnectOptions::new("a,b,c")
                .unwrap()
                .connector(deaf)
                .clock(move || start.elapsed())
                .seed(7)
                .session_timeout(Duration::from_secs(seconds))
                .connect_deadline(None)
        };
        let zk = wish(4).connect().await.unwrap();
        zk.create("/mine", b"").mode(CreateMode::Ephemeral).await.unwrap();
        let left = zk.detach().await.unwrap();
        let heir = wish(40).resume(left).connect().await.unwrap();
        assert!(heir.exists("/mine").await.unwrap().is_some());
    });
}

#[test]
fn timeout_bounds_both_creates_of_old_servers() {
    let mut config = Config::default();
    config.release = Release::V3_4;
    play(config, async |network| {
        let zk = connected(network).await;
        network.direct(|_, op| match op {
            OpCode::CREATE2 => Disposition::Late(Duration::from_millis(200)),
            OpCode::CREATE => Disposition::Late(Duration::from_secs(5)),
            _ => Disposition::Answered,
        });
        let (began, limit) = (Instant::now(), Duration::from_millis(300));
        let late = WriteError::NotApplied(Cause::DeadlineExceeded);
        assert_eq!(zk.create("/a", b"").timeout(limit).await.map(drop), Err(late));
        assert!(began.elapsed() < limit + MOMENT, "{:?}", began.elapsed());
    });
}

/// What cannot be held back comes behind what was.
#[test]
fn cork_keeps_the_order_of_identities() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        let ops = Arc::new(Mutex::new(Vec::new()));
        let seen = ops.clone();
        network.direct(move |_, op| {
            seen.lock().unwrap().push(op);
            Disposition::Answered
        });
        let cork = zk.cork();
        let before = cork.get("/").submit();
        let known = cork.add_auth("digest", "ann:secret");
        let behind = cork.exists("/").submit();
        drop(cork);
        before.await.unwrap();
        known.await.unwrap();
        behind.await.unwrap();
        assert_eq!(*ops.lock().unwrap(), [OpCode::GET_DATA, OpCode::AUTH, OpCode::EXISTS]);

        zk.create("/a", b"").await.unwrap();
        let cork = zk.cork();
        let created = cork.create("/a/x", b"").submit();
        assert_eq!(within(cork.delete_recursive("/a")).await.unwrap(), 2);
        within(created).await.unwrap();
        drop(cork);

        let cork = zk.cork();
        let write = cork.set("/", b"at last").submit();
        within(cork.close()).await.unwrap();
        within(write).await.unwrap();
    });
}

#[test]
fn reply_that_is_too_long_costs_a_cache_little() {
    play(Config::default(), async |network| {
        let options = network.options(ME, "", 7).reply_len_max(2000);
        let zk = options.connect().await.unwrap();
        zk.create("/c/a", b"").parents().await.unwrap();
        zk.create("/c/long", &[0; 5000]).await.unwrap();
        let cache = Cache::subtree(&zk, "/c").start().unwrap();
        pass(Duration::from_secs(60)).await;
        let epochs = zk.session().epoch();
        assert!(epochs < 10, "{epochs} connections");
        assert!(
            matches!(cache.state(), CacheState::Refused(ReadError::Unavailable(_))),
            "{cache:?}"
        );
        assert!(cache.get("/c/a").is_some());
        zk.set("/c/long", b"short").await.unwrap();
        pass(Duration::from_secs(1)).await;
        assert_eq!(cache.state(), CacheState::Following);
        assert!(cache.get("/c/long").is_some());
    });
}

/// Also while the cache reads something else.
#[test]
fn node_that_has_become_shorter_is_read_at_once() {
    play(Config::default(), async |network| {
        let zk = network.options(ME, "", 7).reply_len_max(2000).connect().await.unwrap();
        let other = network.options("other", "", 8).connect().await.unwrap();
        other.create("/c/a", b"").parents().await.unwrap();
        other.create("/c/long", &[0; 5000]).await.unwrap();
        let cache = Cache::subtree(&zk, "/c").start().unwrap();
        pass(Duration::from_secs(60)).await;
        assert!(matches!(cache.state(), CacheState::Refused(_)), "{cache:?}");
        // Its reads take a second to arrive.
        network.slow(ME, Way::ToServer, 30);
        other.set("/c/a", b"new").await.unwrap();
        pass(MOMENT).await;
        other.set("/c/long", b"short").await.unwrap();
        pass(MOMENT).await;
        network.heal();
        pass(Duration::from_secs(3)).await;
        assert_eq!(cache.state(), CacheState::Following);
        assert!(cache.get("/c/long").is_some());
    });
}

#[test]
fn each_close_waits_as_long_as_it_has_said() {
    play(Config::default(), async |network| {
        let zk = network.options(ME, "", 7).session_timeout(Duration::from_secs(40));
        let zk = zk.connect().await.unwrap();
        network.cut(ME);
        let mut long = pin!(zk.close_within(Duration::from_secs(60)));
        poll_fn(|cx| {
            assert!(long.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        pass(MOMENT).await;
        let began = Instant::now();
        zk.close().await.unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    });
}

#[test]
fn long_protected_create_does_not_try_for_ever() {
    let mut config = Config::default();
    config.request_len_max = 4096;
    play(config, async |network| {
        let zk = connected(network).await;
        let create = zk.create("/long", &[0; 5000]).mode(CreateMode::Ephemeral).protected();
        let created = tokio::time::timeout(Duration::from_secs(60), create).await;
        let epochs = zk.session().epoch();
        let created = created.unwrap_or_else(|_| panic!("{epochs} connections"));
        assert!(matches!(created, Err(WriteError::InDoubt { .. })), "{created:?}");
        assert!(epochs < 20, "{epochs} connections");
    });
}

#[test]
fn stop_costs_no_result_of_a_service() {
    play(Config::default(), async |network| {
        let options = network.options(ME, "", 7);
        let service = async |_: Client| {
            network.hold(ME);
            Ok::<_, WriteError>(7)
        };
        // While the session is being closed.
        let result = Supervise::new(options).run_until(service, pass(MOMENT)).await;
        assert_eq!(result, Ok(Some(7)));
    });
}
