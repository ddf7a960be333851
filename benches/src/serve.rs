//! Servers to measure against, in processes of their own.

use std::{io, path::PathBuf, time::Duration};

use clap::Args;
use tokio::runtime;
use zk_testkit::{
    TestServer,
    real::{Ensemble, Release, Server, Wanted},
};

use crate::{client::Failure, instant, task::seconds, tls};

/// Lines of the configuration of real servers.
const CONFIG: [&str; 4] = [
    "preAllocSize=65536",
    "tickTime=2000",
    "minSessionTimeout=400",
    // Snapshots would be written in the middle of a measurement.
    "snapCount=10000000",
];

/// The compiler that servers in production have, and as much memory as it takes.
const JAVA: [&str; 2] = ["-XX:TieredStopAtLevel=4", "-Xmx1g"];

/// Which server, and how it is set up.
#[derive(Args, Clone, Debug)]
pub struct ServeOptions {
    /// `instant`, which answers from memory without looking; `testkit`, in memory too; a release such as `3.8`; or
    /// `real`, the release that can be had most cheaply.
    pub kind: String,
    /// Worker threads of a real one; as many as it likes by default.
    #[arg(long)]
    pub workers: Option<u32>,
    /// Members of a real ensemble, of which one that follows is announced.
    #[arg(long, default_value_t = 1)]
    pub members: usize,
    /// Whether real ones wait for the disk at each write, as in production. The disk is that of temporary files.
    #[arg(long)]
    pub fsync: bool,
    /// Has the instant one talk TLS, too, and write to this file the authority that clients are to trust, in PEM.
    #[arg(long)]
    pub tls: Option<PathBuf>,
    /// For how many seconds the instant one is down when a storm is to begin.
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub outage: Duration,
}

/// Starts a server, prints its address, and serves until the input ends.
///
/// # Errors
/// It could not be started.
pub fn serve(options: &ServeOptions) -> Result<(), Failure> {
    match &*options.kind {
        "instant" => {
            let tls = options.tls.as_deref().map(tls::acceptor).transpose()?;
            instant::serve(tls, options.outage, announce)
        }
        _ if options.tls.is_some() => Err("only the instant one talks TLS".into()),
        "testkit" => runtime::Runtime::new()?.block_on(async {
            let server = TestServer::start().await?;
            announce(&server.connect_string());
            until_input_ends().await
        }),
        _ if options.members > 1 => runtime::Runtime::new()?.block_on(ensemble(options)),
        _ => runtime::Runtime::new()?.block_on(real(options)),
    }
}

/// A single one, with its data in memory if it does not wait for the disk.
async fn real(options: &ServeOptions) -> Result<(), Failure> {
    let mut server = Server::builder().release(wanted(options)?);
    let data = match options.fsync {
        true => None,
        false => Some(tempfile::Builder::new().prefix("zk-bench-").tempdir_in("/dev/shm")?),
    };
    if let Some(data) = &data {
        server = server.config(format!("dataDir={}", data.path().display()));
    }
    for line in lines(options) {
        server = server.config(line);
    }
    for option in JAVA {
        server = server.java_option(option);
    }
    let server = server.force_sync(options.fsync).start().await?;
    announce(&server.connect_string());
    until_input_ends().await
}

/// Several, of which all clients talk to the same one, whichever way they would choose among them. Most clients of an
/// ensemble are at a member that follows.
async fn ensemble(options: &ServeOptions) -> Result<(), Failure> {
    let release = wanted(options)?;
    let mut ensemble = Ensemble::builder().release(release).members(options.members);
    for line in lines(options) {
        ensemble = ensemble.config(line);
    }
    for option in JAVA {
        ensemble = ensemble.java_option(option);
    }
    let ensemble = ensemble.force_sync(options.fsync).start().await?;
    let followers = ensemble.followers().await;
    let follower = followers.first().ok_or("no member follows")?;
    announce(&ensemble.member(*follower).connect_string());
    until_input_ends().await
}

fn wanted(options: &ServeOptions) -> Result<Wanted, Failure> {
    match &*options.kind {
        "real" => Ok(Wanted::Any),
        kind => Ok(kind.parse::<Release>()?.into()),
    }
}

fn lines(options: &ServeOptions) -> impl Iterator<Item = String> {
    let workers = options.workers.map(|workers| format!("nio.numWorkerThreads={workers}"));
    CONFIG.into_iter().map(str::to_owned).chain(workers)
}

fn announce(address: &str) {
    println!("{address}");
}

async fn until_input_ends() -> Result<(), Failure> {
    tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
    Ok(())
}
