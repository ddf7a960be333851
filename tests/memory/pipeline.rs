//! What requests cost that are under way together: a few allocations each, and hardly a system call.

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use allocation_counter::measure;
use tokio::{net::TcpStream, runtime::Builder, time::timeout};
use tokio_util::io::{InspectReader, InspectWriter};
use zk_client::{BoxFuture, Client, Connect, ConnectOptions, Transport};
use zk_testkit::server::{Config, Listening};

/// Requests that are under way together.
const TOGETHER: usize = 100;

const BATCHES: usize = 20;

const REQUESTS: u64 = (TOGETHER * BATCHES) as u64;

/// Bound on all of it; what is stuck is a failure and not a hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// TCP, with a count of the calls that have read or written something.
#[derive(Clone, Default)]
pub(crate) struct Counted(pub(crate) Arc<AtomicU64>);

impl Connect for Counted {
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let (server, calls) = (server.to_owned(), self.0.clone());
        let count = move |_: &[u8]| _ = calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let stream = InspectWriter::new(TcpStream::connect(server).await?, count.clone());
            Ok(Box::new(InspectReader::new(stream, count)) as Box<dyn Transport>)
        })
    }
}

async fn read(zk: &Client) {
    for _ in 0..BATCHES {
        let pending: Vec<_> = (0..TOGETHER).map(|_| zk.get("/a").submit()).collect();
        for get in pending {
            timeout(PATIENCE, get).await.unwrap().unwrap();
        }
    }
}

#[test]
fn pipelined_reads_cost_few_allocations() {
    // In a thread of its own: memory is counted by thread.
    let elsewhere = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let server = elsewhere.block_on(Listening::start(Config::default(), &[any])).unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let counted = Counted::default();
    let options = ConnectOptions::new(&server.addrs()[0].to_string()).unwrap();
    let zk = runtime.block_on(options.connector(counted.clone()).connect()).unwrap();
    runtime.block_on(async {
        zk.create("/a", b"x").await.unwrap();
        read(&zk).await;
    });
    let before = counted.0.load(Ordering::Relaxed);
    let memory = measure(|| runtime.block_on(read(&zk)));
    let calls = counted.0.load(Ordering::Relaxed) - before;
    println!("{REQUESTS} requests: {} allocations, {calls} calls", memory.count_total);
    assert!(memory.count_total > 0, "memory is not counted");
    assert!(calls > 0 && calls <= REQUESTS / 10, "{calls} calls");
    // The way back for the answer, and its data; rarely a buffer.
    let most = 2 * REQUESTS + REQUESTS / 10;
    assert!(memory.count_total <= most, "{} allocations", memory.count_total);
}
