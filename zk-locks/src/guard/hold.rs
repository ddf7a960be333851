//! What is told of a lock from its grant to its release.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::Held;
use crate::{
    line::{Line, Waited},
    observe::{Grant, Observers, Release},
};

/// Tells of the grant when it is made, and of the release when it goes.
#[derive(Debug)]
pub(super) struct Hold {
    held: Arc<Held>,
    since: Instant,
    observers: Observers,
    /// Ends the alarm in being dropped.
    _alarm: Option<oneshot::Sender<()>>,
}

impl Hold {
    pub(super) fn begin(line: &Line, held: &Arc<Held>, waited: Waited) -> Self {
        let observers = line.settings.observers.clone();
        let told = Told { held: held.clone(), waited };
        observers.tell(|observer| observer.granted(&told.grant()));
        let alarm = line.settings.max_hold.map(|limit| {
            let (alarm, released) = oneshot::channel();
            line.client.spawn(told.alarm(limit, released, observers.clone()));
            alarm
        });
        Self { held: held.clone(), since: Instant::now(), observers, _alarm: alarm }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Held { path, token, .. } = &*self.held;
        let (held, lost) = (self.since.elapsed(), self.held.known_loss());
        self.observers.tell(|it| it.released(&Release { path, token: *token, held, lost }));
    }
}

/// A grant that was told of.
struct Told {
    held: Arc<Held>,
    waited: Waited,
}

impl Told {
    fn grant(&self) -> Grant<'_> {
        let Held { path, token, .. } = &*self.held;
        let Waited { time, ahead } = self.waited;
        Grant { path, token: *token, waited: time, ahead }
    }

    async fn alarm(self, limit: Duration, released: oneshot::Receiver<()>, observers: Observers) {
        tokio::select! {
            biased;
            _ = released => return,
            () = sleep(limit) => {}
        }
        let Grant { path, token, .. } = self.grant();
        tracing::warn!(path, %token, ?limit, "held for too long");
        observers.tell(|observer| observer.held_too_long(&self.grant()));
    }
}
