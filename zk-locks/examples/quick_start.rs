//! Takes a lock, works under it, gives it back.

use zk_locks::{Client, Lock};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run("127.0.0.1:2181").await
}

/// The program, for servers of one's choice.
pub async fn run(servers: &str) -> Result<(), Box<dyn std::error::Error>> {
    let zk = Client::connect(servers).await?;
    let lock = Lock::new(&zk, "/locks/report");

    // Waits behind all who asked before; dropping the future gives up and leaves nothing behind.
    let guard = lock.acquire().await?;

    // Grows with every grant. Let whatever the lock protects refuse smaller ones than it has seen.
    println!("holding {} with token {}", guard.path(), guard.token());

    // Stops the work as soon as the lock is not certain any more.
    guard.scope(write_report(guard.token().get())).await?;

    guard.release().await?;
    zk.close().await?;
    Ok(())
}

async fn write_report(token: i64) {
    println!("report written under token {token}");
}
