//! Bounds for every wait.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Whatever a test waits for comes within this time, also on a busy machine, or never.
const LIMIT: Duration = Duration::from_secs(90);

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Waits for something that must happen.
///
/// # Panics
/// It does not.
pub async fn within<F: IntoFuture>(what: &str, future: F) -> F::Output {
    let outcome = timeout(LIMIT, future.into_future()).await;
    outcome.unwrap_or_else(|_| panic!("not within {LIMIT:?}: {what}"))
}

/// Looks again and again until there is something to be seen.
///
/// # Panics
/// There is nothing in time.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            match look().await {
                Some(seen) => return seen,
                None => sleep(LOOK).await,
            }
        }
    };
    within(what, looking).await
}
