//! Three schedulers on a real ZooKeeper, whose leader is killed, stopped, asked to end and deposed.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use harness::{Chance, Program, get, until};
use tokio::{task::JoinSet, time::timeout};
use zk_locks::{Client, Election};
use zk_testkit::real::{Server, Wanted};

/// How often each trouble comes up.
const TIMES: usize = 3;
const QUEUE: &str = "/scheduler/queue";

/// What happens to the leader.
#[derive(Clone, Debug)]
enum Trouble {
    Killed,
    AskedToEnd,
    Stopped,
    Deposed,
}

struct Scheduler {
    program: Program,
    address: String,
}

impl Scheduler {
    async fn start(servers: &str) -> Self {
        let environment = [("SESSION_MS", "1000"), ("PERIOD_MS", "50")];
        let arguments = [servers, "127.0.0.1:0"];
        let mut program = Program::start(env!("CARGO_BIN_EXE_scheduler"), &arguments, &environment);
        let address = program.line("listening on ").await.replace("listening on ", "");
        Self { program, address }
    }
}

/// The token that a scheduler says it leads under; `None` from one that stands by, or does not answer.
async fn lead(address: &str) -> Option<i64> {
    let answer = timeout(Duration::from_secs(1), get(address, "/ready")).await.ok()?.ok()?;
    match answer {
        (200, body) => Some(body.strip_prefix("leading under ")?.parse().unwrap()),
        (503, _) => None,
        answer => panic!("{answer:?}"),
    }
}

/// What has been answered so far.
#[derive(Debug, Default)]
struct Answers {
    newest: i64,
    /// Leaders that were deposed by others. They learn of it only afterwards.
    deposed: BTreeSet<i64>,
    violations: Vec<(i64, i64)>,
}

/// Asks again and again. Once a leader has answered, no earlier one may say that it leads.
async fn watch(addresses: Arc<Mutex<Vec<String>>>, slot: usize, answers: Arc<Mutex<Answers>>) {
    loop {
        let newest = answers.lock().unwrap().newest;
        let address = addresses.lock().unwrap()[slot].clone();
        if let Some(token) = lead(&address).await {
            let mut answers = answers.lock().unwrap();
            if token < newest && !answers.deposed.contains(&token) {
                answers.violations.push((newest, token));
            }
            answers.newest = answers.newest.max(token);
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_leads_is_ready_and_ticks() {
    let mut chance = Chance::from_env();
    let server = Server::start(Wanted::Any).await.unwrap();
    let servers = server.connect_string();
    let zk = Client::connect(&servers).await.unwrap();
    let mut schedulers = Vec::new();
    for _ in 0..3 {
        schedulers.push(Scheduler::start(&servers).await);
    }
    let addresses = schedulers.iter().map(|one| one.address.clone()).collect();
    let (addresses, answers) = (Arc::new(Mutex::new(addresses)), Arc::<Mutex<Answers>>::default());
    let mut watchers = JoinSet::new();
    for slot in 0..3 {
        watchers.spawn(watch(addresses.clone(), slot, answers.clone()));
    }

    let mut former = 0;
    use Trouble::{AskedToEnd, Deposed, Killed, Stopped};
    for trouble in chance.shuffled(&[Killed, AskedToEnd, Stopped, Deposed], TIMES) {
        let (leader, token) = leader_after(&schedulers, former).await;
        former = token;
        more_jobs(&zk, 3).await;
        match trouble {
            Killed => schedulers[leader].program.kill().await,
            AskedToEnd => {
                schedulers[leader].program.terminate();
                assert!(schedulers[leader].program.ended().await.success());
            }
            Stopped => {
                schedulers[leader].program.pause();
                leader_after(&schedulers, former).await;
                schedulers[leader].program.resume();
                // As soon as it answers at all.
                let answer = get(&schedulers[leader].address, "/ready").await.unwrap();
                assert_eq!(answer.0, 503, "{answer:?}");
            }
            Deposed => {
                schedulers[leader].program.pause();
                answers.lock().unwrap().deposed.insert(token);
                let queue = Election::new(&zk, "/scheduler/election").queue();
                let first = queue.contenders().await.unwrap().swap_remove(0);
                assert_eq!(first.token.get(), token);
                assert!(queue.evict(&first).await.unwrap());
                // Its session has not ended when it goes on, in the middle of its next tick.
                more_jobs(&zk, 1).await;
                schedulers[leader].program.resume();
            }
        }
        if schedulers[leader].program.has_ended() {
            schedulers[leader] = Scheduler::start(&servers).await;
            addresses.lock().unwrap()[leader].clone_from(&schedulers[leader].address);
        }
    }
    leader_after(&schedulers, former).await;
    for scheduler in &mut schedulers {
        scheduler.program.kill().await;
    }
    watchers.shutdown().await;

    let ticks = jobs(&zk).await;
    println!("{} ticks", ticks.len());
    for pair in ticks.windows(2) {
        assert_eq!(pair[1], pair[0] + 1, "each tick is done once, and none is left out: {ticks:?}");
    }
    let answers = answers.lock().unwrap();
    assert!(answers.violations.is_empty(), "{answers:?}");
}

/// Waits for a leader with a larger token.
async fn leader_after(schedulers: &[Scheduler], former: i64) -> (usize, i64) {
    until("another leads", async || {
        for (slot, scheduler) in schedulers.iter().enumerate() {
            match lead(&scheduler.address).await {
                Some(token) if token > former => return Some((slot, token)),
                _ => {}
            }
        }
        None
    })
    .await
}

/// The ticks that were enqueued, in the order of the queue.
async fn jobs(zk: &Client) -> Vec<u64> {
    let mut names = zk.children(QUEUE).await.unwrap().0;
    names.sort();
    let mut ticks = Vec::new();
    for name in names {
        let (data, _) = zk.get(&format!("{QUEUE}/{name}")).await.unwrap();
        ticks.push(std::str::from_utf8(&data).unwrap().parse().unwrap());
    }
    ticks
}

/// Waits for some more ticks.
async fn more_jobs(zk: &Client, more: usize) {
    // The first leader has yet to create the queue.
    let count = async || Some(zk.children(QUEUE).await.ok()?.0.len());
    let before = count().await.unwrap_or_default();
    until("more ticks", async || count().await.filter(|count| *count >= before + more)).await;
}
