//! The number of permits, the number of taken ones, and waiting for changes.

use std::time::Duration;

use tokio::{sync::watch, time::sleep};
use zk_client::{Client, Pending, ReadError, Rejection, Stat, Watch, WriteError, bytes::Bytes};

use super::Semaphore;
use crate::{error::AcquireError, follow::watched};

/// Reads of the leases in flight.
pub(super) struct Asked {
    leases: Pending<(Vec<String>, Stat), ReadError>,
    count: Option<Pending<(Bytes, Stat), ReadError>>,
}

/// The present state.
pub(super) struct Look {
    /// How many permits are taken; `None` if none ever was.
    pub(super) taken: Option<usize>,
    permits: u32,
    /// The version of the node that holds the number of permits.
    pub(super) version: Option<i32>,
}

/// The watches on the state.
pub(super) struct Watches {
    leases: Option<Watch>,
    count: Option<Watch>,
    /// Reports a change of the configured number.
    resized: watch::Receiver<u32>,
}

impl Look {
    /// Whether there is room for this many.
    pub(super) fn has_room(&self, wanted: usize) -> bool {
        let permits = usize::try_from(self.permits).unwrap_or(usize::MAX);
        self.taken.unwrap_or(0).saturating_add(wanted) <= permits
    }
}

impl Semaphore {
    /// Changes the number of permits: at the [node](Semaphore::counted_at) for all users, creating it if it is missing
    /// (but not its ancestors), or else for this value and its clones. Waiters are notified.
    ///
    /// Dropping the future does not stop a write that is under way. If servers throttle it, it may even come behind a later
    /// one: await what is to be the last.
    ///
    /// # Errors
    /// [`WriteError`] if the node cannot be written; never without a node.
    pub async fn resize(&self, permits: u32) -> Result<(), WriteError> {
        let Some(path) = &self.count else {
            self.permits.send_replace(permits);
            return Ok(());
        };
        let count = encoded(i32::try_from(permits).unwrap_or(i32::MAX));
        let client = &self.leases.client;
        loop {
            match client.set(path, &count).await {
                Err(WriteError::Rejected(Rejection::NoNode)) => {}
                written => return written.map(drop),
            }
            match client.create(path, &count).acl(&self.leases.settings.acl).await {
                Err(WriteError::Rejected(Rejection::NodeExists)) => {}
                created => return created.map(drop),
            }
        }
    }

    /// Submits the reads.
    pub(super) fn ask(&self, client: &Client) -> Asked {
        let leases = client.children(&self.leases.path).submit();
        let count = self.count.as_ref().map(|path| client.get(path).submit());
        Asked { leases, count }
    }

    pub(super) async fn answered(&self, asked: Asked) -> Result<Look, AcquireError> {
        let taken = match asked.leases.await {
            Ok((names, _)) => Some(names.len()),
            Err(ReadError::Rejected(Rejection::NoNode)) => None,
            Err(error) => return Err(error.into()),
        };
        let count = match asked.count {
            Some(count) => match count.await {
                Ok(count) => Some(count),
                Err(ReadError::Rejected(Rejection::NoNode)) => None,
                Err(error) => return Err(error.into()),
            },
            None => None,
        };
        self.look(taken, count)
    }

    fn look(
        &self,
        taken: Option<usize>,
        count: Option<(Bytes, Stat)>,
    ) -> Result<Look, AcquireError> {
        let Some((count, stat)) = count else {
            return Ok(Look { taken, permits: *self.permits.borrow(), version: None });
        };
        let path = self.count.as_deref().unwrap_or_default();
        let count = decoded(&count).ok_or_else(|| AcquireError::NotACount { path: path.into() })?;
        Ok(Look { taken, permits: u32::try_from(count).unwrap_or(0), version: Some(stat.version) })
    }

    /// Reads the state, and arms watches on everything that may matter.
    pub(super) async fn look_and_watch(&self) -> Result<(Look, Watches), AcquireError> {
        let resized = self.permits.subscribe();
        let client = &self.leases.client;
        let leases = client.children(&self.leases.path).watch().submit();
        let ask = |path| client.get(path).watch().submit();
        let asked = self.count.as_deref().map(|path| (path, ask(path)));
        let (taken, leases) = match leases.await {
            Ok(((names, _), watch)) => (Some(names.len()), Some(watch)),
            // No permit can be taken meanwhile.
            Err(ReadError::Rejected(Rejection::NoNode)) => (None, None),
            Err(error) => return Err(error.into()),
        };
        let (count, watch) = match asked {
            Some((path, asked)) => {
                let (count, watch) = watched(client, path, asked, || ask(path)).await?;
                (count, Some(watch))
            }
            None => (None, None),
        };
        Ok((self.look(taken, count)?, Watches { leases, count: watch, resized }))
    }

    /// Waits until something has changed, or it is time to look again anyway.
    pub(super) async fn changed(&self, watches: Watches) -> Result<(), AcquireError> {
        let Watches { leases, count, mut resized } = watches;
        let recheck = self.mutex.settings.recheck.unwrap_or(Duration::MAX);
        tokio::select! {
            biased;
            event = fired(leases) => event,
            event = fired(count) => event,
            // The sender lives as long as `self`.
            _ = resized.changed(), if self.count.is_none() => Ok(()),
            () = sleep(recheck) => Ok(()),
        }
    }
}

/// Waits for a watch; for ever, if there is none.
async fn fired(watch: Option<Watch>) -> Result<(), AcquireError> {
    match watch {
        Some(watch) => watch.await.map(drop).map_err(AcquireError::SessionEnded),
        None => std::future::pending().await,
    }
}

/// A count as four bytes, the most significant first.
fn encoded(count: i32) -> Vec<u8> {
    [24, 16, 8, 0].map(|shift| u8::try_from(count >> shift & 0xFF).unwrap_or_default()).to_vec()
}

fn decoded(bytes: &[u8]) -> Option<i32> {
    let [first, rest @ ..] = bytes else { return None };
    let sign = if *first < 0x80 { 0 } else { -1 };
    let count =
        rest.iter().fold(sign << 8 | i32::from(*first), |n, byte| n << 8 | i32::from(*byte));
    (bytes.len() == 4).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_four_bytes_big_endian() {
        for (count, bytes) in
            [(3, [0, 0, 0, 3]), (-2, [255, 255, 255, 254]), (i32::MAX, [127, 255, 255, 255])]
        {
            assert_eq!((encoded(count), decoded(&bytes)), (bytes.to_vec(), Some(count)));
        }
        assert_eq!(decoded(b""), None);
        assert_eq!(decoded(b"127.0.0.1"), None);
    }
}
