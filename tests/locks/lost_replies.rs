//! Replies that never arrive, while others contend for the lock.
//!
//! In each run four contenders with sessions of their own take a lock once. One of them talks through a
//! proxy that breaks its connection instead of passing on one reply: what that reply was about has happened,
//! and the client has to find out. What must come out: everybody is granted, one after the other, with
//! growing tokens; nothing stays behind, although no session has ended.
//!
//! `ZK_TEST_RUNS` is the number of runs of each case on each release; 200 by default.

use std::{
    env,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use zk_locks::{Client, ConnectOptions, Lock};
use zk_proto::OpCode;
use zk_testkit::proxy::{Forward, Match, Proxy, Reaction};
use zk_tests::register::Register;

use crate::support::{Stage, emptied, on_each_release, within};

/// How many runs there are at the same time, each with its own proxy and sessions.
const LANES: usize = 20;

/// Contenders of a run beside the one behind the proxy.
const RIVALS: usize = 3;

/// Much longer than a run may take. A client that has lost its connection waits for up to a twentieth of
/// this before it comes back, so it decides how long these tests take.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Which reply is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Create,
    Listing,
    Delete,
    /// The server's greeting on a new connection, after a break somewhere in the acquire or release.
    Greeting,
}

/// How the client sees the connection end.
#[derive(Clone, Copy, Debug)]
enum End {
    /// RST.
    Reset,
    /// FIN.
    Close,
}

impl End {
    fn instead_of_the_frame(self) -> Reaction {
        match self {
            Self::Reset => Reaction::Reset(Forward::Nothing),
            Self::Close => Reaction::Cut(Forward::Nothing),
        }
    }
}

/// What is asked for in each acquire and release, in order.
const OPS: [OpCode; 3] = [OpCode::CREATE2, OpCode::GET_CHILDREN2, OpCode::DELETE];

impl Loss {
    /// The reply to lose in a run.
    fn reply(self, path: &str) -> Match {
        let [create, list, delete] = OPS.map(|op| answer(op, path));
        match self {
            Self::Create => create,
            Self::Listing => list,
            Self::Delete => delete,
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

/// A proxy, whoever talks through it, and rivals who do not.
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
    async fn run(&self, stage: &Stage, number: usize, loss: Loss, end: End) -> u64 {
        let path = stage.path(&format!("run-{number:06}"));
        let lost = self.proxy.on(loss.reply(&path)).react(end.instead_of_the_frame());
        let broken = loss.break_before(number, &path).map(|reply| self.proxy.on(reply).reset());
        let register = Arc::new(Register::default());
        let mut running = JoinSet::new();
        // Each in its turn is the first to ask.
        let order = (0..self.contenders.len()).map(|k| (k + number) % self.contenders.len());
        for zk in order.map(|index| self.contenders[index].clone()) {
            let (register, path) = (register.clone(), path.clone());
            running.spawn(async move {
                let guard = Lock::new(&zk, &path).acquire().await.unwrap();
                let token = guard.token().get();
                register.enter(token);
                tokio::task::yield_now().await;
                register.leave(token);
                guard.release().await.unwrap();
            });
        }
        within(running.join_all()).await;
        register.assert_clean();
        assert_eq!(register.entered(), self.contenders.len());
        for zk in &self.contenders {
            // Behind whatever this session may still be doing. It also shows that it is alive.
            within(zk.settle()).await.unwrap();
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
        Err(_) => 200,
    }
}

async fn lose(loss: Loss, end: End) {
    let runs = runs();
    on_each_release(async |stage: Stage| {
        let begun = Instant::now();
        let stage = Arc::new(stage);
        let mut lanes = JoinSet::new();
        for first in 0..LANES.min(runs) {
            let stage = stage.clone();
            lanes.spawn(async move {
                let lane = Lane::open(&stage).await;
                let mut lost = 0;
                for number in (first..runs).step_by(LANES) {
                    let times = lane.run(&stage, number, loss, end).await;
                    assert_eq!(times, 1, "run {number}");
                    lost += times;
                }
                lost
            });
        }
        let lost: u64 = lanes.join_all().await.into_iter().sum();
        println!("{loss:?} {end:?}: lost {lost} times in {runs} runs, {:?}", begun.elapsed());
        assert_eq!(usize::try_from(lost), Ok(runs));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_reply_lost_to_a_reset_does_no_harm() {
    lose(Loss::Create, End::Reset).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_reply_lost_to_a_close_does_no_harm() {
    lose(Loss::Create, End::Close).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listing_lost_to_a_reset_does_no_harm() {
    lose(Loss::Listing, End::Reset).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listing_lost_to_a_close_does_no_harm() {
    lose(Loss::Listing, End::Close).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_reply_lost_to_a_reset_does_no_harm() {
    lose(Loss::Delete, End::Reset).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_reply_lost_to_a_close_does_no_harm() {
    lose(Loss::Delete, End::Close).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_greeting_lost_to_a_reset_does_no_harm() {
    lose(Loss::Greeting, End::Reset).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_greeting_lost_to_a_close_does_no_harm() {
    lose(Loss::Greeting, End::Close).await;
}
