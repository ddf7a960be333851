//! Releases that are recorded for the next contender.

use tokio::sync::oneshot;
use tokio_util::either::Either;
use zk_client::{MultiError, OpResult, Pending, Rejection, SessionEnd, SessionState, WriteError};

use super::{Held, Status, owner::Owner};
use crate::{error::ReleaseError, wait_queue::ReleaseRecord};

type Submitted = Pending<Result<Vec<OpResult>, MultiError>, WriteError>;

/// Deletes the node of a lock, whose release is recorded if there is a record. Under way when this returns the future; dropping
/// that does not stop it.
pub(super) fn delete(
    node: Owner,
    held: &Held,
    record: Option<Box<ReleaseRecord>>,
) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static + use<> {
    let Some(recorded) = record.and_then(|record| submitted(held, &record)) else {
        return Either::Left(node.delete());
    };
    let (done, deleted) = oneshot::channel();
    // The session is not left, nor closed, before that.
    let client = held.client().for_cleanup();
    let has_shared_name = held.has_shared_name();
    // A task of its own, so that it goes on whether it is waited for or not.
    held.client().spawn(async move {
        let released = deleted_behind(recorded, node, has_shared_name).await;
        drop((done.send(released), client));
    });
    let session = held.client().session();
    Either::Right(async move {
        // Without a runtime the session is over, and the node with it.
        deleted.await.unwrap_or_else(|_| {
            Err(ReleaseError::SessionEnded(match session.state() {
                SessionState::Ended(end) => end,
                _ => SessionEnd::Closed,
            }))
        })
    })
}

/// Submits the record of a release.
fn submitted(held: &Held, ReleaseRecord { path, record }: &ReleaseRecord) -> Option<Submitted> {
    let multi = held.client().multi();
    let multi = match (held.has_shared_name(), held.status()) {
        (false, _) => multi.delete(held.path()),
        // It would replace that of a later holder.
        (true, Status::Lost(_)) => return None,
        // The node of this name may be another contender's: only the delete that follows looks first. What is recorded is
        // true without it; if it replaces a later record after all, the next contender waits without need.
        (true, Status::Held | Status::Suspect { .. }) => multi,
    };
    Some(multi.set(path, record.as_bytes()).submit())
}

/// Deletes the node behind the answer to the record: one that has to be written again must find the node.
async fn deleted_behind(
    recorded: Submitted,
    node: Owner,
    has_shared_name: bool,
) -> Result<(), ReleaseError> {
    match recorded.await {
        // It has deleted the node, unless others use its name.
        Ok(Ok(_)) if !has_shared_name => {
            node.forget();
            return Ok(());
        }
        // Without a node there is nothing to record.
        Ok(Ok(_) | Err(MultiError { rejection: Rejection::NoNode, .. })) | Err(_) => {}
        Ok(Err(error)) => tracing::warn!(%error, "release not recorded"),
    }
    // Makes sure that the node goes even if it could not be recorded.
    node.delete().await
}
