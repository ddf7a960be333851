//! Servers to measure against, in processes of their own.

use std::io;

use clap::Args;
use tokio::runtime;
use zk_testkit::{TestServer, real::Server};

use crate::{client::Failure, instant};

/// Which server, and how it is set up.
#[derive(Args, Clone, Debug)]
pub struct ServeOptions {
    /// `instant`, which answers from memory without looking; `testkit`, in memory too; or a release such as `3.8`.
    pub kind: String,
    /// Worker threads of a real one; as many as it likes by default.
    #[arg(long)]
    pub workers: Option<u32>,
}

/// Starts a server, prints its address, and serves until the input ends.
///
/// # Errors
/// It could not be started.
pub fn serve(options: &ServeOptions) -> Result<(), Failure> {
    match &*options.kind {
        "instant" => instant::serve(announce),
        "testkit" => runtime::Runtime::new()?.block_on(async {
            let server = TestServer::start().await?;
            announce(&server.connect_string());
            until_input_ends().await
        }),
        _ => runtime::Runtime::new()?.block_on(real(options)),
    }
}

/// One that waits for no disk, with the compiler that servers in production have.
async fn real(options: &ServeOptions) -> Result<(), Failure> {
    let data = tempfile::Builder::new().prefix("zk-bench-").tempdir_in("/dev/shm")?;
    let mut server = Server::builder()
        .release(options.kind.parse::<zk_testkit::real::Release>()?)
        .config(format!("dataDir={}", data.path().display()))
        .config("preAllocSize=65536")
        .config("tickTime=2000")
        .config("minSessionTimeout=400")
        // Snapshots would be written in the middle of a measurement.
        .config("snapCount=10000000")
        .java_option("-XX:TieredStopAtLevel=4")
        .java_option("-Xmx1g");
    if let Some(workers) = options.workers {
        server = server.config(format!("nio.numWorkerThreads={workers}"));
    }
    let server = server.start().await?;
    announce(&server.connect_string());
    until_input_ends().await
}

fn announce(address: &str) {
    println!("{address}");
}

async fn until_input_ends() -> Result<(), Failure> {
    tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
    Ok(())
}
