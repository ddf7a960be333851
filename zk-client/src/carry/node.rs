//! Nodes that go when their owner goes.

use std::{fmt, sync::Arc};

use tokio::sync::{oneshot, watch};
use zk_proto::{Stat, path};

use crate::{
    carry::{
        lease::LeaseKeeper,
        published::Published,
        sweep::{Sweep, Sweeper},
    },
    chroot::Chroot,
    error::{Cause, WriteError},
};

/// An ephemeral node made by a protected create: it is deleted when this value goes.
///
/// The delete is carried out by the session: nobody need wait for it, it is repeated over lost
/// connections, and it is given up only with the session, which takes the node with it. The value keeps
/// the session alive.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use zk_client::CreateMode;
///
/// let here = zk.create("/here", b"").mode(CreateMode::Ephemeral).protected().await?;
/// assert!(zk.exists(here.path()).await?.is_some());
///
/// // To be sure that it is gone; dropping it does the same in the background.
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
    /// Whether others have nodes of this name too, one at a time.
    pub(crate) is_shared: bool,
    pub(crate) chroot: Chroot,
    /// `None` once the delete has been submitted.
    pub(crate) sweeper: Option<Arc<dyn Sweeper>>,
    pub(crate) published: watch::Receiver<Published>,
    /// Whoever owns a node relies on its being there.
    pub(crate) _lease: LeaseKeeper,
}

/// A node that is somebody's without being deleted when this goes.
#[derive(Debug)]
pub(crate) struct Disowned {
    pub(crate) absolute: Arc<str>,
    pub(crate) stat: Stat,
    pub(crate) sequence: Option<i32>,
    pub(crate) is_shared: bool,
}

impl OwnedNode {
    /// The node's path, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        self.chroot.relative(&self.absolute)
    }

    /// The last component of the path, with its sequence number.
    #[must_use]
    pub fn name(&self) -> &str {
        path::name(&self.absolute)
    }

    /// The node as it was when it was created or, after a lost reply, found. From servers before 3.5 only
    /// the transactions, the owner and the length are known.
    #[must_use]
    pub const fn stat(&self) -> &Stat {
        &self.stat
    }

    /// The number that the server has put behind the name, if it was asked to.
    #[must_use]
    pub const fn sequence(&self) -> Option<i32> {
        self.sequence
    }

    /// Deletes the node and waits until it is certainly gone. It is also fine if it was gone already.
    ///
    /// The delete is under way when this returns the future: dropping the future does not stop it.
    ///
    /// # Errors
    /// [`WriteError::Rejected`] if the server refuses. The session tries again when permissions may have changed, and
    /// now and then; [`Session::orphans`](crate::Session::orphans) counts the node until it is gone. Otherwise the
    /// session has ended, and the node goes when the servers notice.
    pub fn delete(mut self) -> impl Future<Output = Result<(), WriteError>> + Send + 'static {
        let (done, deleted) = oneshot::channel();
        self.sweep(Some(done));
        let published = self.published.clone();
        async move {
            // Without a driver nobody answers.
            let over = || Cause::SessionEnded(published.borrow().end());
            deleted.await.unwrap_or_else(|_| Err(WriteError::NotApplied(over())))
        }
    }

    /// Leaves the delete to somebody else.
    pub(crate) fn disown(mut self) -> Disowned {
        self.sweeper = None;
        let Self { ref absolute, stat, sequence, is_shared, .. } = self;
        Disowned { absolute: absolute.clone(), stat, sequence, is_shared }
    }

    /// Submits the delete, once.
    fn sweep(&mut self, done: Option<oneshot::Sender<Result<(), WriteError>>>) {
        let Some(sweeper) = self.sweeper.take() else { return };
        let mut sweep = Sweep::new(self.absolute.clone(), done);
        if self.is_shared {
            sweep = sweep.only(self.stat.czxid);
        }
        sweeper.sweep(sweep);
    }
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
