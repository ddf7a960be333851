//! Hearing that something below a node has changed, at a pace at which all of it can be read again each time.

use std::{future::pending, time::Duration};

use tokio::time::{Instant, sleep_until};
use zk_client::{Cache, CacheEvent, CacheEvents, Client};

use crate::exit::{Exit, Failure};

/// Between two of what is reported: each may cost the reading of a whole queue.
const PACE: Duration = Duration::from_millis(200);

/// Changes to a node and everything below it, on servers of any release.
#[derive(Debug)]
pub(crate) struct Changes {
    events: CacheEvents,
    /// Those of another node.
    more: Option<CacheEvents>,
    path: String,
    last: Instant,
}

impl Changes {
    pub(crate) fn of(client: &Client, path: &str) -> Result<Self, Failure> {
        let events = events(client, path)?;
        Ok(Self { events, more: None, path: path.to_owned(), last: Instant::now() })
    }

    /// Also those of another node.
    pub(crate) fn and_of(self, client: &Client, path: Option<&str>) -> Result<Self, Failure> {
        let more = path.map(|path| events(client, path)).transpose()?;
        Ok(Self { more, ..self })
    }

    /// Waits for the next change after the last call; several in a row are one.
    pub(crate) async fn next(&mut self) -> Result<(), Failure> {
        let more = async {
            match &mut self.more {
                Some(more) => more.next().await,
                None => pending().await,
            }
        };
        let event = tokio::select! {
            event = self.events.next() => event,
            event = more => event,
        };
        match event {
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

fn events(client: &Client, path: &str) -> Result<CacheEvents, Failure> {
    let cache = Cache::subtree(client, path).without_data().events_max(1);
    let cache = cache.start().map_err(|error| Failure::new(Exit::Usage, error))?;
    Ok(cache.events())
}
