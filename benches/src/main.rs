//! Measures a client: `zk-bench serve instant`, and then `zk-bench ours get --server 127.0.0.1:…`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use zk_benches::{
    Failure, ServeOptions, Task, end, measure_null, measure_null_on_tokio, measure_ours, print,
    serve,
};

#[cfg(feature = "count-allocations")]
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

#[derive(Parser)]
#[command(about = "Measures clients of ZooKeeper")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts a server, prints its address, and serves until the input ends.
    Serve(ServeOptions),
    /// Measures our client; prints a line of JSON.
    Ours(Task),
    /// The same with nothing but sockets: requests that are encoded once, replies that are counted.
    Null(Task),
    /// The same on the runtime that our client and others use.
    NullTokio(Task),
}

fn main() -> ExitCode {
    end(run(Arguments::parse().command))
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(options) => serve(&options)?,
        Command::Ours(task) => print(&measure_ours(&task)?),
        Command::Null(task) => print(&measure_null(&task)?),
        Command::NullTokio(task) => print(&measure_null_on_tokio(&task)?),
    }
    Ok(())
}
