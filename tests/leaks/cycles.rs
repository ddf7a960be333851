//! Sessions come and go; tasks, files, memory, sessions and watches are as many as before.

use std::{fs, net::Ipv4Addr, time::Duration};

use allocation_counter::measure;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};
use zk_client::{Client, ConnectOptions, Watch};
use zk_locks::{Guard, Lock};
use zk_testkit::server::{Config, Listening};
use zk_tests::patience::closed;

/// Sessions that are there at a time: beside each other, as each waits before it connects again.
const SESSIONS: usize = 5;

/// Cycles after which whatever is kept on purpose is there.
const WARM_UP: usize = 2;

/// Of as many sessions each.
const CYCLES: usize = 8;

/// What may be left behind in all: a buffer or a table that has grown once more.
const BYTES_MAX: i64 = 16 << 10;

/// Bound on all cycles; one that is stuck is a failure and not a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first half of a session: a lock, another that waits for it in vain, and a watch that never fires.
async fn begin(addr: String, path: String) -> (Client, Guard, Watch) {
    let options = ConnectOptions::new(&addr).unwrap().session_timeout(Duration::from_secs(5));
    let zk = options.connect().await.unwrap();
    let guard = Lock::new(&zk, &path).acquire().await.unwrap();
    let (_, watch) = zk.get(guard.path()).watch().await.unwrap();
    let waiting = Lock::new(&zk, &path).acquire_timeout(Duration::from_millis(5)).await;
    assert!(waiting.is_err());
    (zk, guard, watch)
}

/// The other half, when its connection has been lost.
async fn end((zk, guard, watch): (Client, Guard, Watch)) {
    guard.check().await.unwrap();
    guard.release().await.unwrap();
    drop(watch);
    closed(&zk).await;
}

/// Sessions from beginning to end, all of which lose their connection.
async fn cycle(server: &Listening) {
    let mut beginning = JoinSet::new();
    for number in 0..SESSIONS {
        let addr = server.addrs()[0].to_string();
        beginning.spawn(begin(addr, format!("/locks/leaks-{number}")));
    }
    let sessions = beginning.join_all().await;
    server.with(|ensemble, now| ensemble.drop_connections(now, None));
    sessions.into_iter().map(end).collect::<JoinSet<_>>().join_all().await;
}

fn files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits until whatever ends by itself has ended. Returns the tasks, files, sessions and watches there are.
async fn at_rest(server: &Listening, tasks: usize) -> (usize, usize, usize, usize) {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    while alive() > tasks {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server
        .with(|ensemble, _| (alive(), files(), ensemble.sessions().count(), ensemble.watch_count()))
}

fn run<T>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, work).await.expect("a cycle is stuck") })
}

#[test]
fn nothing_grows_from_session_to_session() {
    // Of one thread, in which the driver and the server run too: memory is counted by thread.
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (server, tasks) = run(&runtime, async {
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        let server = Listening::start(Config::default(), &[any]).await.unwrap();
        (server, tokio::runtime::Handle::current().metrics().num_alive_tasks())
    });
    let work = |cycles| {
        run(&runtime, async {
            for _ in 0..cycles {
                cycle(&server).await;
            }
            at_rest(&server, tasks).await
        })
    };
    let before = work(WARM_UP);
    let mut after = before;
    let memory = measure(|| after = work(CYCLES));
    assert_eq!(before, after, "tasks, files, sessions, watches");
    assert_eq!((after.2, after.3), (0, 0));
    assert!(memory.count_total > (SESSIONS * CYCLES) as u64, "memory is not counted");
    let grown = memory.bytes_current;
    assert!(grown <= BYTES_MAX, "{grown} bytes more after {CYCLES} times {SESSIONS} sessions");
}
