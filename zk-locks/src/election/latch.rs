//! Standing for an election again and again.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use zk_client::{Cause, Client, OwnedNode, Rejection};

use crate::{
    backoff::{Backoff, pass},
    error::{AcquireError, ReleaseError},
    guard::{Guard, Held, Status},
    layout::Role,
    token::FencingToken,
    wait_queue::{Pace, Position, WaitQueue},
};

/// Pause before standing again where the servers could not be asked.
const PAUSE: Duration = Duration::from_millis(500);

/// The state of a latch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LatchState {
    /// Another candidate leads, or the leader is not known. Also the last state of a latch that has
    /// [stood down](LeaderLatch::resign), unless that was refused.
    Waiting,
    /// We lead.
    Leading {
        /// The fencing token of this term.
        token: FencingToken,
    },
    /// It stands no more: the session has ended, or an attempt to stand has failed in a way that is not only the
    /// connection's. The servers refuse a request, a request or an answer is too long, the [layout](crate::Builder::layout) has
    /// no names for elections, a [required](crate::Builder::require_path) path is missing, a stranger is
    /// [refused](crate::ForeignNodes::Refuse), the [queue is full](crate::Builder::max_waiters), the numbers of the path have
    /// ended, or a node of this session [stays](AcquireError::Orphan) in front, or its own does when it
    /// [stands down](LeaderLatch::resign). So a required path that is deleted ends the latch for good. A member that
    /// [takes no writes](zk_client::Rejection::ReadOnly) for want of a quorum does not: it stands again.
    ///
    /// A second one may follow: [`Orphan`](AcquireError::Orphan), if the node of the last term was still on its way out, and
    /// the servers refuse to delete it.
    Ended(AcquireError),
}

/// Stands for an election as long as the session lives: after losing the lead, because its node was deleted or the
/// servers were unreachable for too long, it stands again behind all others: at once, and after ever longer pauses of at
/// most five seconds if that happens again and again.
///
/// For programs that check now and then whether they lead. Where a loss of the lead must stop work,
/// [`Election::campaign`](crate::Election::campaign) fits better.
///
/// Runs a task, which ends when this is dropped; the node is then removed in the background.
///
/// Standing costs what [a lock](crate::Lock) costs, and a read with a watch on the own node. When the lead is lost
/// [`is_leader`](LeaderLatch::is_leader) returns `false` before any other candidate learns that it leads, by the clock
/// if need be. The end of the session ends the latch, and another client has to stand.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::Election;
///
/// let latch = Election::new(&zk, "/leaders/indexer").latch(b"10.0.0.7:8080");
/// let mut states = latch.subscribe();
/// while !latch.is_leader() {
///     states.changed().await?;
/// }
/// println!("leading: {:?}", *states.borrow());
/// latch.resign().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it is standing down"]
pub struct LeaderLatch {
    states: watch::Receiver<LatchState>,
    held: Current,
    node: Node,
    stop: Stop,
}

/// Stops the task when this is dropped, with a client for what it has to release then.
struct Stop {
    client: Client,
    stop: watch::Sender<Option<Client>>,
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.stop.send_replace(Some(self.client.for_cleanup()));
    }
}

/// The lead that is held at the moment.
#[derive(Clone, Default)]
struct Current(Arc<Mutex<Option<Held>>>);

impl Current {
    fn set(&self, held: Option<Held>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    fn get(&self) -> Option<Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The path of our node, while there is one.
#[derive(Clone, Default)]
struct Node(Arc<Mutex<Option<String>>>);

impl Node {
    fn set(&self, path: Option<&str>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = path.map(str::to_owned);
    }

    fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl LeaderLatch {
    pub(super) fn new(wait_queue: Arc<WaitQueue>, data: &[u8]) -> Self {
        let (publisher, states) = watch::channel(LatchState::Waiting);
        let (stop, stopped) = watch::channel(None);
        let (held, node) = (Current::default(), Node::default());
        let client = wait_queue.client.clone();
        let standing = LatchTask {
            wait_queue,
            data: data.to_vec(),
            publisher,
            held: held.clone(),
            node: node.clone(),
            stopped,
        };
        client.spawn(standing.run());
        Self { states, held, node, stop: Stop { client, stop } }
    }

    /// Returns whether we lead, as known locally: by [`Guard::status`], and by deletions of our node that the session
    /// has reported. No request.
    ///
    /// Of several latches at most one returns `true` at any point of the servers' order of changes, as far as each has
    /// seen that order. For effects elsewhere use the [token](LeaderLatch::token).
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.token().is_some()
    }

    /// The fencing token, while we lead.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        let held = self.held.get()?;
        match held.status() {
            Status::Held | Status::Suspect { .. } => Some(held.token),
            Status::Lost(_) => None,
        }
    }

    /// The path of our node, relative to the client's chroot, while we stand or lead; `None` before there is one. It
    /// differs each time that we stand again.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        self.node.get()
    }

    /// Follows the state of the latch. The channel closes once the latch has ended or was dropped.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<LatchState> {
        self.states.clone()
    }

    /// Stands down, and waits until our node is deleted, so that the next candidate can lead, or the session is over, or the
    /// servers have refused to delete it: then the last [state](LeaderLatch::subscribe) is [`Ended`](LatchState::Ended) with
    /// [`AcquireError::Orphan`], the session [counts](crate::Session::orphans) the node, and others wait until it is over or
    /// is permitted to. A node that is just joining the queue is deleted without a wait for it. Dropping the future does not stop
    /// it once it has been polled.
    pub async fn resign(self) {
        let Self { mut states, stop, .. } = self;
        drop(stop);
        while states.changed().await.is_ok() {}
    }
}

impl fmt::Debug for LeaderLatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderLatch").field("state", &*self.states.borrow()).finish_non_exhaustive()
    }
}

/// The node of a term or of a wait that is over, on its way out.
struct Former {
    path: String,
    deleted: Pin<Box<dyn Future<Output = Result<(), ReleaseError>> + Send>>,
}

impl Former {
    fn guard(guard: Guard) -> Self {
        Self { path: guard.path().to_owned(), deleted: Box::pin(guard.release()) }
    }

    fn node(node: OwnedNode) -> Self {
        let (path, deleted) = (node.path().to_owned(), node.delete());
        Self { path, deleted: Box::pin(async { Ok(deleted.await?) }) }
    }
}

/// The task of a latch.
struct LatchTask {
    wait_queue: Arc<WaitQueue>,
    data: Vec<u8>,
    publisher: watch::Sender<LatchState>,
    held: Current,
    node: Node,
    /// Set once. The client in it is dropped with this, after everything has been released.
    stopped: watch::Receiver<Option<Client>>,
}

impl LatchTask {
    async fn run(self) {
        let mut backoff = Backoff::default();
        let mut former = None;
        loop {
            let elected = tokio::select! {
                biased;
                () = self.stopped() => return self.has_left(former).await,
                stands = self.stand() => self.elected(stands, &mut former).await,
            };
            let pause = match elected {
                Ok(None) => return self.has_left(former).await,
                Ok(Some(guard)) => {
                    self.lead(&guard).await;
                    former = Some(Former::guard(guard));
                    if self.stopped.borrow().is_some() {
                        return self.has_left(former).await;
                    }
                    backoff.pause()
                }
                Err(AcquireError::NodeDeleted) => backoff.pause(),
                Err(error) if may_pass(&error) => PAUSE,
                Err(error) => {
                    self.publisher.send_replace(LatchState::Ended(error));
                    return self.has_left(former).await;
                }
            };
            tokio::select! {
                biased;
                () = self.stopped() => return self.has_left(former).await,
                () = pass(pause) => {}
            }
        }
    }

    async fn stand(&self) -> Result<Position, AcquireError> {
        self.node.set(None);
        let joined = self.wait_queue.join_with(Role::Lead, Pace::MayWait, &self.data).await?;
        self.node.set(Some(joined.node.path()));
        Ok(joined)
    }

    /// Waits to be elected; `None` if the latch was stopped before. Where there is no guard then, the node is on its way out.
    async fn elected(
        &self,
        stands: Result<Position, AcquireError>,
        former: &mut Option<Former>,
    ) -> Result<Option<Guard>, AcquireError> {
        let mut position = stands?;
        let waited = tokio::select! {
            biased;
            () = self.stopped() => None,
            waited = self.wait_queue.wait(&mut position) => Some(waited),
        };
        if let Some(Ok(())) = waited {
            let (guard, mut wait) = Guard::unchecked(&self.wait_queue, position);
            let Status::Lost(lost) = guard.status() else {
                return Ok(Some(guard.granted(&self.wait_queue, wait.end())));
            };
            self.node.set(None);
            *former = Some(Former::guard(guard));
            return Err(lost.into());
        }
        self.node.set(None);
        *former = Some(Former::node(position.node));
        waited.transpose().map(|_| None)
    }

    /// Waits until the last node is deleted. The channel stays open until then.
    async fn has_left(&self, former: Option<Former>) {
        if let Some(Former { path, deleted }) = former {
            self.stood_down(path, deleted.await);
        }
    }

    /// Has subscribers know that servers refuse to delete our node.
    fn stood_down(&self, path: String, outcome: Result<(), ReleaseError>) {
        if let Some(orphan @ AcquireError::Orphan { .. }) =
            outcome.err().map(|error| error.of_node(path))
        {
            self.publisher.send_replace(LatchState::Ended(orphan));
        }
    }

    async fn stopped(&self) {
        // The value is sent before the channel closes.
        let _ = self.stopped.clone().wait_for(Option::is_some).await;
    }

    /// Leads until the lead is lost or the latch is stopped.
    async fn lead(&self, leadership: &Guard) {
        self.held.set(Some(leadership.held().clone()));
        self.publisher.send_replace(LatchState::Leading { token: leadership.token() });
        tokio::select! {
            biased;
            () = self.stopped() => return self.leads_no_more(),
            () = leadership.held().gone() => {}
        }
        self.leads_no_more();
        // Observers are told the right reason: whether the session is over, or another client has deleted the node.
        tokio::select! {
            biased;
            () = self.stopped() => {}
            _ = leadership.held().reason() => {}
        }
    }

    fn leads_no_more(&self) {
        self.held.set(None);
        self.node.set(None);
        self.publisher.send_replace(LatchState::Waiting);
    }
}

/// Whether an attempt to stand has failed for want of a good connection, so that the next one may do better. A request or an
/// answer that is too long would be so again, and cost all requests of the session another connection each time.
const fn may_pass(error: &AcquireError) -> bool {
    match error {
        AcquireError::LeaseRanOut | AcquireError::Rejected(Rejection::ReadOnly) => true,
        AcquireError::Unavailable(cause) => !matches!(
            cause,
            Cause::TooLarge { .. }
                | Cause::ReplyTooLarge { .. }
                | Cause::CostsConnection(_)
                | Cause::InvalidArgument(_)
        ),
        _ => false,
    }
}
