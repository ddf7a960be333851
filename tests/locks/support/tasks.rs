//! Work on threads, and tasks of clients.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use tokio::sync::oneshot;
use zk_client::{BoxFuture, ConnectOptions};

/// What a thread returns. One that never ends is left to itself, where `spawn_blocking` would have the runtime wait for it.
pub(crate) fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (done, returned) = oneshot::channel();
    thread::spawn(move || done.send(work()));
    returned
}

/// Options for a session whose tasks are spawned in this way, but for the one that drives it.
pub(crate) fn spawning_others(
    options: ConnectOptions,
    spawn: impl Fn(BoxFuture<'static, ()>) + Send + Sync + 'static,
) -> ConnectOptions {
    let drives = AtomicBool::new(true);
    options.spawn_with(move |task| {
        if drives.swap(false, Ordering::Relaxed) {
            tokio::spawn(task);
        } else {
            spawn(task);
        }
    })
}
