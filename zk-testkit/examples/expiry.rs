//! What becomes of a job that is running when the session of its lock ends? No server is needed.

use std::{future::pending, time::Duration};

use tokio::{sync::watch, time::sleep};
use zk_locks::{Client, Lock, Lost, SessionEnd};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("stopped behind step {}", run().await?);
    Ok(())
}

/// The program; how far the job has got.
pub async fn run() -> Result<u32, Box<dyn std::error::Error>> {
    let server = zk_testkit::TestServer::start().await?;
    let zk = Client::connect(&server.connect_string()).await?;

    // The service: a job that runs under a lock.
    let (done, mut steps) = watch::channel(0);
    let guard = Lock::new(&zk, "/jobs/nightly").acquire().await?;
    let job = tokio::spawn(async move { guard.scope(nightly_job(done)).await });

    // In the middle of it the servers give the session up, as if it had been out of reach for too long.
    steps.wait_for(|step| *step == 3).await?;
    server.expire(zk.session().id());

    // The job is dropped where it waits, and its lock is free.
    assert_eq!(job.await?, Err(Lost::SessionEnded(SessionEnd::Expired)));
    assert!(!server.paths().iter().any(|path| path.starts_with("/jobs/nightly/")));
    let reached = *steps.borrow();
    Ok(reached)
}

/// Three steps of many; the fourth takes the rest of the night.
async fn nightly_job(done: watch::Sender<u32>) {
    for step in 1..=3 {
        sleep(Duration::from_millis(1)).await;
        done.send_replace(step);
    }
    pending().await
}
