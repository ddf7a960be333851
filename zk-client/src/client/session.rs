//! The session of a client: views of it, waiting for requests in flight, and its end.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};
use zk_proto::{
    OpCode, Secret, Zxid,
    path::Naming,
    session::{Auth, Credentials},
};

use crate::{
    carry::{lease_keeper::LeaseKeeper, session::Session},
    driver::command::{Command, Detaching, Handover},
    error::{CallError as _, Cause, ConnectError, ReadError, Rejection, SessionEnd, WriteError},
    net::servers::Servers,
    request::{client::Client, pending::Pending},
};

impl Client {
    /// A view of the session: its state, and how long it is sure to last.
    #[must_use]
    pub fn session(&self) -> Session {
        self.handle.shared.session.renewed()
    }

    /// Proves another identity, on this connection and every later one. Servers check what was sent before without it, and what
    /// is submitted later with it; what waits for a connection or for room meanwhile may be checked either way. Submitted when
    /// this returns; dropping the returned future does not undo it. Timeouts of the client and
    /// [failing fast](crate::CallOptions::fail_fast) do not apply: it is answered once a server is connected.
    ///
    /// For the scheme `digest` the bytes are `user:password`; they are sent in plain text.
    ///
    /// A server that refuses ends the session, with [`SessionEnd::AuthFailed`], as with
    /// [`ConnectOptions::auth`](crate::ConnectOptions::auth).
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// zk.add_auth("digest", "ann:secret").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_auth(&self, scheme: &str, auth: impl Into<Bytes>) -> Pending<(), ReadError> {
        let auth = Auth { scheme: scheme.into(), auth: Secret(auth.into()) };
        Pending::add_auth(&self.handle, auth)
    }

    /// Switches to other servers, `host:port,host:port`, without ending the session: for ensembles that grow, shrink or
    /// move. The clients of a fleet stay spread evenly over all servers, each by a random choice: some move to new
    /// servers, those of removed servers move, and no others do. A connection is left once every request sent over it
    /// has been answered; later requests wait for the next connection.
    ///
    /// The client keeps its chroot; the string must not have one.
    ///
    /// ```no_run
    /// # fn example(zk: zk_client::Client) -> Result<(), zk_client::ConnectError> {
    /// zk.update_servers("zk1:2181,zk2:2181,zk4:2181")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] if the string is anything else.
    pub fn update_servers(&self, servers: &str) -> Result<(), ConnectError> {
        let Servers { addresses, chroot } = servers.parse()?;
        if chroot.as_str() != "/" {
            return Err(ConnectError::UnexpectedChroot);
        }
        self.handle.command(Command::UpdateServers(addresses));
        Ok(())
    }

    /// Has the session's [lease](Session::lease_left) confirmed by the leader until the returned value is dropped: for
    /// applications that hold something other than this crate's [nodes](crate::OwnedNode), which do this themselves.
    ///
    /// Earlier confirmations count, such as the reply to a create. If they are too old, the lease is 0 until the leader
    /// is heard from.
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
    /// // No other client can take the seat within this time, whatever happens.
    /// assert!(!zk.session().lease_left().is_zero());
    /// drop(kept);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_lease(&self) -> LeaseKeeper {
        let (keeper, is_first) = LeaseKeeper::new(self.handle.shared.session.known());
        if is_first {
            // The driver may sleep until the next ping.
            self.handle.command(Command::LeaseKept);
        }
        keeper
    }

    /// Waits until a server refuses to delete a node of this session that has lost its owner; resolves at once if that
    /// has happened already, never if no server does. The node stays until the servers permit the delete: see
    /// [`Session::orphans`].
    pub async fn orphaned(&self, path: &str) -> Rejection {
        match self.handle.chroot.resolve(path, Naming::Exact) {
            Ok(absolute) => self.handle.shared.known().sweeps.until_refused(&absolute).await.into(),
            // No such node exists.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits until no write in doubt of this session can be applied any more: until the same session is connected
    /// (again) and a `sync` sent after that has been answered. A read submitted after this returns is conclusive about
    /// them.
    ///
    /// That is said of writes that have returned. A [protected](crate::Create::protected) create that was dropped, or has
    /// timed out, while a server throttled it or a [cork](Client::cork) held it back may be carried out later, up to seconds
    /// behind the cork; its node is deleted then.
    ///
    /// No option of the client shortens the wait, as most doubts begin with a lost connection: bound it with
    /// [`tokio::time::timeout`]. Dropping the future gives up nothing but the answer.
    ///
    /// # Errors
    /// [`ReadError`] if the session ends first, or if the server does not support `sync` (a read-only one does not).
    pub async fn resolve_in_doubt(&self) -> Result<Zxid, ReadError> {
        self.patient().synced().await
    }

    /// Ends the session: its ephemeral nodes are deleted, its watches resolve with [`SessionEnd::Closed`], and no clone
    /// accepts requests any more. Requests submitted before are sent first. Before a server is informed, the state
    /// becomes [`Closing`](crate::SessionState::Closing), and no lock of the session counts as held any more.
    ///
    /// Await this at the end of a program: it completes the work in the background. When it returns, locks whose guards
    /// were dropped are free, nodes whose [owners](crate::OwnedNode) were dropped are gone, and tasks that [give
    /// something back](Client::for_cleanup) have finished, or have had three quarters of the time. If a program just exits,
    /// none of that may have been sent, and locks remain until the session expires.
    ///
    /// Returns once a server has confirmed, or after two seconds if none can be reached; the session then ends when it
    /// expires. Of several closes, the first to give up ends all. A connection lost in the meantime is re-established.
    /// Closing twice is harmless, and so is closing a session that has expired: there is nothing left to close. Dropping the
    /// future after the first poll does not stop the close.
    ///
    /// # Errors
    /// [`InDoubt`](WriteError::InDoubt) if no server has confirmed, as of a session that was [left](Client::detach);
    /// [`NotApplied`](WriteError::NotApplied) if the servers refuse the credentials, and keep the session until it expires.
    pub async fn close(&self) -> Result<(), WriteError> {
        self.end(None).await
    }

    /// As [`close`](Client::close), but waits up to `limit` if no server can be reached. After the [session
    /// timeout](Session::timeout) there is nothing left to close.
    ///
    /// # Errors
    /// As [`close`](Client::close).
    pub async fn close_within(&self, limit: Duration) -> Result<(), WriteError> {
        self.end(Some(limit)).await
    }

    async fn end(&self, limit: Option<Duration>) -> Result<(), WriteError> {
        let (done, closed) = oneshot::channel();
        self.handle.send_held_so_far();
        if self.handle.shared.commands.send_last(Command::Close(done, limit)).is_ok() {
            // Whatever the outcome, the session ends.
            let _ = closed.await;
        }
        match self.handle.shared.session.wound_up().await {
            (SessionEnd::Closed, true) | (SessionEnd::Expired, _) => Ok(()),
            (SessionEnd::Closed, false) => {
                Err(WriteError::unknown(OpCode::CLOSE_SESSION, Cause::DeadlineExceeded))
            }
            (end, _) => Err(WriteError::NotApplied(Cause::SessionEnded(end))),
        }
    }

    /// Leaves the session without ending it, for another client to [resume](crate::ConnectOptions::resume): servers
    /// keep its ephemeral nodes until it times out. `None` if there is no session.
    ///
    /// Ends all clones: later requests are refused, and requests in flight end as if the session were closed, though
    /// those already sent may still be carried out. Work that must not be abandoned is completed first, however long
    /// that takes: [protected creates](crate::Create::protected) finish, nodes whose [owners](crate::OwnedNode) have
    /// been dropped are deleted, such as those of dropped locks (unless servers refuse), and tasks that [give something
    /// back](Client::for_cleanup) do so.
    ///
    /// What owns a node and is not dropped keeps it, for the other client to find: also an attempt that still waits for a
    /// lock. Nobody deletes that node until the other client's session ends: drop such attempts before.
    ///
    /// That begins before this returns the future. Dropping the future before it completes closes the session, also if
    /// there are clones. A close, before or meanwhile, goes first: the result is `None`. Of several calls, the last one has
    /// the session.
    pub fn detach(mut self) -> impl Future<Output = Option<Credentials>> + Send + 'static {
        let (offer, mut offered) = watch::channel(None);
        let (accept, accepted) = oneshot::channel();
        // A cleanup client must not wait for itself.
        self.handle.change(|view| view.cleanup = None);
        let detaching = Box::new(Detaching { offer, accepted });
        let asked = self.handle.shared.commands.send(Command::Detach(detaching));
        async move {
            // The session of the last client is closed.
            let client = self;
            asked.ok()?;
            let commands = &client.handle.shared.commands;
            // Behind what has been sent by now: to give something back, or to close the session. Cannot be taken back while
            // it is borrowed.
            let is_last = |offer: &Option<Handover>| offer.is_some() && commands.is_idle();
            let offer = offered.wait_for(is_last).await.ok()?;
            accept.send(()).ok()?;
            offer.as_ref().and_then(|Handover(credentials)| credentials.clone())
        }
    }
}
