//! Locks while servers are killed.
//!
//! Fifty contenders, each with its own session, stand in one queue when it happens. What must come out: all
//! of them are granted, one after the other, with growing tokens, and nothing stays behind.

mod poison;
mod slow_links;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};
use zk_locks::{Client, ConnectOptions, Lock, Lost};
use zk_testkit::real::{Ensemble, Release, Server};
use zk_tests::fenced::FencedResource;
use zk_tests::patience::closed;

const CONTENDERS: usize = 50;
const PATH: &str = "/locks/faults";

/// Longer than any outage in these tests, so that no session may be lost.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60);

/// Bound on a whole test; a stuck waiter is a failure and not a hang. Six seconds are enough, and with eight busy processes
/// beside the servers thirty-five.
const PATIENCE: Duration = Duration::from_secs(240);

/// A queue of contenders that hold the lock one after the other, each until it is given a turn.
struct Queue {
    resource: Arc<FencedResource>,
    turns: Arc<Semaphore>,
    /// How many have had the lock, or have it.
    entered: watch::Receiver<usize>,
    contenders: JoinSet<()>,
}

impl Queue {
    /// All contenders have joined the queue when this returns.
    async fn form(servers: &str) -> Self {
        let resource = Arc::new(FencedResource::default());
        let turns = Arc::new(Semaphore::new(0));
        let (entries, entered) = watch::channel(0);
        let mut contenders = JoinSet::new();
        for number in 0..CONTENDERS {
            let zk = connect(servers).await;
            let (resource, turns, entries) = (resource.clone(), turns.clone(), entries.clone());
            contenders.spawn(async move {
                let name = format!("contender {number}");
                let lock = Lock::builder(&zk, PATH).description(&name).build();
                let guard = lock.acquire().await.unwrap();
                let token = guard.token().get();
                resource.enter(token);
                entries.send_replace(resource.entered());
                let turn = guard.scope(turns.acquire()).await;
                turn.expect("no lock may be lost").unwrap().forget();
                resource.leave(token);
                guard.release().await.unwrap();
                // Its confirmation may fall victim to the next kill; the release did not.
                let _ = zk.close().await;
            });
        }
        let observer = connect(servers).await;
        let queue = Lock::new(&observer, PATH).queue();
        while queue.contenders().await.unwrap().len() < CONTENDERS {
            tokio::task::yield_now().await;
        }
        closed(&observer).await;
        Self { resource, turns, entered, contenders }
    }

    /// Lets so many more contenders have their turn.
    fn give_turns(&self, turns: usize) {
        self.turns.add_permits(turns);
    }

    /// Waits until so many have had the lock, or have it. A contender that panics is not waited for.
    async fn entered(&mut self, count: usize) {
        let enough = self.entered.wait_for(|entered| *entered >= count);
        tokio::pin!(enough);
        loop {
            tokio::select! {
                entered = &mut enough => return drop(entered.expect("the contenders hold the other end")),
                Some(ended) = self.contenders.join_next() => ended.unwrap(),
            }
        }
    }

    /// Waits for all contenders, and looks at what they have left.
    async fn finish(mut self, servers: &str) {
        while let Some(contender) = self.contenders.join_next().await {
            contender.unwrap();
        }
        self.resource.assert_clean();
        assert_eq!(self.resource.entered(), CONTENDERS);
        let observer = connect(servers).await;
        observer.sync("/").await.unwrap();
        assert_eq!(Lock::new(&observer, PATH).queue().contenders().await.unwrap(), []);
        closed(&observer).await;
    }
}

async fn connect(servers: &str) -> Client {
    let options = ConnectOptions::new(servers).unwrap().session_timeout(SESSION_TIMEOUT);
    options.connect().await.unwrap()
}

async fn killed_standalone(release: Release) {
    let server = Server::start(release).await.unwrap();
    let servers = server.connect_string();
    let mut queue = Queue::form(&servers).await;
    for (given, next) in [(10, 11), (15, 26)] {
        queue.give_turns(given);
        queue.entered(next).await;
        server.kill().await.unwrap();
        server.restart().await.unwrap();
    }
    queue.give_turns(CONTENDERS);
    queue.finish(&servers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_survives_restart_of_a_3_8_server() {
    timeout(PATIENCE, killed_standalone(Release::V3_8)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_survives_restart_of_a_3_9_server() {
    timeout(PATIENCE, killed_standalone(Release::V3_9)).await.unwrap();
}

async fn killed_leader(release: Release) {
    let ensemble = Ensemble::start(release).await.unwrap();
    let servers = ensemble.connect_string();
    let mut queue = Queue::form(&servers).await;
    for (given, next) in [(10, 11), (15, 26)] {
        queue.give_turns(given);
        queue.entered(next).await;
        let leader = ensemble.wait_for_quorum().await.unwrap();
        ensemble.kill(leader).await.unwrap();
        ensemble.wait_for_quorum().await.unwrap();
        ensemble.restart(leader).await.unwrap();
        ensemble.wait_for_all().await.unwrap();
    }
    queue.give_turns(CONTENDERS);
    queue.finish(&servers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_survives_loss_of_a_3_8_leader() {
    timeout(PATIENCE, killed_leader(Release::V3_8)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_survives_loss_of_a_3_9_leader() {
    timeout(PATIENCE, killed_leader(Release::V3_9)).await.unwrap();
}

/// The servers cannot tell the holder: the holder must know by its own clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lease_of_an_unreachable_holder_runs_out() {
    let server = Server::start(Release::V3_9).await.unwrap();
    let options = ConnectOptions::new(&server.connect_string()).unwrap();
    // Its lease is two seconds shorter than the session, which the client knows to be over a third of it later.
    let zk = options.session_timeout(Duration::from_secs(12)).connect().await.unwrap();
    let guard = Lock::new(&zk, PATH).acquire().await.unwrap();
    server.kill().await.unwrap();
    let lost = timeout(PATIENCE, guard.lost()).await.unwrap();
    assert_eq!(lost, Lost::LeaseRanOut);
}
