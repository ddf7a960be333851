//! Waiting for what must happen, without sleeping.

use std::{sync::mpsc, time::Duration};

use tokio::{
    task::spawn_blocking,
    time::{pause, resume, timeout},
};
use zk_locks::{Client, ReadError, Rejection};

/// Whatever a test waits for comes within this time, or never: however busy the machine is. Shorter than
/// [`SESSION_TIMEOUT_MAX`](crate::site::SESSION_TIMEOUT_MAX).
pub const LIMIT: Duration = Duration::from_secs(50);

/// Waits for something that must happen.
///
/// # Panics
/// It does not.
pub async fn within<F: IntoFuture>(future: F) -> F::Output {
    timeout(LIMIT, future.into_future()).await.expect("it did not happen in time")
}

/// Ends a session, and waits for the confirmation as long as a busy machine takes.
///
/// # Panics
/// There is none.
pub async fn closed(zk: &Client) {
    zk.close_within(LIMIT).await.unwrap();
}

/// Runs something while time stands still: no timer of this runtime fires, so that a slow machine changes nothing. After
/// [`LIMIT`] time passes again, and the bounds of what waits end it. The runtime is of one thread.
///
/// # Panics
/// Time stands still already.
pub async fn in_standing_time<T>(future: impl Future<Output = T>) -> T {
    let (over, is_over) = mpsc::channel::<()>();
    // A runtime whose clock is paused moves it on when there is nothing to do, and blocking is something to do.
    let blocking = spawn_blocking(move || is_over.recv_timeout(LIMIT));
    pause();
    let output = future.await;
    resume();
    drop(over);
    let _ = blocking.await;
    output
}

/// Waits until a node has no children, or is not there at all. A test that asks with the client that may have left some sees what
/// that has done before, and so not an emptiness from before it began.
///
/// # Panics
/// It keeps some.
pub async fn emptied(zk: &Client, path: &str) {
    joined(zk, path, 0).await;
}

/// Waits until a node has so many children.
///
/// # Panics
/// It does not get them.
pub async fn joined(zk: &Client, path: &str, count: usize) {
    let mut last = Vec::new();
    let reached = async {
        loop {
            let ((names, _), changed) = match zk.children(path).watch().await {
                Err(ReadError::Rejected(Rejection::NoNode)) if count == 0 => return,
                children => children.unwrap(),
            };
            if names.len() == count {
                return;
            }
            last = names;
            changed.await.unwrap();
        }
    };
    if timeout(LIMIT, reached).await.is_err() {
        panic!("{path} has not {count} children but {last:?}");
    }
}
