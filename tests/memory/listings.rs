//! What a long answer leaves behind: nothing, once it has been read.

use std::{net::Ipv4Addr, time::Duration};

use allocation_counter::measure;
use tokio::{runtime::Builder, time::timeout};
use zk_client::ConnectOptions;
use zk_testkit::server::{Config, Listening};

const CHILDREN: usize = 5000;

/// What may be left behind: a buffer for short answers.
const BYTES_MAX: i64 = 64 << 10;

/// Bound on all of it; what is stuck is a failure and not a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// With a session for each of many queues the buffers for one long listing each would be most of what they take.
#[test]
fn long_listing_memory_is_released() {
    // In a thread of its own: memory is counted by thread.
    let elsewhere = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let server = elsewhere.block_on(Listening::start(Config::default(), &[any])).unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let options = ConnectOptions::new(&server.addrs()[0].to_string()).unwrap();
    let zk = runtime.block_on(options.connect()).unwrap();
    runtime.block_on(async {
        let cork = zk.cork();
        let name = |number| format!("/a-name-as-long-as-those-of-most-locks-are-{number:010}");
        let created = (0..CHILDREN).map(|number| cork.create(&name(number), b"").submit());
        let created: Vec<_> = created.collect();
        drop(cork);
        for node in created {
            timeout(PATIENCE, node).await.unwrap().unwrap();
        }
        // Whose request gives back what so many others have taken up.
        timeout(PATIENCE, zk.exists("/")).await.unwrap().unwrap();
    });
    let memory = measure(|| {
        let listed = runtime.block_on(async { timeout(PATIENCE, zk.children("/")).await });
        let (names, _) = listed.unwrap().unwrap();
        assert!(names.len() >= CHILDREN);
    });
    assert!(memory.bytes_max > 5 * BYTES_MAX as u64, "{memory:?}");
    assert!(memory.bytes_current <= BYTES_MAX, "{memory:?}");
}
