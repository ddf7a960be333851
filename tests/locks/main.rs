//! Locks on real servers.

use std::sync::{Arc, Mutex};

use zk_locks::{Client, Lock};
use zk_testkit::real::{Release, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_contenders_take_the_lock_in_turn_and_leave_nothing_behind() {
    let server = Server::start(Release::V3_9).await.unwrap();
    let held = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for _ in 0..50 {
        let (servers, held) = (server.connect_string(), held.clone());
        tasks.push(tokio::spawn(async move {
            let zk = Client::connect(&servers).await.unwrap();
            let guard = Lock::new(&zk, "/locks/all").acquire().await.unwrap();
            held.lock().unwrap().push(guard.token());
            guard.release().await.unwrap();
            zk.close().await.unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let held = Arc::into_inner(held).unwrap().into_inner().unwrap();
    assert_eq!(held.len(), 50);
    assert!(held.is_sorted_by(|a, b| a < b), "{held:?}");
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    assert!(Lock::new(&zk, "/locks/all").contenders().await.unwrap().is_empty());
}
