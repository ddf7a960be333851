//! Recreating a path before its sequence numbers end.

use std::time::Duration;

use tokio::time::timeout;
use zk_client::{OwnedNode, ReadError, Rejection, WriteError};

use super::WaitQueue;
use crate::error::AcquireError;

/// How long to wait for the path to become empty.
const PATIENCE: Duration = Duration::from_secs(30);

impl WaitQueue {
    /// Whether a node's number is so large (or has wrapped) that the path should be recreated. Never for a path that
    /// may not be created.
    pub(super) fn is_near_overflow(&self, node: &OwnedNode) -> bool {
        self.may_create(&self.path)
            && node.sequence().is_some_and(|number| number < 0 || number >= self.settings.rotate_at)
    }

    /// Whether any of these nodes has such a number.
    pub(super) fn are_near_overflow(wait_queues: &[&Self], nodes: &[OwnedNode]) -> bool {
        wait_queues.iter().zip(nodes).any(|(wait_queue, node)| wait_queue.is_near_overflow(node))
    }

    /// Leaves the queue, waits until all others have, and deletes the path, if that happens in time.
    ///
    /// Only an empty path can be deleted, so no contender in the old queue is ever missed by one in the new. A
    /// contender with a smaller number stays, and is served before.
    pub(super) async fn rotate(&self, node: OwnedNode) -> Result<(), AcquireError> {
        node.delete().await?;
        self.renew().await
    }

    /// As [`rotate`](Self::rotate), for those of several queues whose numbers run out. All queues are left first: a
    /// contender that stayed in one while it waits for another to become empty could deadlock with one that does the
    /// opposite.
    pub(super) async fn rotate_all(
        wait_queues: &[&Self],
        nodes: Vec<OwnedNode>,
    ) -> Result<(), AcquireError> {
        let is_near_overflow: Vec<bool> = wait_queues
            .iter()
            .zip(&nodes)
            .map(|(wait_queue, node)| wait_queue.is_near_overflow(node))
            .collect();
        let left: Vec<_> = nodes.into_iter().map(OwnedNode::delete).collect();
        for left in left {
            left.await?;
        }
        for (wait_queue, _) in wait_queues
            .iter()
            .zip(is_near_overflow)
            .filter(|(_, is_near_overflow)| *is_near_overflow)
        {
            wait_queue.renew().await?;
        }
        Ok(())
    }

    /// Waits until all contenders have left the queue, and deletes the path.
    async fn renew(&self) -> Result<(), AcquireError> {
        tracing::info!(path = self.path, "making the path anew");
        if self.settings.lock_delay.is_some() {
            self.ensure_release_record().await?;
        }
        match timeout(PATIENCE, self.delete_when_empty()).await {
            Ok(rotated) => rotated,
            Err(_) => {
                tracing::warn!(path = self.path, "the path does not get empty");
                Ok(())
            }
        }
    }

    async fn delete_when_empty(&self) -> Result<(), AcquireError> {
        loop {
            let ((names, _), changed) = match self.client.children(&self.path).watch().await {
                Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(()),
                children => children?,
            };
            if !names.is_empty() {
                changed.await.map_err(AcquireError::SessionEnded)?;
                continue;
            }
            match self.client.delete(&self.path).await {
                Ok(()) | Err(WriteError::Rejected(Rejection::NoNode)) => return Ok(()),
                // A contender has joined, or the outcome is unknown: look again.
                Err(WriteError::Rejected(Rejection::NotEmpty) | WriteError::InDoubt { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
