//! What a session keeps that nothing is asked of.

use std::{net::Ipv4Addr, sync::atomic::Ordering, time::Duration};

use allocation_counter::measure;
use tokio::{
    runtime::Builder,
    time::{sleep, timeout},
};
use zk_client::ConnectOptions;
use zk_testkit::server::{Config, Listening};

use crate::pipeline::{Counted, PATIENCE};

const SESSIONS: usize = 50;

/// Bytes on the heap, tokio's for its task, timer and socket among them. A third is the task, another what metrics keep:
/// without that feature a session has 3 050.
const BYTES_MAX: i64 = 4_950;

/// Each takes some 16 bytes more in the allocator.
const ALLOCATIONS_MAX: i64 = 23;

/// Calls that have read or written something: two of the handshake, two of the first ping.
const CALLS: u64 = 4 * SESSIONS as u64;

#[test]
fn idle_session_keeps_few_bytes() {
    // In a thread of its own: memory is counted by thread.
    let elsewhere = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let server = elsewhere.block_on(Listening::start(Config::default(), &[any])).unwrap();
    let addr = server.addrs()[0].to_string();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let counted = Counted::default();
    let connect = async || {
        let options = ConnectOptions::new(&addr).unwrap().connector(counted.clone());
        // The shortest that servers grant: the first ping is sent after a second.
        options.session_timeout(Duration::from_secs(3)).connect().await.unwrap()
    };
    // The first one pays for what all share.
    let first = runtime.block_on(connect());
    counted.0.store(0, Ordering::Relaxed);
    let mut clients = Vec::with_capacity(SESSIONS);
    let memory = measure(|| {
        runtime.block_on(async {
            for _ in 0..SESSIONS {
                clients.push(connect().await);
            }
            // Those of the first one may be among them, so that a few sessions may still wait for an answer.
            let pinged = async {
                while counted.0.load(Ordering::Relaxed) < CALLS + 4 {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            timeout(PATIENCE, pinged).await.expect("pings are answered");
        });
    });
    let sessions = i64::try_from(SESSIONS).unwrap();
    let (bytes, allocations) = (memory.bytes_current / sessions, memory.count_current / sessions);
    println!("an idle session: {bytes} bytes in {allocations} allocations");
    assert!(bytes > 1_000, "memory is not counted");
    assert!(bytes <= BYTES_MAX, "{bytes} bytes");
    assert!(allocations <= ALLOCATIONS_MAX, "{allocations} allocations");
    drop((first, clients));
}
