//! Replies that never arrive, while others contend for the lock.
//!
//! In each run four contenders with sessions of their own take a lock once. The connection of one of them breaks
//! instead of passing on one reply: what that reply was about has happened, and the client has to find out. All are
//! granted, one after the other, with growing tokens; nothing stays behind, although no session has ended.
//!
//! `ZK_TEST_RUNS` is the number of runs of each case on each release; 40 by default.

use std::{
    env,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use zk_locks::{Client, ConnectOptions, Lock};
use zk_proto::OpCode;
use zk_testkit::proxy::{Forward, Match, Proxy, Reaction};
use zk_tests::{fenced::FencedResource, test_with};

use crate::support::{Stage, emptied, on_each_release_threaded, within};

/// How many runs there are at the same time, each with its own proxy and sessions.
const LANES: usize = 20;

/// Contenders of a run beside the one behind the proxy.
const RIVALS: usize = 3;

/// Much longer than a run may take. A client that has lost its connection waits for up to a twentieth of
/// this before it comes back, so it decides how long these tests take.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// What is asked for in each acquire and release, in order.
const OPS: [OpCode; 3] = [OpCode::CREATE2, OpCode::GET_CHILDREN2, OpCode::DELETE];

/// Which reply is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Of(OpCode),
    /// The server's greeting on a new connection, after a break somewhere in the acquire or release.
    Greeting,
}

impl Loss {
    /// The reply to lose in a run.
    fn reply(self, path: &str) -> Match {
        match self {
            Self::Of(op) => answer(op, path),
            Self::Greeting => Match::connect_response().once(),
        }
    }

    /// Where else to break the connection, for the loss to come about.
    fn break_before(self, number: usize, path: &str) -> Option<Match> {
        matches!(self, Self::Greeting).then(|| answer(OPS[number % OPS.len()], path))
    }
}

/// The first reply of a sort that bears good news.
fn answer(op: OpCode, path: &str) -> Match {
    Match::reply(op).path(path).error(zk_proto::ErrorCode::OK).once()
}

/// A proxy, the contender that uses it, and rivals that do not.
struct Lane {
    proxy: Proxy,
    contenders: Vec<Client>,
}

impl Lane {
    async fn open(stage: &Stage) -> Self {
        let proxy = stage.proxy().await;
        let mut contenders = vec![connect(&proxy.connect_string()).await];
        for _ in 0..RIVALS {
            contenders.push(connect(&stage.servers()).await);
        }
        Self { proxy, contenders }
    }

    /// One run. Returns how often the reply was lost.
    async fn run(&self, stage: &Stage, number: usize, loss: Loss, end: Reaction) -> u64 {
        let path = stage.path(&format!("run-{number:06}"));
        let lost = self.proxy.on(loss.reply(&path)).react(end);
        let broken = loss.break_before(number, &path).map(|reply| self.proxy.on(reply).reset());
        let resource = Arc::new(FencedResource::default());
        let mut running = JoinSet::new();
        // Each in its turn is the first to ask.
        let order = (0..self.contenders.len()).map(|k| (k + number) % self.contenders.len());
        for zk in order.map(|index| self.contenders[index].clone()) {
            let (resource, path) = (resource.clone(), path.clone());
            running.spawn(async move {
                let guard = Lock::new(&zk, &path).acquire().await.unwrap();
                let token = guard.token().get();
                resource.enter(token);
                tokio::task::yield_now().await;
                resource.leave(token);
                guard.release().await.unwrap();
            });
        }
        within(running.join_all()).await;
        resource.assert_clean();
        assert_eq!(resource.entered(), self.contenders.len());
        for zk in &self.contenders {
            // Behind whatever this session may still be doing. It also shows that it is alive.
            within(zk.resolve_in_doubt()).await.unwrap();
        }
        emptied(&stage.outsider, &path).await;
        assert!(broken.is_none_or(|rule| rule.times_fired() == 1), "no break, no greeting");
        lost.times_fired()
    }
}

async fn connect(servers: &str) -> Client {
    let options = ConnectOptions::new(servers).unwrap().session_timeout(SESSION_TIMEOUT);
    options.connect().await.unwrap()
}

fn runs() -> usize {
    match env::var("ZK_TEST_RUNS") {
        Ok(number) => number.parse().expect("ZK_TEST_RUNS must be a number"),
        Err(_) => 40,
    }
}

/// The connection ends with RST, or with FIN.
#[test_with(on_each_release_threaded)]
async fn a_reply_that_is_lost_does_no_harm(stage: Stage) {
    let (runs, stage) = (runs(), Arc::new(stage));
    let ends = [Reaction::Reset(Forward::Nothing), Reaction::Cut(Forward::Nothing)];
    let losses = OPS.map(Loss::Of).into_iter().chain([Loss::Greeting]);
    let cases = losses.flat_map(|loss| ends.iter().map(move |end| (loss, end)));
    for (case, (loss, end)) in cases.enumerate() {
        let begun = Instant::now();
        let mut lanes = JoinSet::new();
        for first in 0..LANES.min(runs) {
            let (stage, end) = (stage.clone(), end.clone());
            lanes.spawn(async move {
                let lane = Lane::open(&stage).await;
                for run in (first..runs).step_by(LANES) {
                    let lost = lane.run(&stage, case * runs + run, loss, end.clone()).await;
                    assert_eq!(lost, 1, "{loss:?}, {end:?}, run {run}");
                }
            });
        }
        lanes.join_all().await;
        println!("{loss:?} {end:?}: {runs} runs, {:?}", begun.elapsed());
    }
}
