//! What becomes of a job when the session of its lock ends in the middle of it? No server is needed.

use zk_locks::{Client, Lock, Lost, SessionEnd};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = zk_testkit::TestServer::start().await?;
    let zk = Client::connect(&server.connect_string()).await?;
    let guard = Lock::new(&zk, "/jobs/nightly").acquire().await?;
    let job = guard.scope(nightly_job());

    server.expire(zk.session().id()); // as if it had been out of reach for too long
    assert_eq!(job.await, Err(Lost::SessionEnded(SessionEnd::Expired)));
    println!("it was stopped");
    Ok(())
}

/// Takes the whole night.
async fn nightly_job() {
    std::future::pending().await
}
