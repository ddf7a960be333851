//! A pause after holders that have not released the lock themselves.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use zk_client::{CreateMode, ReadError, Rejection, Zxid};

use super::{Line, Place, term::Term};
use crate::error::AcquireError;

/// Practically for ever, without overflow.
const DELAY_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The record to write on release, and its path.
#[derive(Debug)]
pub(crate) struct SignOff {
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

impl Line {
    /// Waits until the place at the head of the queue may be used. Can be dropped and called again.
    pub(crate) async fn sit_out(&self, place: &mut Place) -> Result<(), AcquireError> {
        while !self.has_begun(place).await? {
            if let Some(Term { begins: Some(begins), .. }) = place.term {
                sleep_until(begins).await;
            }
        }
        Ok(())
    }

    /// Whether the place at the head of the queue may be used already.
    pub(super) async fn has_begun(&self, place: &mut Place) -> Result<bool, AcquireError> {
        let Some(delay) = self.settings.lock_delay else { return Ok(true) };
        let term = match &mut place.term {
            Some(term) => term,
            None => {
                let term = self.term(place.entry.sequence, delay).await?;
                place.term.insert(term)
            }
        };
        match term.begins {
            None => return Ok(true),
            Some(begins) if Instant::now() < begins => return Ok(false),
            Some(_) => term.begins = None,
        }
        // Our node was not watched meanwhile, and may have been deleted.
        place.forget();
        Ok(self.look(place).await?.ahead() == 0)
    }

    /// Finds out whether the previous contender has released the lock: the one with the number before ours, if it was
    /// the last to record a release. Contenders that gave up, or that write no records, are missing there.
    async fn term(&self, sequence: i32, delay: Duration) -> Result<Term, AcquireError> {
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
        Ok(Term { incarnation, begins })
    }

    /// The record that the holder of a place writes when it releases the lock.
    pub(crate) fn sign_off(&self, place: &Place) -> Option<Box<SignOff>> {
        let Term { incarnation, .. } = place.term.as_ref()?;
        let record = record(*incarnation, place.entry.sequence);
        Some(Box::new(SignOff { path: record_path(&self.path), record }))
    }
}
