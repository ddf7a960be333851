//! Runs real ZooKeeper servers by hand: `zk-real [RELEASE] [MEMBERS]`.
//!
//! Prints one line for each server, with its address and process id, and runs until its input
//! ends (Ctrl-D) or it is interrupted. RELEASE is a line such as `3.8`, or `any`; with MEMBERS
//! the servers form an ensemble. On Unix only.

#[cfg(unix)]
mod run;

#[cfg(unix)]
use run::run;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run()
}

#[cfg(not(unix))]
fn run() -> Result<(), Box<dyn std::error::Error>> {
    Err("real servers are started on Unix only".into())
}
