//! Waiting by watching the whole queue: simple, but every change wakes every waiter.

use std::time::Duration;

use tokio::time::timeout;
use zk_client::{Client, ReadError, Rejection, path::join};

use super::{Position, WaitQueue, wait::jitter};
use crate::error::AcquireError;

impl WaitQueue {
    /// Waits until no contender that we have to wait for is ahead. Can be dropped and called again.
    pub(super) async fn wait_in_herd(&self, position: &mut Position) -> Result<(), AcquireError> {
        if position.ahead() == Some(0) {
            return Ok(());
        }
        loop {
            let list = |client: &Client| client.children(&self.path).watch().submit();
            let (epoch, answer) = self.asked(&mut position.herding, list).await;
            let (names, changed) = match answer {
                Ok(((names, _), changed)) => (names, changed),
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    return Err(AcquireError::NodeDeleted);
                }
                Err(error) => return Err(error.into()),
            };
            let listing = self.listing(names, position, epoch)?.ok_or(AcquireError::NodeDeleted)?;
            let listing = position.listing.insert(listing);
            if listing.ahead() == 0 {
                return Ok(());
            }
            // Of the others, one that stays is among the nearest in the end.
            let nearest = listing.nearest().iter().map(|entry| join(&self.path, &entry.name));
            let nearest = nearest.collect();
            let pause =
                self.settings.recheck.map_or(Duration::MAX, |pause| jitter(&position.node, pause));
            if let Ok(event) = self.unless_orphaned(nearest, timeout(pause, changed)).await? {
                event.map_err(AcquireError::SessionEnded)?;
            }
        }
    }
}
