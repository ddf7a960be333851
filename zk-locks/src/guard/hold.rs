//! Reporting a lock from its grant to its release.

use std::time::Duration;

use tokio::{
    sync::oneshot,
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
    held: Held,
    since: Instant,
    observers: Observers,
    /// Dropping them ends the alarms.
    _alarms: [Option<oneshot::Sender<()>>; 2],
}

impl Hold {
    pub(super) fn begin(wait_queue: &WaitQueue, held: &Held, waited: Waited) -> Self {
        let observers = wait_queue.settings.observers.clone();
        let told = Told { held: held.clone(), waited };
        observers.granted(&told.grant());
        let alarm = |limit: Option<Duration>, takes_away| {
            let (alarm, released) = oneshot::channel();
            let told = Told { held: held.clone(), waited };
            let (limit, observers) = (limit?, observers.clone());
            wait_queue.client.spawn(told.alarm(limit, released, observers, takes_away));
            Some(alarm)
        };
        let settings = &wait_queue.settings;
        let alarms = [alarm(settings.max_hold, false), alarm(settings.release_after, true)];
        Self { held: held.clone(), since: Instant::now(), observers, _alarms: alarms }
    }
}

impl Hold {
    /// Replaces the view of the lock.
    pub(super) fn goes_on(&mut self, held: &Held) {
        self.held = held.clone();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let (path, token, held) = (self.held.path(), self.held.token, self.since.elapsed());
        let lost = match self.held.status() {
            Status::Lost(lost) => Some(lost),
            Status::Held | Status::Suspect { .. } => None,
        };
        self.observers.released(&Release { path, token, held, lost });
    }
}

/// A reported grant.
struct Told {
    held: Held,
    waited: Waited,
}

impl Told {
    fn grant(&self) -> Grant<'_> {
        let Waited { time, ahead } = self.waited;
        Grant { path: self.held.path(), token: self.held.token, waited: time, ahead }
    }

    async fn alarm(
        self,
        limit: Duration,
        released: oneshot::Receiver<()>,
        observers: Observers,
        takes_away: bool,
    ) {
        tokio::select! {
            biased;
            _ = released => return,
            () = sleep(limit) => {}
        }
        let Grant { path, token, .. } = self.grant();
        tracing::warn!(path, %token, ?limit, takes_away, "held for too long");
        observers.tell(|observer| observer.held_too_long(&self.grant()));
        if takes_away {
            self.held.take_away().await;
        }
    }
}
