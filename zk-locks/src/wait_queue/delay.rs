//! A pause after holders that have not released the lock themselves.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use zk_client::{CreateMode, ReadError, Rejection, Zxid};

use super::{Position, WaitQueue, previous_holder::PreviousHolder};
use crate::error::AcquireError;

/// Practically for ever, without overflow.
const DELAY_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The record to write on release, and its path.
#[derive(Debug)]
pub(crate) struct ReleaseRecord {
    pub(crate) path: String,
    pub(crate) record: String,
}

/// The node that records who released the lock last: beside the path, because any child of the path counts as a
/// contender.
fn record_path(path: &str) -> String {
    format!("{path}.released")
}

fn record(incarnation: Zxid, sequence: i32) -> String {
    format!("{} {sequence}", incarnation.0)
}

impl WaitQueue {
    /// Waits until the place at the head of the queue may be used. Can be dropped and called again.
    pub(crate) async fn wait_out_lock_delay(
        &self,
        position: &mut Position,
    ) -> Result<(), AcquireError> {
        while !self.has_begun(position).await? {
            if let Some(PreviousHolder { begins: Some(begins), .. }) = position.previous {
                sleep_until(begins).await;
            }
        }
        Ok(())
    }

    /// Whether the place at the head of the queue may be used already.
    pub(super) async fn has_begun(&self, position: &mut Position) -> Result<bool, AcquireError> {
        let Some(delay) = self.settings.lock_delay else { return Ok(true) };
        let previous = match &mut position.previous {
            Some(previous) => previous,
            None => {
                let previous = self.previous(position.entry.sequence, delay).await?;
                position.previous.insert(previous)
            }
        };
        match previous.begins {
            None => return Ok(true),
            Some(begins) if Instant::now() < begins => return Ok(false),
            Some(_) => previous.begins = None,
        }
        // Our node was not watched meanwhile, and may have been deleted.
        position.forget();
        Ok(self.look(position).await?.ahead() == 0)
    }

    /// Finds out whether the previous contender has released the lock: the one with the number before ours, if it was
    /// the last to record a release. Contenders that gave up, or that write no records, are missing there.
    async fn previous(
        &self,
        sequence: i32,
        delay: Duration,
    ) -> Result<PreviousHolder, AcquireError> {
        let record_path = record_path(&self.path);
        let cork = self.client.cork();
        let path = cork.exists(&self.path).submit();
        let last = cork.get(&record_path).submit();
        drop(cork);
        let incarnation = path.await?.ok_or(AcquireError::NodeDeleted)?.czxid;
        let is_clean = match last.await {
            Ok((last, _)) => *last == *record(incarnation, sequence.wrapping_sub(1)).as_bytes(),
            Err(ReadError::Rejected(Rejection::NoNode)) => {
                self.ensure(&record_path, b"", CreateMode::Persistent).await?;
                sequence == 0
            }
            Err(error) => return Err(error.into()),
        };
        let begins = (!is_clean).then(|| Instant::now() + delay.min(DELAY_MAX));
        if begins.is_some() {
            tracing::info!(path = self.path, ?delay, "not released by the one before: waiting");
        }
        Ok(PreviousHolder { incarnation, begins })
    }

    /// The record that the holder of a place writes when it releases the lock.
    pub(crate) fn release_record(&self, position: &Position) -> Option<Box<ReleaseRecord>> {
        let PreviousHolder { incarnation, .. } = position.previous.as_ref()?;
        let record = record(*incarnation, position.entry.sequence);
        Some(Box::new(ReleaseRecord { path: record_path(&self.path), record }))
    }
}
