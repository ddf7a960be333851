//! An ephemeral node that is recreated.

use std::{fmt, future::IntoFuture as _, pin::pin, time::Duration};

use tokio::{sync::watch, time::sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use zk_client::{
    Cause, Client, ConnectError, ConnectOptions, CreateMode, EventType, ReadError, Rejection,
    SessionEnd, SessionId, WriteError, Zxid, bytes::Bytes,
};

use crate::{builder::Builder, error::AcquireError, wait_queue::WaitQueue};

/// Pause before a refused request is repeated, and before the next attempt to get a session.
const PAUSE: Duration = Duration::from_secs(1);

/// The state of a [`PersistentNode`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeState {
    /// The node does not exist, or that is unknown, as when the servers have not been heard from for so long that they
    /// may have ended the session; it is being created.
    Absent,
    /// The node was there with the wanted data when it was last read.
    Present {
        /// The session that owns it.
        session: SessionId,
        /// The transaction that created it.
        created: Zxid,
    },
    /// Another client's node has the path. This one waits for its end.
    Taken {
        /// The session that owns that node; 0 if it is not ephemeral. Often a former session of ours that the servers
        /// have not ended yet.
        by: SessionId,
    },
    /// The servers refuse the node. The attempt is repeated now and then.
    Refused(AcquireError),
    /// No session could be had. The attempt is repeated now and then.
    Unconnected(ConnectError),
    /// It was closed.
    Closed,
}

/// An ephemeral node that is recreated: when it is deleted, and, in a new session, when its session has ended.
///
/// For facts that should be known as long as a process lives, such as its address. It is no lock: after an expiry
/// another client may have the path, and this waits for its end; programs that relied on the node's being there all the
/// time are not informed.
///
/// It has a session of its own, made from the options that it was given, which must not include a session to
/// [resume](ConnectOptions::resume). It runs a task, which ends when this is dropped.
///
/// Two requests each time that the node is created: a create, and a read with a watch. A loss needs no attention: the
/// node is recreated as soon as servers can be reached, in a new session if need be.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use zk_locks::{ConnectOptions, PersistentNode};
///
/// let options = ConnectOptions::new(&servers)?;
/// let node = PersistentNode::start(options, "/workers/7", b"10.0.0.7:8080").await?;
/// node.present().await;
/// node.set_data(b"10.0.0.7:8081");
/// node.close().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it removes the node"]
pub struct PersistentNode {
    states: watch::Receiver<NodeState>,
    data: watch::Sender<Bytes>,
    stop: DropGuard,
}

impl PersistentNode {
    /// Connects, and begins to maintain the node. It and its missing ancestors, which are created as containers, have the
    /// [access control list](ConnectOptions::default_acl) of the options.
    ///
    /// One request for the node, and one to watch it; the same again whenever it is recreated.
    ///
    /// # Errors
    /// [`ConnectError`] if the first session cannot be had.
    pub async fn start(
        options: ConnectOptions,
        path: &str,
        data: &[u8],
    ) -> Result<Self, ConnectError> {
        let client = options.clone().connect().await?;
        let (publisher, states) = watch::channel(NodeState::Absent);
        let (data, wanted) = watch::channel(Bytes::copy_from_slice(data));
        let stop = CancellationToken::new();
        let keeper =
            Keeper { options, path: path.to_owned(), wanted, publisher, stop: stop.clone() };
        client.clone().spawn(keeper.run(client));
        Ok(Self { states, data, stop: stop.drop_guard() })
    }

    /// The state, as far as is known. No request.
    #[must_use]
    pub fn state(&self) -> NodeState {
        self.states.borrow().clone()
    }

    /// Follows the state. The channel closes once this was closed or dropped.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<NodeState> {
        self.states.clone()
    }

    /// Waits until the node is there. Dropping the future changes nothing.
    pub async fn present(&self) {
        let mut states = self.states.clone();
        let is_present = |state: &NodeState| matches!(state, NodeState::Present { .. });
        // The channel stays open as long as `self` exists, unless the runtime has gone.
        let _ = states.wait_for(is_present).await;
    }

    /// Sets the node's data, now and whenever it is recreated.
    pub fn set_data(&self, data: &[u8]) {
        send_news(&self.data, Bytes::copy_from_slice(data));
    }

    /// Removes the node, and waits until it is gone, or its session is over; at most for as long as [`Client::close`]
    /// waits: where no server can be reached, the node goes when the servers end the session. Dropping the future does not
    /// stop it once it has been polled.
    pub async fn close(self) {
        let Self { mut states, stop, .. } = self;
        drop(stop);
        while states.changed().await.is_ok() {}
    }
}

impl fmt::Debug for PersistentNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistentNode").field("state", &self.state()).finish_non_exhaustive()
    }
}

/// The task of a [`PersistentNode`].
struct Keeper {
    options: ConnectOptions,
    path: String,
    /// The data that the node should have.
    wanted: watch::Receiver<Bytes>,
    publisher: watch::Sender<NodeState>,
    stop: CancellationToken,
}

impl Keeper {
    async fn run(mut self, client: Client) {
        let stop = self.stop.clone();
        let mut client = client;
        loop {
            let end = tokio::select! {
                biased;
                () = stop.cancelled() => None,
                end = self.keep(&client) => Some(end),
            };
            if end.is_none() {
                // The node goes with the session.
                let _ = client.close().await;
                self.show(NodeState::Closed);
                return;
            }
            tracing::debug!(path = self.path, "the session has ended; makes a new one");
            self.show(NodeState::Absent);
            client = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.show(NodeState::Closed);
                    return;
                }
                client = self.connect() => client,
            };
            self.show(NodeState::Absent);
        }
    }

    async fn connect(&self) -> Client {
        loop {
            match self.options.clone().connect().await {
                Ok(client) => return client,
                Err(error) => {
                    self.show(NodeState::Unconnected(error));
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Maintains the node until the session ends.
    async fn keep(&mut self, client: &Client) -> SessionEnd {
        let builder = Builder::new(client, &self.path, |wait_queue: WaitQueue| wait_queue);
        let wait_queue = builder.unreported().build();
        let _lease = client.keep_lease();
        let mut is_there = false;
        loop {
            match self.see_to_it(&wait_queue, &mut is_there).await {
                Ok(()) => {}
                Err(AcquireError::SessionEnded(end)) => return end,
                Err(error) => {
                    self.show(NodeState::Refused(error));
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Creates the node if need be, and waits for the next change.
    async fn see_to_it(
        &mut self,
        wait_queue: &WaitQueue,
        is_there: &mut bool,
    ) -> Result<(), AcquireError> {
        let data = self.wanted.borrow_and_update().clone();
        if !*is_there {
            let made = wait_queue.ensure(&self.path, &data, CreateMode::Ephemeral);
            self.answer(&wait_queue.client, made).await?;
            *is_there = true;
        }
        let read = wait_queue.client.get(&self.path).watch().into_future();
        let ((present, stat), watch) = match self.answer(&wait_queue.client, read).await {
            Ok(read) => read,
            Err(ReadError::Rejected(Rejection::NoNode)) => {
                *is_there = false;
                self.show(NodeState::Absent);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        // Only this task creates ephemeral nodes in this session.
        if stat.ephemeral_owner != wait_queue.client.session().id() {
            self.show(NodeState::Taken { by: stat.ephemeral_owner });
            tokio::select! {
                biased;
                event = watch => {
                    *is_there = false;
                    if event.map_err(AcquireError::SessionEnded)?.kind == EventType::NODE_DELETED {
                        self.show(NodeState::Absent);
                    }
                }
                () = ran_out(&wait_queue.client) => self.look_again(&wait_queue.client).await?,
            }
            return Ok(());
        }
        if present != data {
            // Over the connection of the read, or not at all: later another client may have a node there.
            let set = wait_queue.client.set(&self.path, &data).version(stat.version).fail_fast();
            match self.answer(&wait_queue.client, set.into_future()).await {
                Ok(_)
                | Err(
                    WriteError::NotApplied(Cause::NotConnected | Cause::Disconnected(_))
                    | WriteError::Rejected(Rejection::NoNode | Rejection::BadVersion),
                ) => {}
                Err(WriteError::NotApplied(Cause::Throttled | Cause::QueueFull)) => {
                    self.answer(&wait_queue.client, sleep(PAUSE)).await;
                }
                Err(error) => wait_queue.may_try_again(error).await?,
            }
            return Ok(());
        }
        let (session, created) = (stat.ephemeral_owner, stat.czxid);
        self.show(NodeState::Present { session, created });
        tokio::select! {
            biased;
            event = watch => {
                let event = event.map_err(AcquireError::SessionEnded)?;
                if event.kind == EventType::NODE_DELETED {
                    *is_there = false;
                    self.show(NodeState::Absent);
                }
            }
            // The node may be gone without a notification. The next server asked must be up to date.
            () = ran_out(&wait_queue.client) => self.look_again(&wait_queue.client).await?,
            // The task is stopped when its owner is dropped.
            Ok(()) = self.wanted.changed() => {}
        }
        Ok(())
    }

    /// Nothing is known of the node any more: it is to be read again, as a server has it that is up to date.
    async fn look_again(&self, client: &Client) -> Result<(), AcquireError> {
        self.show(NodeState::Absent);
        Ok(client.sync(&self.path).await?)
    }

    /// Awaits an answer. Once the servers may have given the session up, nothing is known of the node until it comes.
    async fn answer<T>(&self, client: &Client, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            () = ran_out(client) => self.show(NodeState::Absent),
        }
        answer.await
    }

    fn show(&self, state: NodeState) {
        send_news(&self.publisher, state);
    }
}

/// Sends a value, if it is another one.
fn send_news<T: PartialEq>(sender: &watch::Sender<T>, value: T) {
    sender.send_if_modified(|now| {
        let is_news = *now != value;
        *now = value;
        is_news
    });
}

/// Waits until the servers may have given the session up.
async fn ran_out(client: &Client) {
    let session = client.session();
    loop {
        match session.lease_left() {
            Duration::ZERO => return,
            left => sleep(left).await,
        }
    }
}
