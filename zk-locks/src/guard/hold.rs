//! Reporting a lock from its grant to its release.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{Held, Status};
use crate::{
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
        let alarms = [(settings.max_hold, false), (settings.release_after, true)];
        for (limit, takes_away) in alarms {
            let Some(limit) = limit else { continue };
            let alarm =
                Alarm { held: held.subscribe(), waited, limit, observers: observers.clone() };
            wait_queue.client.spawn(alarm.run(takes_away));
        }
        Self { held, since: Instant::now(), observers }
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

/// Something that happens to locks that are held for too long.
struct Alarm {
    held: watch::Receiver<Held>,
    waited: Waited,
    limit: Duration,
    observers: Observers,
}

impl Alarm {
    async fn run(mut self, takes_away: bool) {
        let released = async { while self.held.changed().await.is_ok() {} };
        tokio::select! {
            biased;
            () = released => return,
            () = sleep(self.limit) => {}
        }
        let mut held = self.held.borrow_and_update().clone();
        let Grant { path, token, .. } = grant(&held, self.waited);
        tracing::warn!(path, %token, limit = ?self.limit, takes_away, "held for too long");
        self.observers.tell(|observer| observer.held_too_long(&grant(&held, self.waited)));
        if !takes_away {
            return;
        }
        loop {
            held.take_away();
            // What the guard has had for its node in the meantime goes too, whether or not servers have answered.
            if self.held.changed().await.is_err() {
                return;
            }
            held = self.held.borrow_and_update().clone();
        }
    }
}
