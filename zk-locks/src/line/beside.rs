//! Nodes under the path, or at it, that have no place in the queue.

use tokio::time::sleep;
use zk_client::{
    Cause, Client, CreateMode, InDoubt, OwnedNode, Rejection, WriteError, join, parent,
};

use super::{Line, THROTTLE_PAUSE, join::PARENT_TRIES};
use crate::error::AcquireError;

impl Line {
    /// Creates an ephemeral node under the path, which is created where it is missing. The name contains a
    /// unique id. What `behind` submits leaves behind the create, in the same write.
    pub(crate) async fn plant<T>(
        &self,
        name: &str,
        mode: CreateMode,
        data: &[u8],
        behind: impl Fn(&Client) -> T,
    ) -> Result<(OwnedNode, T), AcquireError> {
        let path = join(&self.path, name);
        let mut with_parents = false;
        let mut tries = PARENT_TRIES;
        loop {
            let cork = self.client.cork();
            let parents = if with_parents { self.create_parents(&cork) } else { Vec::new() };
            let create = cork.create(&path, data).mode(mode).acl(&self.settings.acl);
            let create = create.protected_by_its_name().submit();
            let submitted = behind(&cork);
            drop(cork);

            let refusal = self.parents_refused(parents).await;
            match create.await {
                Ok(node) => return Ok((node, submitted)),
                Err(WriteError::Rejected(Rejection::NoNode)) if tries > 0 => {
                    if let Some(refusal) = refusal {
                        return Err(refusal.into());
                    }
                    with_parents = true;
                    tries -= 1;
                }
                Err(WriteError::NotApplied(Cause::Throttled)) => sleep(THROTTLE_PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sees to it that there is a node with this very name, whoever makes it, and everything above it. Returns
    /// whether this has made it, as far as that is known.
    pub(crate) async fn ensure(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
    ) -> Result<bool, AcquireError> {
        let mut with_parents = false;
        let mut tries = PARENT_TRIES;
        loop {
            let cork = self.client.cork();
            let above = parent(path).filter(|_| with_parents);
            let parents = above.map_or_else(Vec::new, |above| self.create_levels(&cork, above));
            let create = cork.create(path, data).mode(mode).acl(&self.settings.acl).submit();
            drop(cork);

            let refusal = self.parents_refused(parents).await;
            match create.await {
                Ok(_) => return Ok(true),
                Err(WriteError::Rejected(Rejection::NodeExists)) => return Ok(false),
                Err(WriteError::Rejected(Rejection::NoNode)) if tries > 0 => {
                    if let Some(refusal) = refusal {
                        return Err(refusal.into());
                    }
                    with_parents = true;
                    tries -= 1;
                }
                Err(error) => self.may_try_again(error).await?,
            }
        }
    }

    /// For writes that may be repeated: returns when it is certain that the one with this error does not
    /// happen any more.
    ///
    /// # Errors
    /// The error, if repeating the write is no use.
    pub(crate) async fn may_try_again(&self, error: WriteError) -> Result<(), AcquireError> {
        match error {
            WriteError::NotApplied(Cause::Throttled) => sleep(THROTTLE_PAUSE).await,
            WriteError::NotApplied(Cause::Disconnected(_))
            | WriteError::InDoubt(InDoubt { cause: Cause::Disconnected(_), .. }) => {
                self.client.settle().await?;
            }
            error => return Err(error.into()),
        }
        Ok(())
    }
}
