//! Runtimes that end, and what of their sessions and caches goes on elsewhere.

use std::{
    sync::{Arc, Barrier, Mutex},
    thread,
    time::Duration,
};

use tokio::runtime;
use zk_client::{Cache, CacheState, Client, ConnectOptions, SessionEnd, SessionObserver};
use zk_testkit::TestServer;
use zk_tests::patience::{closed, within};

use crate::api::caches::converged;

/// On which a cache is started.
fn brief_runtime() -> runtime::Runtime {
    runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// And on which it has to go on.
fn lasting_runtime() -> runtime::Runtime {
    runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[derive(Default)]
struct Ends(Mutex<Vec<SessionEnd>>);

impl SessionObserver for Ends {
    fn ended(&self, end: SessionEnd) {
        self.0.lock().unwrap().push(end);
    }
}

/// What was started on a runtime that is no more.
#[test]
fn cache_goes_on_without_its_first_runtime() {
    let lasting = lasting_runtime();
    let server = lasting.block_on(TestServer::start()).unwrap();
    let ends = Arc::new(Ends::default());
    let options = || ConnectOptions::new(&server.connect_string()).unwrap();
    let brief = brief_runtime();
    let (zk, cache, cleared) = brief.block_on(async {
        let zk = options().observer(ends.clone()).connect().await.unwrap();
        zk.create("/c/a", b"").parents().await.unwrap();
        let cache = Cache::subtree(&zk, "/c").start().unwrap();
        let cleared = Cache::subtree(&zk, "/c").clear_at_end().start().unwrap();
        cache.ready().await.unwrap();
        cleared.ready().await.unwrap();
        (zk, cache, cleared)
    });
    drop(brief);
    assert_eq!(*ends.0.lock().unwrap(), [SessionEnd::Closed]);
    assert_eq!(cache.state(), CacheState::Ended(SessionEnd::Closed));
    assert_eq!(cache.nodes().len(), 2);
    assert_eq!(cleared.nodes(), []);
    drop(zk);
    lasting.block_on(async {
        let zk = options().connect().await.unwrap();
        let mut changes = cache.events();
        cache.move_to(&zk);
        within(cache.ready()).await.unwrap();
        zk.create("/c/b", b"").await.unwrap();
        while cache.get("/c/b").is_none() {
            within(changes.next()).await.unwrap();
        }
        closed(&zk).await;
    });
    assert_eq!(ends.0.lock().unwrap().len(), 1, "it was told once");
}

/// The session's task, its timers included, is the runtime's that it was spawned on.
#[test]
fn spawned_session_outlives_the_runtime_it_was_connected_on() {
    let lasting = lasting_runtime();
    let server = lasting.block_on(TestServer::start()).unwrap();
    let timeout = Duration::from_secs(4);
    let spawner = lasting.handle().clone();
    let options = ConnectOptions::new(&server.connect_string()).unwrap().session_timeout(timeout);
    let options = options.spawn_with(move |task| drop(spawner.spawn(task)));
    let brief = brief_runtime();
    let zk = brief.block_on(options.connect()).unwrap();
    drop(brief);
    lasting.block_on(async {
        let session = zk.session();
        // Nothing but pings keeps it.
        let ended = tokio::time::timeout(2 * timeout, session.ended()).await;
        assert_eq!(ended.ok(), None);
        within(zk.get("/")).await.unwrap();
    });
}

/// The session that it left ends with that runtime, and says nothing of it.
#[test]
fn moved_cache_outlives_the_runtime_it_came_from() {
    let lasting = lasting_runtime();
    let server = lasting.block_on(TestServer::start()).unwrap();
    let connect = async || Client::connect(&server.connect_string()).await.unwrap();
    let brief = brief_runtime();
    let cache = brief.block_on(async {
        let zk = connect().await;
        zk.create("/c", b"").await.unwrap();
        let cache = Cache::subtree(&zk, "/c").start().unwrap();
        within(cache.ready()).await.unwrap();
        cache
    });
    let zk = lasting.block_on(connect());
    cache.move_to(&zk);
    // Its own task has to learn of that first.
    brief.block_on(within(cache.ready())).unwrap();
    drop(brief);
    lasting.block_on(async {
        within(zk.create("/c/a", b"")).await.unwrap();
        within(converged(&cache, &zk, "/c", 1)).await;
    });
}

/// Whichever of the two comes first, one task follows the client that was set last.
#[test]
fn cache_is_moved_while_its_runtime_ends() {
    let lasting = lasting_runtime();
    let server = lasting.block_on(TestServer::start()).unwrap();
    let connect = async || Client::connect(&server.connect_string()).await.unwrap();
    let zk = lasting.block_on(connect());
    lasting.block_on(zk.create("/c", b"").into_future()).unwrap();
    for round in 0..100 {
        let brief = brief_runtime();
        let cache = brief.block_on(async {
            let cache = Cache::node(&connect().await, "/c").start().unwrap();
            within(cache.ready()).await.unwrap();
            cache
        });
        let all = Barrier::new(3);
        thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    all.wait();
                    cache.move_to(&zk);
                });
            }
            all.wait();
            drop(brief);
        });
        lasting.block_on(async {
            zk.set("/c", round.to_string().as_bytes()).await.unwrap();
            within(converged(&cache, &zk, "/c", 0)).await;
        });
    }
}
