//! What observers are told of a task of a cohort that asks for the lock.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::wait_queue::WaitQueue;

/// A task's attempt to get the lock. Unless it was granted, dropping this reports that it was given up: not to be done
/// while the cohort's state is locked, since observers may look at that.
pub(super) struct Attempt {
    wait_queue: Arc<WaitQueue>,
    since: Instant,
    is_granted: bool,
}

impl Attempt {
    /// Reports that the wait begins.
    pub(super) fn begin(wait_queue: &Arc<WaitQueue>) -> Self {
        let wait_queue = wait_queue.clone();
        wait_queue.settings.observers.tell(|observer| observer.joined(&wait_queue.path));
        Self { wait_queue, since: Instant::now(), is_granted: false }
    }

    pub(super) fn waited(&self) -> Duration {
        self.since.elapsed()
    }

    /// Ends the wait: the grant is reported where the guard is made.
    pub(super) fn granted(mut self) {
        self.is_granted = true;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let WaitQueue { path, settings, .. } = &*self.wait_queue;
        settings.observers.tell(|observer| {
            observer.left(path);
            if !self.is_granted {
                observer.given_up(path, self.waited());
            }
        });
    }
}
