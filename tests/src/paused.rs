//! A runtime on which time is simulated.

use tokio::runtime::{Builder, Runtime};

/// A runtime of one thread whose clock moves on when all tasks sleep.
///
/// # Panics
/// If there is none to be had: without I/O it needs nothing.
#[must_use]
pub fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without I/O needs nothing")
}
