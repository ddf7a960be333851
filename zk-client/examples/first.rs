//! Announces a worker, reads the settings, and is notified when they change.

use zk_client::{Client, CreateMode};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run("127.0.0.1:2181").await
}

/// The program, run against the given servers.
pub async fn run(servers: &str) -> Result<(), Box<dyn std::error::Error>> {
    let zk = Client::connect(servers).await?;

    // Exists as long as this session; missing parents are created too.
    let worker = zk
        .create("/first/workers/worker-", b"10.0.0.7:8080")
        .mode(CreateMode::EphemeralSequential)
        .parents()
        .await?;
    println!("we are {}", worker.path);

    // `existed` says whether it was there already; sent again if the reply is lost.
    zk.create("/first/settings", b"fast").or_exists().await?;

    // The watch is armed in the same step as the read: no change falls in between.
    let ((settings, stat), changed) = zk.get("/first/settings").watch().await?;
    println!("version {}: {}", stat.version, String::from_utf8_lossy(&settings));

    // Only if no other client has written it in between.
    zk.set("/first/settings", b"slow").version(stat.version).await?;
    let event = changed.await?;
    println!("{}: {}", event.path, event.kind);

    zk.close().await?;
    Ok(())
}
