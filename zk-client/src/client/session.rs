//! The session of a client: views of it, waiting for what is under way, and its end.

use super::error::CloseError;
use std::time::Duration;

use tokio::sync::oneshot;
use zk_proto::{Zxid, path::Naming, session::Credentials};

use crate::{
    carry::{lease::LeaseKeeper, session::Session},
    driver::command::Command,
    error::{ReadError, Rejection, SessionEnd},
    request::{client::Client, operations::LeaderSync},
};

impl Client {
    /// A view of the session: where it stands, and how long it is sure to last.
    #[must_use]
    pub fn session(&self) -> Session {
        self.handle.shared.session.renewed()
    }

    /// Has the session's [lease](Session::lease_left) confirmed by the leader until the returned value is dropped: for
    /// those who hold something that is none of this crate's [nodes](crate::OwnedNode), which see to it
    /// themselves.
    ///
    /// What has been confirmed so far counts, such as by the answer to a create. It is 0 if that was too long ago, until
    /// the leader is heard of.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::CreateMode;
    ///
    /// zk.create("/seat", b"").mode(CreateMode::Ephemeral).await?;
    /// let kept = zk.keep_lease();
    /// // Nobody else can have the seat for so long, whatever happens.
    /// assert!(!zk.session().lease_left().is_zero());
    /// drop(kept);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_lease(&self) -> LeaseKeeper {
        LeaseKeeper::new(self.handle.shared.session.lease())
    }

    /// Waits until servers refuse to delete a node of this session that nobody owns any more; resolves at once if they do
    /// already. It stays until they let it go: see [`Session::orphans`].
    pub async fn orphaned(&self, path: &str) -> Rejection {
        match self.handle.chroot.resolve(path, Naming::Exact) {
            Ok(absolute) => {
                self.handle.shared.session.sweeps().until_refused(&absolute).await.into()
            }
            // There is none.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits until no write of this session that is in doubt can happen any more: until the same session
    /// is connected (again) and a `sync` sent after that has been answered. A read submitted after this has
    /// returned is conclusive about them.
    ///
    /// # Errors
    /// [`ReadError`] if the session ends before that, or if the server does not do `sync` (a read-only one
    /// does not).
    pub async fn settle(&self) -> Result<Zxid, ReadError> {
        LeaderSync::new(self.target(), "/").for_zxid().await
    }

    /// Ends the session: its ephemeral nodes go, its watches resolve with [`SessionEnd::Closed`], and
    /// nothing can be submitted any more, by any clone. Requests submitted before are sent first. Before a
    /// server hears of it the state is [`Closing`](crate::SessionState::Closing), and no lock of the session counts
    /// as held any more.
    ///
    /// This is what to wait for at the end of a program: it takes along all that is under way in the background. Locks whose
    /// guards have been dropped are free when it returns, as are nodes whose [owners](crate::OwnedNode) have gone, and
    /// those are waited for who [give something back](Client::for_cleanup). Where a program just ends, nothing of that
    /// may have left it, and locks stay until the session expires.
    ///
    /// Returns once a server has confirmed, or after two seconds if none can be reached; the session then
    /// ends by itself when it expires. A connection that is lost meanwhile is made again. Closing twice is fine.
    /// Dropping the future does not stop it once it has been polled.
    ///
    /// # Errors
    /// [`CloseError`] if no server has confirmed.
    pub async fn close(&self) -> Result<(), CloseError> {
        self.end(None).await
    }

    /// As [`close`](Client::close), for as long as this if no server can be reached. After the
    /// [session timeout](Session::timeout) there is nothing left to be closed.
    ///
    /// # Errors
    /// [`CloseError`] if no server has confirmed.
    pub async fn close_within(&self, limit: Duration) -> Result<(), CloseError> {
        self.end(Some(limit)).await
    }

    async fn end(&self, limit: Option<Duration>) -> Result<(), CloseError> {
        let (done, closed) = oneshot::channel();
        if self.handle.shared.commands.send(Command::Close(done, limit)).is_ok() {
            // Whatever it says, the session ends.
            let _ = closed.await;
        }
        match self.handle.shared.session.ended().await {
            SessionEnd::Closed if self.handle.shared.session.is_close_confirmed() => Ok(()),
            SessionEnd::Closed => Err(CloseError::Unconfirmed),
            end => Err(CloseError::Ended(end)),
        }
    }

    /// Leaves the session without ending it, for another client to [resume](crate::ConnectOptions::resume): its
    /// ephemeral nodes stay as long as servers keep it. `None` if there is no session to leave.
    ///
    /// Ends all clones: what is submitted from now on is refused, and what is under way ends as if the session
    /// were closed, though what was sent may still be carried out. Only what must not be left to nobody is
    /// done first, however long that takes: [protected creates](crate::Create::protected) come to their end,
    /// and nodes whose [owners](crate::OwnedNode) have gone are deleted, such as those of locks that were
    /// dropped (unless servers refuse to), and whoever has something to [give back](Client::for_cleanup) does so.
    ///
    /// Dropping the future before it is ready is dropping the client: the session is closed.
    pub async fn detach(mut self) -> Option<Credentials> {
        let (credentials, left) = oneshot::channel();
        // It does not wait for itself.
        self.handle.change(|view| view.cleanup = None);
        self.handle.shared.commands.send(Command::Detach(credentials)).ok()?;
        left.await.ok().flatten()
    }
}
