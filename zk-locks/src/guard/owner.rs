//! A guard's part of its node.

use std::{
    future::{Future, ready},
    sync::Arc,
};

use zk_client::{Client, OwnedNode, SessionState, WriteError};

use super::{Held, node::HeldNode, owned::Owned};
use crate::error::ReleaseError;

/// Dropping it deletes the node.
#[derive(Debug)]
pub(super) struct Owner(Arc<HeldNode>);

impl Owner {
    /// Of a node, or without one if a failed trade has used it up.
    pub(super) fn new(held: &Held, node: Option<OwnedNode>) -> Self {
        held.node.owned.put(node);
        Self(held.node.clone())
    }

    /// Lends the node for a trade, unless it has been given away or used up.
    pub(super) fn lend(&self) -> Option<OwnedNode> {
        self.0.owned.lend()
    }

    /// The node was deleted by a transaction.
    pub(super) fn forget(self) {
        if let Owned::Node(node) = self.0.owned.take() {
            node.forget();
        }
    }

    /// Deletes the node, and waits until it is gone. Under way when this returns the future.
    pub(super) fn delete(
        self,
    ) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static + use<> {
        let (deleted, given_away) = match self.0.owned.take() {
            Owned::Node(node) => (Some(node.delete()), None),
            Owned::GivenAway(deletion) => (None, Some((deletion, self.0.clone()))),
            Owned::Nothing => (None, None),
        };
        async move {
            match (deleted, given_away) {
                (Some(deleted), _) => deleted.await.map_err(ReleaseError::from),
                (None, Some((deletion, node))) => match deletion.done().await {
                    Err(WriteError::Rejected(_)) => still_refused(&node.client, &node.path).await,
                    deleted => deleted.map_err(ReleaseError::from),
                },
                (None, None) => Ok(()),
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Not under the lock.
        drop(self.0.owned.take());
    }
}

/// What has become of a delete that was refused some time ago.
async fn still_refused(client: &Client, path: &str) -> Result<(), ReleaseError> {
    tokio::select! {
        biased;
        rejection = client.orphaned(path) => {
            Err(ReleaseError::Refused(WriteError::Rejected(rejection)))
        }
        () = ready(()) => match client.session().state() {
            SessionState::Ended(end) => Err(ReleaseError::SessionEnded(end)),
            _ => Ok(()),
        },
    }
}
