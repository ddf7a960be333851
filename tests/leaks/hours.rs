//! A session lives for a day, in virtual time, and uses no more memory than after its first hour.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use allocation_counter::measure;
use zk_client::{Client, ConnectOptions};
use zk_locks::Lock;
use zk_testkit::{
    server::Config,
    sim::{Cluster, Process, Rng, Schedule, Setup, SimConnect, State, Tasks, servers, sim_clock},
};
use zk_tests::paused;

const HOURS: u32 = 24;

/// Bytes by which memory may grow with each hour.
const BYTES_AN_HOUR: i64 = 1 << 10;

async fn pass(time: Duration) {
    tokio::time::sleep_until(tokio::time::Instant::now() + time).await;
}

async fn connect(cluster: &Cluster, tasks: &Tasks) -> Client {
    let tasks = tasks.clone();
    ConnectOptions::new(&servers(3))
        .unwrap()
        .session_timeout(Duration::from_secs(10))
        .connector(SimConnect::new(cluster, 0))
        .clock(sim_clock(0))
        .seed(1)
        .spawn_with(move |task| tasks.spawn(State::process(0), task))
        .connect()
        .await
        .unwrap()
}

/// A lock, a node and a watch that fires, once a minute.
async fn hour(zk: &Client) {
    for _ in 0..60 {
        let guard = Lock::new(zk, "/locks/hours").acquire().await.unwrap();
        let path = guard.path().to_owned();
        let (_, watch) = zk.exists(&path).watch().await.unwrap();
        guard.release().await.unwrap();
        watch.await.unwrap();
        pass(Duration::from_secs(60)).await;
    }
}

#[test]
fn a_day_takes_no_more_memory_than_an_hour() {
    let runtime = paused::runtime();
    let tasks = Tasks::new(Rng::new(1));
    let _inside = runtime.enter();
    let mut config = Config::default();
    config.members = 3;
    let schedule = Schedule::default();
    let setup = Setup { seed: 1, clients: 1, servers: config, latency: (1, 5), schedule };
    let cluster = Cluster::new(setup, &tasks);
    tasks.spawn(Process(0), cluster.pump());
    let client: Arc<Mutex<Option<Client>>> = Arc::default();
    let run = |work: std::pin::Pin<Box<dyn Future<Output = ()>>>| {
        runtime.block_on(tokio::task::unconstrained(tasks.run(work)));
    };
    let (place, to, by) = (client.clone(), cluster.clone(), tasks.clone());
    run(Box::pin(async move {
        let zk = connect(&to, &by).await;
        hour(&zk).await;
        *place.lock().unwrap() = Some(zk);
    }));
    let zk = client.lock().unwrap().clone().unwrap();
    let (begun, tasks_before) = (cluster.now(), tasks.live());
    let memory = measure(|| {
        let zk = zk.clone();
        run(Box::pin(async move {
            for _ in 0..HOURS {
                hour(&zk).await;
            }
        }));
    });
    assert!(cluster.now() - begun >= u64::from(HOURS) * 3_600_000, "the day is not over");
    assert_eq!(tasks.live(), tasks_before);
    assert!(memory.count_total > u64::from(HOURS), "memory is not counted");
    let grown = memory.bytes_current;
    assert!(grown <= i64::from(HOURS) * BYTES_AN_HOUR, "{grown} bytes more after a day");
    drop((zk, client));
    tasks.clear();
}
