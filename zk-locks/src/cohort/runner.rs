//! The task that gets the lock for a cohort, and watches it.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};
use zk_client::{Cause, ReadError, Rejection, path::name};

use super::local::{Shared, Step, Watched};
use crate::{
    backoff::{Backoff, pass},
    entry::Entry,
    error::{AcquireError, Lost},
    guard::{Guard, Held},
    layout::Role,
    wait_queue::{Pace, WaitQueue},
};

/// Runs only while there are waiters or the lock is held.
pub(super) struct Runner {
    shared: Arc<Shared>,
    /// Whether it has ended normally, so that there may be another runner.
    at_rest: bool,
}

/// What is known of the queue behind us.
enum Behind {
    Somebody,
    /// Our own node is not there any more.
    NotEvenUs,
}

impl Runner {
    pub(super) fn spawn(shared: &Arc<Shared>) {
        let runner = Self { shared: shared.clone(), at_rest: false };
        shared.wait_queue.client.spawn(runner.run());
    }

    async fn run(mut self) {
        let (mut backoff, mut pause) = (Backoff::default(), Duration::ZERO);
        loop {
            match self.shared.step() {
                Step::Rest => break,
                Step::Join => {
                    let is_undone = self.join(pause).await;
                    pause = if is_undone { backoff.pause() } else { Duration::ZERO };
                }
                Step::Watch(turn) => self.watch(turn).await,
            }
        }
        self.at_rest = true;
    }

    /// Gets the lock after a pause, unless all waiters have left, or a task of the cohort got it by a try. Whether others
    /// have undone that, and the waiters still wait.
    async fn join(&self, pause: Duration) -> bool {
        let queued = tokio::select! {
            biased;
            () = self.superseded() => return false,
            queued = self.queue_after(pause) => queued,
        };
        let requeues = self.shared.wait_queue.settings.stay.requeues;
        match queued {
            Ok((guard, ahead, contended)) => self.shared.grant(guard, ahead, contended),
            Err(AcquireError::NodeDeleted | AcquireError::LeaseRanOut) if requeues => return true,
            Err(error) => self.shared.fail(&error),
        }
        false
    }

    async fn queue_after(
        &self,
        pause: Duration,
    ) -> Result<(Guard, Option<usize>, bool), AcquireError> {
        pass(pause).await;
        self.queue().await
    }

    /// Gets the lock: with the number of contenders that were ahead, and whether there is one behind.
    async fn queue(&self) -> Result<(Guard, Option<usize>, bool), AcquireError> {
        let wait_queue = &self.shared.unobserved;
        let mut position = wait_queue.join(Role::Lock, Pace::MayWait).await?;
        wait_queue.wait(&mut position).await?;
        let contended = position.is_followed();
        let (guard, waited) = Guard::unreported(wait_queue, position)?;
        Ok((guard, waited.ahead, contended))
    }

    async fn superseded(&self) {
        while self.shared.local().wants_node() {
            self.shared.news.notified().await;
        }
    }

    /// Watches a turn until it is over: for losses, and for other contenders.
    async fn watch(&self, number: u64) {
        let shared = &self.shared;
        let mut behind = pin!(self.behind(number));
        let mut heard = false;
        while let Some(Watched { held, asks_who_is_behind, idle_until }) = shared.watched(number) {
            tokio::select! {
                biased;
                () = shared.news.notified() => {}
                lost = held.out_of_touch() => shared.lose(number, lost),
                behind = &mut behind, if asks_who_is_behind && !heard => {
                    heard = true;
                    match behind {
                        Behind::NotEvenUs => shared.lose(number, Lost::NodeDeleted),
                        Behind::Somebody => shared.is_contended(number),
                    }
                }
                // Nobody here has a guard that would show it.
                _ = held.revoked(), if idle_until.is_some() => shared.release_idle(number),
                () = sleep_until(idle_until.unwrap_or_else(Instant::now)), if idle_until.is_some() => {
                    shared.release_idle(number);
                }
            }
        }
    }

    /// Waits until there is a contender behind us: lists the queue, and once more after the first change, so that there
    /// is at most one notification, however long the turn.
    async fn behind(&self, number: u64) -> Behind {
        let WaitQueue { client, path, .. } = &*self.shared.wait_queue;
        let own = self.shared.watched(number);
        let Some(own) = own.and_then(|watched| self.entry_of(&watched.held)) else {
            return std::future::pending().await;
        };
        let (names, watch) = match client.children(path).watch().await {
            Ok(((names, _), watch)) => (names, watch),
            Err(error) => return unread(&error).await,
        };
        if let Some(behind) = self.judge(names, &own) {
            return behind;
        }
        if watch.await.is_err() {
            return std::future::pending().await;
        }
        match client.children(path).await {
            // The newcomer may have left again: others will join.
            Ok((names, _)) => self.judge(names, &own).unwrap_or(Behind::Somebody),
            Err(error) => unread(&error).await,
        }
    }

    fn entry_of(&self, held: &Held) -> Option<Entry> {
        self.shared.wait_queue.settings.filter.parse(name(held.path()).to_owned()).ok()
    }

    /// `None` if we are the last.
    fn judge(&self, names: Vec<String>, own: &Entry) -> Option<Behind> {
        let filter = &self.shared.wait_queue.settings.filter;
        let (mut is_there, mut is_followed) = (false, false);
        for entry in names.into_iter().filter_map(|name| filter.read(name).ok()) {
            is_there |= entry.name == own.name;
            is_followed |= own.is_ahead_of(&entry);
        }
        match (is_there, is_followed) {
            (false, _) => Some(Behind::NotEvenUs),
            (true, true) => Some(Behind::Somebody),
            (true, false) => None,
        }
    }
}

/// What to conclude when the queue cannot be listed.
async fn unread(error: &ReadError) -> Behind {
    match error {
        ReadError::Rejected(Rejection::NoNode) => Behind::NotEvenUs,
        // The session reports that itself.
        ReadError::Unavailable(Cause::SessionEnded(_)) => std::future::pending().await,
        // The safe side, for contenders that may be there.
        _ => Behind::Somebody,
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if !self.at_rest {
            self.shared.abandon();
        }
    }
}
