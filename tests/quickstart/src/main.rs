//! Takes a lock, works under it, gives it back; in a thread, without a runtime of its own.

use std::{env, error::Error, time::Duration};

use zk_locks::{ConnectOptions, blocking::BlockingSession};

fn main() -> Result<(), Box<dyn Error>> {
    let servers = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let session = BlockingSession::connect(ConnectOptions::new(&servers)?)?;
    let lock = session.lock("/locks/report");

    // Waits behind all who asked before.
    let guard = lock.acquire_timeout(Duration::from_secs(30))?;

    // Grows with every grant. Let whatever the lock protects refuse smaller ones than it has seen.
    println!("report written under token {}", guard.token());

    guard.release()?;
    Ok(())
}
