//! The code of `docs/client.md`, as a program.
//!
//! ```sh
//! cargo run -p zk-client --example guide -- 127.0.0.1:2181
//! ```

mod changes;
mod requests;
mod sessions;

use std::error::Error;

use zk_client::CreateMode;

/// The program, run against the given servers.
pub async fn run(servers: &str) -> Result<(), Box<dyn Error>> {
    let zk = sessions::connect(&format!("{servers}/guide")).await?;
    let told = tokio::spawn(sessions::follow(zk.session()));
    requests::first_nodes(&zk).await?;
    let zk = sessions::hand_over(zk, &format!("{servers}/guide")).await?;
    told.await?;

    requests::read_and_write(&zk).await?;
    requests::pipeline(&zk).await?;
    requests::doubt(&zk).await?;
    requests::no_doubt(&zk).await?;
    requests::together(&zk).await?;
    requests::in_time(&zk).await?;

    changes::once(&zk).await?;
    let worker = zk.create("/workers/1", b"").mode(CreateMode::Ephemeral).protected().await?;
    // The watch is armed before the delete, which is submitted as soon as it is called.
    let deleting = async { worker.delete().await };
    let (followed, deleted) = tokio::join!(changes::follow(&zk), deleting);
    deleted?;
    followed?;
    changes::cached(&zk).await?;
    sessions::other_servers(&zk, servers)?;
    sessions::watch_over(servers).await?;
    sessions::serve(&format!("{servers}/guide")).await?;

    zk.delete_recursive("/").await?;
    zk.close().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".to_owned())).await
}
