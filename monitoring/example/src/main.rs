//! The service as a program: where ZooKeeper is, and where it is to be scraped.

use std::{env, error::Error};

use tokio::net::TcpListener;
use zk_locks::ConnectOptions;
use zk_observed::{Exporter, work};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = env::args().skip(1);
    let servers = arguments.next().unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:9185".to_owned());
    let exporter = Exporter::install()?;
    let listener = TcpListener::bind(address).await?;
    println!("http://{}/metrics", listener.local_addr()?);
    let options = ConnectOptions::new(&servers)?;
    tokio::select! {
        ended = exporter.serve(listener) => match ended? {},
        ended = work(options) => match ended? {},
        stopped = tokio::signal::ctrl_c() => Ok(stopped?),
    }
}
