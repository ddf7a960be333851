//! Sessions come and go; tasks, files, memory, sessions and watches are as many as before.

use std::{fs, net::Ipv4Addr, time::Duration};

use allocation_counter::measure;
use tokio::runtime::{Builder, Runtime};
use zk_client::ConnectOptions;
use zk_locks::Lock;
use zk_testkit::server::{Config, Listening};

/// Cycles after which whatever is kept on purpose is there.
const WARM_UP: usize = 10;

const CYCLES: usize = 40;

/// What may be left behind in all: a buffer or a table that has grown once more.
const BYTES_MAX: i64 = 16 << 10;

/// Bound on all cycles; one that is stuck is a failure and not a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// A session from beginning to end: a lock, a watch that never fires, and a lost connection.
async fn cycle(server: &Listening) {
    let addr = server.addrs()[0].to_string();
    let options = ConnectOptions::new(&addr).unwrap().session_timeout(Duration::from_secs(5));
    let zk = options.connect().await.unwrap();
    let guard = Lock::new(&zk, "/locks/leaks").acquire().await.unwrap();
    let (_, watch) = zk.get(guard.path()).watch().await.unwrap();
    let waiting = Lock::new(&zk, "/locks/leaks").acquire_timeout(Duration::from_millis(5)).await;
    assert!(waiting.is_err());
    server.with(|ensemble, now| ensemble.drop_connections(now, None));
    guard.check().await.unwrap();
    guard.release().await.unwrap();
    drop(watch);
    zk.close().await.unwrap();
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
    assert!(memory.count_total > CYCLES as u64, "memory is not counted");
    let grown = memory.bytes_current;
    assert!(grown <= BYTES_MAX, "{grown} bytes more after {CYCLES} sessions");
}
