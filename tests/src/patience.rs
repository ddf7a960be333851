//! Waiting for what must happen, without sleeping.

use std::time::Duration;

use tokio::time::timeout;
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
