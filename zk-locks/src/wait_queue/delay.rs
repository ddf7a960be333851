//! A pause after holders that have not released the lock themselves.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use zk_client::{CreateMode, ReadError, Rejection, Zxid};

use super::{
    Position, WaitQueue,
    asked::Asked,
    previous_holder::{LookingBack, PreviousHolder},
};
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
    /// Waits until the place at the head of the queue may be used; `false` if it is not at the head any more. Can be
    /// dropped and called again.
    pub(super) async fn wait_out_lock_delay(
        &self,
        position: &mut Position,
    ) -> Result<bool, AcquireError> {
        while let Some(begins) = self.begins(position).await? {
            tokio::select! {
                biased;
                () = sleep_until(begins) => break,
                // The delay may be long: the place, or the session, may be gone before it is over.
                stayed = self.stay(position) => stayed?,
            }
            if !self.is_at_the_head(position).await? {
                return Ok(false);
            }
        }
        self.has_begun(position).await
    }

    /// Whether the place at the head of the queue may be used already, and still is there.
    pub(super) async fn has_begun(&self, position: &mut Position) -> Result<bool, AcquireError> {
        let Some(begins) = self.begins(position).await? else { return Ok(true) };
        if Instant::now() < begins {
            return Ok(false);
        }
        // Our node was not watched meanwhile: it may have been deleted, or another may have come ahead of it.
        if let Some(previous) = position.previous.as_mut().filter(|it| !it.is_settled) {
            previous.is_settled = true;
            position.forget();
        }
        let is_first = self.is_at_the_head(position).await?;
        if let Some(previous) = &mut position.previous {
            previous.is_settled = false;
            previous.begins = previous.begins.filter(|_| !is_first);
        }
        Ok(is_first)
    }

    /// The time from which on the place may be used; `None` if it may be used, without another look.
    async fn begins(&self, position: &mut Position) -> Result<Option<Instant>, AcquireError> {
        let Some(delay) = self.settings.lock_delay else { return Ok(None) };
        if position.previous.is_none() {
            // Rare, and large.
            let previous = Box::pin(self.previous(position, delay)).await;
            position.looking_back = None;
            position.previous = Some(previous?);
        }
        Ok(position.previous.as_ref().and_then(|previous| previous.begins))
    }

    /// Finds out whether the previous contender has released the lock: the one with the number before ours, if it was
    /// the last to record a release. Contenders that gave up, or that write no records, are missing there.
    async fn previous(
        &self,
        position: &mut Position,
        delay: Duration,
    ) -> Result<PreviousHolder, AcquireError> {
        let sequence = position.entry.sequence;
        let looking_back = position.looking_back.get_or_insert_with(|| Box::new(self.look_back()));
        let path = looking_back.path.answer().await?;
        let incarnation = path.ok_or(AcquireError::NodeDeleted)?.czxid;
        let is_clean = match looking_back.record.answer().await {
            Ok((last, _)) => *last == *record(incarnation, sequence.wrapping_sub(1)).as_bytes(),
            Err(ReadError::Rejected(Rejection::NoNode)) => {
                let path = record_path(&self.path);
                let create = || self.creating(&path, b"", CreateMode::Persistent).submit();
                let created = looking_back.creating.get_or_insert_with(create).await;
                created.map_err(|error| self.refused(error))?;
                sequence == 0
            }
            Err(error) => return Err(error.into()),
        };
        let begins = (!is_clean).then(|| Instant::now() + delay.min(DELAY_MAX));
        if begins.is_some() {
            tracing::info!(path = self.path, ?delay, "not released by the one before: waiting");
        }
        Ok(PreviousHolder { incarnation, begins, is_settled: false })
    }

    fn look_back(&self) -> LookingBack {
        let cork = self.client.cork();
        let path = Asked::UnderWay(cork.exists(&self.path).submit());
        let record = Asked::UnderWay(cork.get(&record_path(&self.path)).submit());
        LookingBack { path, record, creating: None }
    }

    /// Makes the node for records, unless it is there. Without it a contender with the number 0 takes itself for the first
    /// one that there was: so it has to be there before a path is recreated.
    pub(super) async fn ensure_release_record(&self) -> Result<(), AcquireError> {
        self.ensure(&record_path(&self.path), b"", CreateMode::Persistent).await.map(drop)
    }

    /// The record that the holder of a place writes when it releases the lock.
    pub(crate) fn release_record(&self, position: &Position) -> Option<Box<ReleaseRecord>> {
        let PreviousHolder { incarnation, .. } = position.previous.as_ref()?;
        let record = record(*incarnation, position.entry.sequence);
        Some(Box::new(ReleaseRecord { path: record_path(&self.path), record }))
    }
}
