//! Hearing that something below a node has changed, at a pace at which all of it can be read again each time.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use zk_client::{Cache, CacheEvent, CacheEvents, Client};

use crate::exit::{Exit, Failure};

/// Between two of what is reported: each may cost the reading of a whole queue.
const PACE: Duration = Duration::from_millis(200);

/// Changes to a node and everything below it, on servers of any release.
#[derive(Debug)]
pub(crate) struct Changes {
    events: CacheEvents,
    path: String,
    last: Instant,
}

impl Changes {
    pub(crate) fn of(client: &Client, path: &str) -> Result<Self, Failure> {
        let cache = Cache::subtree(client, path).without_data().events_max(1);
        let cache = cache.start().map_err(|error| Failure::new(Exit::Usage, error))?;
        Ok(Self { events: cache.events(), path: path.to_owned(), last: Instant::now() })
    }

    /// Waits for the next change after the last call; several in a row are one.
    pub(crate) async fn next(&mut self) -> Result<(), Failure> {
        match self.events.next().await {
            Some(CacheEvent::Ended(end)) => {
                Err(Failure::new(Exit::Unavailable, format_args!("{}: {end}", self.path)))
            }
            None => Err(Failure::new(Exit::Unavailable, format_args!("{}: no session", self.path))),
            Some(_) => {
                sleep_until(self.last + PACE).await;
                self.last = Instant::now();
                Ok(())
            }
        }
    }
}
