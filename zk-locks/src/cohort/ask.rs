//! Asking for the lock, and waiting for it.

use std::{mem, sync::Arc};

use tokio::sync::oneshot;
use zk_client::SessionEnd;

use super::{
    CohortGuard,
    attempt::Attempt,
    local::{Shared, Waiter},
    runner::Runner,
};
use crate::error::AcquireError;

/// The outcome of asking for the lock.
pub(super) enum Asked {
    Granted(CohortGuard),
    Waits(Waiting),
}

impl Shared {
    /// Takes the lock if it is idle in the process, or a place in the queue.
    pub(super) fn ask(self: &Arc<Self>) -> Asked {
        let (grant, granted) = oneshot::channel();
        let mut attempt = Attempt::begin(&self.wait_queue);
        let mut local = loop {
            if let Some((number, guard)) = self.take_idle() {
                match self.grant_idle(number, guard, attempt) {
                    Ok(guard) => return Asked::Granted(guard),
                    Err(back) => attempt = back,
                }
            }
            let local = self.local();
            // It may have become idle in between; waiters are passed nothing then.
            if local.turn.as_ref().is_none_or(|turn| turn.idle.is_none()) {
                break local;
            }
        };
        let number = local.number();
        let is_first = local.waiters.is_empty();
        local.unwanted = None;
        local.waiters.push_back(Waiter { number, attempt, grant });
        let needs_runner = !mem::replace(&mut local.has_runner, true);
        drop(local);
        let waiting = Waiting { shared: self.clone(), number, granted, is_told: false };
        if needs_runner {
            Runner::spawn(self);
        } else if is_first {
            self.changed();
        }
        Asked::Waits(waiting)
    }

    /// Gives up a place in the queue, or the lock if it is just being passed to it.
    fn leave(&self, number: u64) {
        let mut local = self.local();
        let position = local.waiters.binary_search_by_key(&number, |waiter| waiter.number);
        let waiter = position.ok().and_then(|position| local.waiters.remove(position));
        let is_nobodys = local.waiters.is_empty() && local.has_runner;
        if is_nobodys {
            local.unwanted = Some(self.wait_queue.client.for_cleanup());
        }
        drop(local);
        drop(waiter);
        if is_nobodys {
            self.changed();
        }
    }
}

/// A place in the queue of a cohort. Dropping it leaves the queue; a lock that has just been passed to it goes to the
/// next waiter.
pub(super) struct Waiting {
    shared: Arc<Shared>,
    number: u64,
    granted: oneshot::Receiver<Result<CohortGuard, AcquireError>>,
    /// Whether the place is gone: the answer has arrived.
    is_told: bool,
}

impl Waiting {
    pub(super) async fn granted(mut self) -> Result<CohortGuard, AcquireError> {
        let closed = AcquireError::SessionEnded(SessionEnd::Closed);
        let told = (&mut self.granted).await;
        self.is_told = true;
        let told = told.unwrap_or(Err(closed));
        if let Ok(guard) = &told {
            self.shared.has_it(guard.turn);
        }
        told
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_told {
            // First, so that a task that is about to pass it the lock, and cannot, does not have it wait again.
            self.granted.close();
            self.shared.leave(self.number);
        }
    }
}
