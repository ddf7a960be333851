//! Questions that have to be answered, however often they have to be asked.

use zk_client::{ReadError, Rejection};

use crate::backoff::{Backoff, pass};

/// Asks until that is answered: a member that is cut off from the others refuses a `sync`, and a busy one may refuse
/// anything, until the session has moved or they have recovered. A grant would be lost, or left behind, for want of patience.
///
/// # Errors
/// If the session has ended, or the servers do not permit it.
pub(super) async fn until_answered<T, A>(ask: impl Fn() -> A) -> Result<T, ReadError>
where
    A: IntoFuture<Output = Result<T, ReadError>>,
{
    let mut backoff = Backoff::default();
    loop {
        match ask().await {
            Err(error) if may_be_answered_yet(&error) => {
                tracing::debug!(%error, "asked in vain");
                pass(backoff.pause()).await;
            }
            answered => return answered,
        }
    }
}

fn may_be_answered_yet(error: &ReadError) -> bool {
    error.session_end().is_none() && error.rejection() != Some(Rejection::NoAuth)
}
