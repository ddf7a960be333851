//! Reporting a lock from its grant to its release.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{Held, Status};
use crate::{
    error::Lost,
    observe::{Grant, Observers, Release},
    wait_queue::{WaitQueue, Waited},
};

/// Reports the grant when it is made, and the release when this is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    /// The present view of the lock. Dropping it ends the alarms.
    held: watch::Sender<Held>,
    since: Instant,
    observers: Observers,
}

impl Hold {
    pub(super) fn begin(wait_queue: &WaitQueue, held: &Held, waited: Waited) -> Self {
        let settings = &wait_queue.settings;
        let observers = settings.observers.clone();
        observers.granted(&grant(held, waited));
        let held = watch::Sender::new(held.clone());
        let since = Instant::now();
        let warning = settings.max_hold.map(|after| Limit { after, takes_away: false });
        let end = settings.release_after.map(|after| Limit { after, takes_away: true });
        let mut limits: Vec<Limit> = warning.into_iter().chain(end).collect();
        if !limits.is_empty() {
            limits.sort_unstable();
            let (held, observers) = (held.subscribe(), observers.clone());
            let term = Term { held, waited, since, observers, unsaid: Vec::new() };
            wait_queue.client.spawn(term.run(limits));
        }
        Self { held, since, observers }
    }

    /// Replaces the view of the lock.
    pub(super) fn goes_on(&self, held: &Held) {
        self.held.send_replace(held.clone());
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // A copy: observers are not called under the channel's lock.
        let (view, held) = (self.held.borrow().clone(), self.since.elapsed());
        let (path, token) = (view.path(), view.token);
        let lost = match view.status() {
            Status::Lost(lost) => Some(lost),
            Status::Held | Status::Suspect { .. } => None,
        };
        self.observers.released(&Release { path, token, held, lost });
    }
}

/// What observers are told of a grant.
fn grant(held: &Held, waited: Waited) -> Grant<'_> {
    let Waited { time, ahead } = waited;
    Grant { path: held.path(), token: held.token, waited: time, ahead }
}

/// For how long a lock may be held, and what happens then. The shorter time comes first, and a report before an end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Limit {
    after: Duration,
    takes_away: bool,
}

/// The time for which a lock is held.
struct Term {
    held: watch::Receiver<Held>,
    waited: Waited,
    since: Instant,
    observers: Observers,
    /// The limits that have struck and are not reported.
    unsaid: Vec<Limit>,
}

impl Term {
    /// One task for all limits: they come in their order however late it runs, and nothing is reported of a lock that has
    /// been taken away, or was lost otherwise.
    async fn run(mut self, limits: Vec<Limit>) {
        for limit in limits {
            if !self.lasts(limit.after).await {
                return;
            }
            self.unsaid.push(limit);
            match self.report() {
                Status::Held | Status::Suspect { .. } | Status::Lost(Lost::LeaseRanOut) => {}
                Status::Lost(_) => return,
            }
            if limit.takes_away {
                return self.take_away().await;
            }
        }
        while !self.unsaid.is_empty() && self.held.changed().await.is_ok() {
            self.report();
        }
    }

    /// Waits until it has been held for so long. Returns false if it is released before.
    async fn lasts(&mut self, time: Duration) -> bool {
        loop {
            let left = time.saturating_sub(self.since.elapsed());
            tokio::select! {
                biased;
                changed = self.held.changed() => match changed {
                    Ok(()) => drop(self.report()),
                    Err(_) => return false,
                },
                () = sleep(left) => return true,
            }
        }
    }

    /// Reports what has struck, unless the lock is lost. If that is for want of a lease, the session may live, and its node
    /// with it: others wait for it, and what it is traded for is held again.
    fn report(&mut self) -> Status {
        let held = self.held.borrow_and_update().clone();
        let status = held.status();
        if let Status::Held | Status::Suspect { .. } = status {
            let grant = grant(&held, self.waited);
            let Grant { path, token, .. } = grant;
            for Limit { after: limit, takes_away } in self.unsaid.drain(..) {
                tracing::warn!(path, %token, ?limit, takes_away, "held for too long");
                self.observers.tell(|observer| observer.held_too_long(&grant));
            }
        }
        status
    }

    async fn take_away(mut self) {
        loop {
            let held = self.held.borrow_and_update().clone();
            held.take_away();
            // What the guard has had for its node in the meantime goes too, whether or not servers have answered.
            if self.held.changed().await.is_err() {
                return;
            }
            self.report();
        }
    }
}
