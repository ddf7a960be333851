//! The lock that is one node: first to come, and then whoever is quickest.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};
use zk_client::{
    Cause, Client, CreateMode, Error, EventType, ReadError, Rejection, SessionEnd, SessionId, Stat,
    WriteError, parent, planted,
};

use crate::{
    builder::Builder,
    error::{AcquireError, CheckError, Lost, ReleaseError},
    guard::{FencingToken, Held, Status},
    line::{Line, PARENT_TRIES, THROTTLE_PAUSE},
};

/// An exclusive lock without a queue: whoever manages to create the node has the lock.
///
/// Cheap while nobody contends: one write to acquire it, one read and two writes to release it, and no
/// sequence that could end. But nobody's turn ever comes: everybody who waits is woken by every release and
/// tries again, one wins, and a waiter may lose every time. For few contenders only; otherwise
/// [`Lock`](crate::Lock).
///
/// A waiter costs a write and a read until it sleeps, and the same for each release that it hears of. One that has
/// [lost](SimpleGuard::lost) it asks anew, and shows the resource its [token](SimpleGuard::token) meanwhile.
///
/// The path is that of the node itself. Never use it for a lock of another kind.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::SimpleLock;
///
/// let guard = SimpleLock::new(&zk, "/leaders/indexer").acquire().await?;
/// println!("indexing under {}", guard.token());
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SimpleLock {
    /// Of the node's parent. Nothing is ever joined there.
    above: Arc<Line>,
    path: Arc<str>,
}

/// Settings of a [`SimpleLock`]: of these, the description, the access control list and the pause before
/// looking again.
pub type SimpleLockBuilder = Builder<SimpleLock>;

/// Who has a [`SimpleLock`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The session that the node lives with.
    pub session: SessionId,
    /// When it took the lock: milliseconds since 1970 on the clock of the leader.
    pub since: i64,
    /// Its fencing token.
    pub token: i64,
    /// What it says about itself.
    pub description: String,
}

impl SimpleLock {
    /// A lock whose node is `path`, with default settings. What is missing above the node is created at the
    /// first acquire, as containers.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// A lock whose node is `path`, with settings.
    pub fn builder(client: &Client, path: &str) -> SimpleLockBuilder {
        Builder::new(client, path, |line| {
            let Line { client, path, settings, .. } = line;
            let above = parent(&path).unwrap_or("/").to_owned();
            Self { above: Arc::new(Line::new(client, above, settings)), path: Arc::from(path) }
        })
    }

    /// Waits until the lock can be had, in no order.
    ///
    /// One request if it is free. A waiter reads the node, once more when its holder is about to delete it, and
    /// tries again when it is gone.
    ///
    /// Dropping the future leaves no node: what it has begun is ended by a task of the session.
    ///
    /// # Errors
    /// [`AcquireError`], never for doubt: what became of a lost create is found out first.
    pub async fn acquire(&self) -> Result<SimpleGuard, AcquireError> {
        loop {
            if let Some(guard) = self.try_acquire().await? {
                return Ok(guard);
            }
            self.until_gone().await?;
        }
    }

    /// Waits until the node may be gone.
    async fn until_gone(&self) -> Result<(), AcquireError> {
        loop {
            // A read of a node that is gone leaves no watch behind, unlike asking for its existence.
            let changed = match self.above.client.get(&self.path).watch().await {
                Ok((_, changed)) => changed,
                Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(()),
                Err(ReadError::Unavailable(Cause::Throttled)) => {
                    sleep(THROTTLE_PAUSE).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let pause = self.above.settings.recheck.unwrap_or(Duration::MAX);
            let Ok(event) = timeout(pause, changed).await else { return Ok(()) };
            // Others tell that it is about to be deleted or, after a reconnect, that it is another holder's.
            if event.map_err(AcquireError::SessionEnded)?.kind == EventType::NODE_DELETED {
                return Ok(());
            }
        }
    }

    /// As [`acquire`](SimpleLock::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; a node is removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<SimpleGuard, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes the lock if nobody has it: one write, which fails if somebody has.
    ///
    /// # Errors
    /// As [`acquire`](SimpleLock::acquire).
    pub async fn try_acquire(&self) -> Result<Option<SimpleGuard>, AcquireError> {
        let (told, outcome) = oneshot::channel();
        // What becomes of the node is known to that task alone.
        let client = self.above.client.for_cleanup();
        self.above.client.spawn(self.clone().keep(client, told));
        let gone = AcquireError::SessionEnded(SessionEnd::Closed);
        outcome.await.unwrap_or(Err(gone))
    }

    /// Who has the lock, if anybody has: one read.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn holder(&self) -> Result<Option<Holder>, ReadError> {
        match self.above.client.get(&self.path).await {
            Ok((data, stat)) => {
                let text = String::from_utf8_lossy(&data);
                let description = text.split_once(' ').map_or(&*text, |(_, text)| text).to_owned();
                let Stat { ephemeral_owner: session, ctime: since, czxid, .. } = stat;
                Ok(Some(Holder { session, since, token: czxid.0, description }))
            }
            Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Tries to create the node, and deletes it when nobody wants it any more. Runs beside whoever wants it, so
    /// that it goes on when they stop.
    async fn keep(
        self,
        creates: Client,
        told: oneshot::Sender<Result<Option<SimpleGuard>, AcquireError>>,
    ) {
        let token = match self.created(&creates).await {
            Ok(Some(stat)) => FencingToken::new(stat.czxid),
            other => {
                // Whoever asked may have gone.
                let _ = told.send(other.map(|_| None));
                return;
            }
        };
        let client = self.above.client.clone();
        let held = Arc::new(Held::of_shared_name(client, self.path.to_string(), token));
        let (release, released) = oneshot::channel();
        let guard = SimpleGuard { held: held.clone(), release: Some(release) };
        let granted = match held.status() {
            Status::Lost(lost) => {
                // Or it would be waited for below for ever.
                drop(guard);
                Err(lost.into())
            }
            Status::Held | Status::Suspect { .. } => Ok(Some(guard)),
        };
        let _ = told.send(granted);
        drop(creates);
        // The guard sends it in going, if not before.
        let Ok(Release { client, confirm }) = released.await else { return };
        let deleted = self.delete(&client, token).await;
        let _ = confirm.map(|confirm| confirm.send(deleted));
    }

    /// Creates the node, unless somebody has.
    async fn created(&self, client: &Client) -> Result<Option<Stat>, AcquireError> {
        let settings = &self.above.settings;
        // The id is the attempt's: by it the node is told from that of any other attempt.
        let data = format!("{} {}", client.unique_id()?, settings.description);
        let mut is_in_doubt = false;
        let mut tries = PARENT_TRIES;
        loop {
            let create = client.create(&self.path, data.as_bytes());
            match create.mode(CreateMode::Ephemeral).acl(&settings.acl).await {
                Ok(created) => return Ok(Some(created.stat)),
                Err(WriteError::Rejected(Rejection::NodeExists)) if !is_in_doubt => {
                    return Ok(None);
                }
                Err(WriteError::Rejected(Rejection::NodeExists)) => {}
                Err(WriteError::Rejected(Rejection::NoNode)) if tries > 0 => {
                    tries -= 1;
                    let parents = self.above.create_parents(client);
                    if let Some(refusal) = self.above.parents_refused(parents).await {
                        return Err(refusal.into());
                    }
                    continue;
                }
                Err(WriteError::NotApplied(Cause::Throttled)) => {
                    sleep(THROTTLE_PAUSE).await;
                    continue;
                }
                Err(WriteError::InDoubt(doubt))
                    if !matches!(doubt.cause, Cause::SessionEnded(_)) =>
                {
                    is_in_doubt = true;
                }
                Err(error) => return Err(error.into()),
            }
            // From here on a read is conclusive.
            client.settle().await?;
            match client.get(&self.path).await {
                Ok((found, stat)) => {
                    let is_ours = planted!(TakesAnyForOurs)
                        || *found == *data.as_bytes()
                            && stat.ephemeral_owner == client.session().id();
                    return Ok(is_ours.then_some(stat));
                }
                Err(ReadError::Rejected(Rejection::NoNode)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Deletes the node if it is still the one.
    ///
    /// Others may have one of the same name, if somebody has deleted ours. So none is deleted, not even for the
    /// second time, without having looked, and only in the version that a write has left: between a look and
    /// a delete another node could come, but that one would be in its first version.
    async fn delete(&self, client: &Client, token: FencingToken) -> Result<(), ReleaseError> {
        loop {
            let version = match self.marked(client, token).await {
                Ok(Some(version)) => version,
                Ok(None) => return Ok(()),
                Err(error) => {
                    before_next(client, error).await?;
                    continue;
                }
            };
            let delete = client.delete(&self.path);
            let delete = if version == 0 { delete } else { delete.version(version) };
            match delete.await {
                Ok(()) | Err(WriteError::Rejected(Rejection::NoNode)) => return Ok(()),
                Err(WriteError::Rejected(Rejection::BadVersion)) => {}
                Err(error) => before_next(client, error.into()).await?,
            }
        }
    }

    /// Marks the node as one to be deleted, by writing what it says already. Gives its version; `None` if it is
    /// gone, and 0 if it is not to be told whether it is.
    async fn marked(&self, client: &Client, token: FencingToken) -> Result<Option<i32>, Error> {
        if planted!(DeletesUnlooked) {
            return Ok(Some(0));
        }
        let is_ours = |stat: &Stat| stat.czxid.0 == token.get();
        loop {
            let (data, stat) = match client.get(&self.path).await {
                Ok((data, stat)) if is_ours(&stat) => (data, stat),
                Ok(_) | Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(None),
                // Who may not read it may still delete it.
                Err(ReadError::Rejected(_)) => return Ok(Some(0)),
                Err(error) => return Err(error.into()),
            };
            match client.set(&self.path, &data).version(stat.version).await {
                // If this is another one, it has come just now, and is what it was but for what it says.
                Ok(stat) => return Ok(is_ours(&stat).then_some(stat.version)),
                Err(WriteError::Rejected(Rejection::NoNode)) => return Ok(None),
                Err(WriteError::Rejected(Rejection::BadVersion)) => {}
                Err(WriteError::Rejected(_)) => return Ok(Some(0)),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Waits until it makes sense to try again to delete the node.
///
/// # Errors
/// [`ReleaseError`] if that will never be.
async fn before_next(client: &Client, error: Error) -> Result<(), ReleaseError> {
    if let Some(end) = error.session_end() {
        return Err(ReleaseError::SessionEnded(end));
    }
    if error.rejection().is_some() {
        return Err(ReleaseError::Refused(error));
    }
    sleep(THROTTLE_PAUSE).await;
    // Whatever is still to happen has happened then. What went wrong here goes wrong above as well.
    let _ = client.settle().await;
    Ok(())
}

/// A [`SimpleLock`] that is held until the guard is [released](SimpleGuard::release) or dropped, or the lock is
/// [lost](SimpleGuard::lost).
///
/// Dropping it releases the lock in the background.
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub struct SimpleGuard {
    held: Arc<Held>,
    /// To the task that keeps the node; `None` once it was told.
    release: Option<oneshot::Sender<Release>>,
}

/// What a lock is given back with.
#[derive(Debug)]
struct Release {
    /// For cleaning up.
    client: Client,
    /// Whom to tell, if anybody waits.
    confirm: Option<oneshot::Sender<Result<(), ReleaseError>>>,
}

impl SimpleGuard {
    /// The number to show to whatever the lock protects: see [`FencingToken`].
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.held.token
    }

    /// The path of the lock's node, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.held.path
    }

    /// What is known locally: see [`Guard::status`](crate::Guard::status).
    #[must_use]
    pub fn status(&self) -> Status {
        self.held.status()
    }

    /// Waits until the lock is lost: see [`Guard::lost`](crate::Guard::lost).
    pub async fn lost(&self) -> Lost {
        self.held.lost().await
    }

    /// Runs `work` until it is done or the lock is lost, whichever comes first: see
    /// [`Guard::scope`](crate::Guard::scope).
    ///
    /// # Errors
    /// [`Lost`]; `work` has been dropped then, wherever it was.
    pub async fn scope<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        self.held.scope(pin!(work)).await
    }

    /// Asks the servers whether the lock is held: a transaction that a quorum has agreed to, and a read that
    /// tells whose node it was.
    ///
    /// # Errors
    /// [`CheckError::Lost`] if it is not; [`CheckError::Unavailable`] if they could not be asked.
    pub async fn check(&self) -> Result<(), CheckError> {
        self.held.check().await
    }

    /// Releases the lock, and waits until the next one can have it. Dropping the future does not stop it.
    ///
    /// # Errors
    /// [`ReleaseError`] if no server has confirmed it: the session has ended, and the lock with it.
    pub fn release(mut self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        let (confirm, confirmed) = oneshot::channel();
        self.give_back(Some(confirm));
        let held = self.held.clone();
        async move {
            let gone = Err(ReleaseError::SessionEnded(SessionEnd::Closed));
            let released = confirmed.await.unwrap_or(gone);
            drop(held);
            released
        }
    }

    /// Has the node deleted, once.
    fn give_back(&mut self, confirm: Option<oneshot::Sender<Result<(), ReleaseError>>>) {
        let Some(release) = self.release.take() else { return };
        // Without that task the runtime has gone, and the session with it.
        let _ = release.send(Release { client: self.held.client.for_cleanup(), confirm });
    }
}

impl Drop for SimpleGuard {
    fn drop(&mut self) {
        self.give_back(None);
    }
}
