//! A runtime on which time is simulated.

use std::{future::Future, pin::Pin};

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

/// Runs on such a runtime. What runs there is boxed: the runtime is compiled once, and not for each test.
///
/// # Panics
/// As [`runtime`].
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let future: Pin<Box<dyn Future<Output = T> + '_>> = Box::pin(future);
    runtime().block_on(future)
}
