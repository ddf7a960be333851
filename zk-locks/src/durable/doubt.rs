//! Questions that have to be answered, however often they have to be asked.

use std::fmt;

use zk_client::{ReadError, Rejection, WriteError};

use crate::backoff::{Backoff, pass};

/// Asks until that is answered: a member that is cut off from the others refuses a `sync`, and a busy one may refuse
/// anything, until the session has moved or they have recovered. A grant would be lost, or left behind, for want of patience.
///
/// # Errors
/// If the session has ended, or the servers do not permit it.
pub(super) async fn until_answered<T, E, A>(ask: impl Fn() -> A) -> Result<T, E>
where
    A: IntoFuture<Output = Result<T, E>>,
    E: Failure,
{
    let mut backoff = Backoff::default();
    loop {
        match ask().await {
            Err(error) if error.may_be_answered_yet() => {
                tracing::debug!(%error, "asked in vain");
                pass(backoff.pause()).await;
            }
            answered => return answered,
        }
    }
}

/// Why something was not answered, or not as hoped.
pub(super) trait Failure: fmt::Display {
    fn may_be_answered_yet(&self) -> bool;
}

impl Failure for ReadError {
    fn may_be_answered_yet(&self) -> bool {
        self.session_end().is_none() && self.rejection() != Some(Rejection::NoAuth)
    }
}

impl Failure for WriteError {
    fn may_be_answered_yet(&self) -> bool {
        self.session_end().is_none() && matches!(self.rejection(), None | Some(Rejection::ReadOnly))
    }
}
