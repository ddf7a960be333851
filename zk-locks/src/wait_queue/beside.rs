//! Nodes under the path, or at it, that have no place in the queue.

use zk_client::{Cause, Client, Create, CreateMode, OwnedNode, WriteError, path::join};

use super::WaitQueue;
use crate::error::AcquireError;

impl WaitQueue {
    /// Creates an ephemeral node under the path, which is created where it is missing. The name contains a unique id.
    /// Requests that `behind` submits follow the create in the same write.
    pub(crate) async fn plant<T>(
        &self,
        name: &str,
        mode: CreateMode,
        data: &[u8],
        behind: impl Fn(&Client) -> T,
    ) -> Result<(OwnedNode, T), AcquireError> {
        self.check_path()?;
        let path = join(&self.path, name);
        let create = self.create(&self.client, &path, data).mode(mode).protected_by_its_name();
        let (node, behind) =
            create.followed_by(behind).await.map_err(|error| self.refused(error))?;
        Ok((node.owned.ok_or(AcquireError::NodeDeleted)?, behind))
    }

    /// Makes sure that a node with exactly this name exists, and everything above it. Returns whether this call created
    /// it, as far as is known.
    pub(crate) async fn ensure(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
    ) -> Result<bool, AcquireError> {
        let created = self.creating(path, data, mode).await;
        Ok(!created.map_err(|error| self.refused(error))?.existed)
    }

    /// As [`ensure`](Self::ensure), to be submitted.
    pub(super) fn creating<'a>(
        &'a self,
        path: &'a str,
        data: &'a [u8],
        mode: CreateMode,
    ) -> Create<'a> {
        self.create(&self.client, path, data).mode(mode).or_exists()
    }

    /// For writes that may be repeated: returns when it is certain that the one with this error will not take effect
    /// any more.
    ///
    /// # Errors
    /// The error, if repeating the write is no use.
    pub(crate) async fn may_try_again(&self, error: WriteError) -> Result<(), AcquireError> {
        match error {
            WriteError::InDoubt { cause: Cause::Disconnected(_), .. } => {
                self.client.resolve_in_doubt().await?;
                Ok(())
            }
            error => Err(self.refused(error)),
        }
    }
}
