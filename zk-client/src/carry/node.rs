//! Nodes that are deleted when their owner is dropped.

use std::{fmt, sync::Arc};

use tokio::sync::oneshot;
use zk_proto::{Stat, path};

use crate::{
    carry::{
        guaranteed_delete::{DeleteSink, GuaranteedDelete},
        lease_keeper::LeaseKeeper,
    },
    chroot::Chroot,
    error::{Cause, WriteError},
};

/// An ephemeral node made by a protected create; it is deleted when this value is dropped.
///
/// The session carries out the delete: no caller has to wait for it, it is repeated over lost connections, and it is
/// given up only with the session, whose end removes the node. The value keeps the session alive.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use zk_client::CreateMode;
///
/// let created = zk.create("/here", b"").mode(CreateMode::Ephemeral).protected().await?;
/// let here = created.owned.expect("a protected node has an owner");
/// assert!(zk.exists(here.path()).await?.is_some());
///
/// // Waits until the node is gone; dropping it deletes the node in the background.
/// let path = here.path().to_owned();
/// here.delete().await?;
/// assert!(zk.exists(&path).await?.is_none());
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it deletes the node"]
pub struct OwnedNode {
    pub(crate) absolute: Arc<str>,
    pub(crate) stat: Stat,
    pub(crate) sequence: Option<i32>,
    /// Whether other clients have nodes of this name too, one at a time.
    pub(crate) is_shared: bool,
    pub(crate) chroot: Chroot,
    /// `None` once the delete has been submitted.
    pub(crate) delete_sink: Option<Arc<dyn DeleteSink>>,
    /// An owned node needs a confirmed lease.
    pub(crate) lease: LeaseKeeper,
}

/// A node that is not deleted when this value is dropped.
#[derive(Debug)]
pub(crate) struct DetachedNode {
    pub(crate) absolute: Arc<str>,
    pub(crate) stat: Stat,
    pub(crate) sequence: Option<i32>,
    pub(crate) is_shared: bool,
}

impl OwnedNode {
    /// Returns the node's path, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        self.chroot.relative(&self.absolute)
    }

    /// Returns the last component of the path, with its sequence number.
    #[must_use]
    pub fn name(&self) -> &str {
        path::name(&self.absolute)
    }

    /// Returns the node's metadata as of its creation or, after a lost reply, of when it was found. From servers before
    /// 3.5 only the transactions, the owner and the length are known.
    #[must_use]
    pub const fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Returns the sequence number that the server has appended to the name, if it was asked to.
    #[must_use]
    pub const fn sequence(&self) -> Option<i32> {
        self.sequence
    }

    /// Deletes the node and waits until it is certainly gone. Succeeds if it was gone already.
    ///
    /// The delete is submitted before this returns the future: dropping the future does not stop it.
    ///
    /// # Errors
    /// [`WriteError::Rejected`] if the server refuses. The session retries when permissions may have changed, and
    /// periodically; [`Session::orphans`](crate::Session::orphans) counts the node until it is gone. Otherwise the
    /// session has ended, and the node goes when the servers notice.
    pub fn delete(mut self) -> impl Future<Output = Result<(), WriteError>> + Send + 'static {
        let (done, deleted) = oneshot::channel();
        self.sweep(Some(done));
        let known = self.lease.known().clone();
        async move {
            // Without a driver there is no reply.
            let over = || Cause::SessionEnded(known.board.get().end());
            deleted.await.unwrap_or_else(|_| Err(WriteError::NotApplied(over())))
        }
    }

    /// Gives the node up without a request, because it is gone: the caller has deleted it in a transaction.
    ///
    /// One that is still there stays as long as the session.
    pub fn forget(mut self) {
        self.delete_sink = None;
    }

    /// Leaves the delete to the caller.
    pub(crate) fn detach_node(mut self) -> DetachedNode {
        self.delete_sink = None;
        let Self { ref absolute, stat, sequence, is_shared, .. } = self;
        DetachedNode { absolute: absolute.clone(), stat, sequence, is_shared }
    }

    /// Submits the delete, once.
    fn sweep(&mut self, done: Option<oneshot::Sender<Result<(), WriteError>>>) {
        let Some(delete_sink) = self.delete_sink.take() else { return };
        // Before the driver has it: that may be a while, behind requests that wait for room.
        self.lease.known().sweeps.begun();
        delete_sink.sweep(deletion(&self.absolute, &self.stat, self.is_shared, done));
    }
}

impl DetachedNode {
    /// The delete of a node that nobody owns any more.
    pub(crate) fn deletion(&self) -> GuaranteedDelete {
        deletion(&self.absolute, &self.stat, self.is_shared, None)
    }
}

fn deletion(
    absolute: &Arc<str>,
    stat: &Stat,
    is_shared: bool,
    done: Option<oneshot::Sender<Result<(), WriteError>>>,
) -> GuaranteedDelete {
    let deletion = GuaranteedDelete::new(absolute.clone(), done);
    if is_shared { deletion.only(stat.czxid) } else { deletion }
}

impl Drop for OwnedNode {
    fn drop(&mut self) {
        self.sweep(None);
    }
}

impl fmt::Debug for OwnedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedNode")
            .field("path", &self.path())
            .field("czxid", &self.stat.czxid)
            .finish_non_exhaustive()
    }
}
