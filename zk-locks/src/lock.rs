//! The exclusive lock: first come, first served.

use std::{sync::atomic::AtomicBool, time::Duration};

use tokio::time::timeout;
use zk_client::{Acl, AclList, Client, ReadError};

use crate::{
    error::{AcquireError, Lost},
    guard::Guard,
    identity,
    line::Line,
    queue::{self, Contender},
};

/// How long a waiter trusts its watch without looking again: defence in depth against lost notifications,
/// long enough to cost nothing.
const RECHECK: Duration = Duration::from_secs(45);

/// An exclusive lock that is granted in the order of asking.
///
/// A value of this type is only a handle: nothing happens on the servers before an acquire, and any number
/// of tasks can acquire through one value. Each acquire is an attempt of its own; the lock is not
/// re-entrant.
///
/// Nodes are those of Curator's `InterProcessMutex`: its users, and those of all that follow its names,
/// share the lock on the same path.
#[derive(Debug)]
pub struct Lock {
    line: Line,
}

/// Settings of a [`Lock`].
#[derive(Clone, Debug)]
#[must_use = "call `build`"]
pub struct LockBuilder {
    client: Client,
    path: String,
    description: Option<String>,
    acl: AclList,
    recheck: Option<Duration>,
}

impl Lock {
    /// A lock on `path`, with default settings. The path and what is missing above it are created at the
    /// first acquire, as containers, which servers delete some time after their last use (as persistent
    /// nodes on servers before 3.5.1).
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::builder(client, path).build()
    }

    /// A lock on `path`, with settings.
    pub fn builder(client: &Client, path: &str) -> LockBuilder {
        LockBuilder {
            client: client.clone(),
            path: path.to_owned(),
            description: None,
            acl: AclList::from_iter([Acl::open_unsafe()]),
            recheck: Some(RECHECK),
        }
    }

    /// Waits for the lock, behind all who asked before.
    ///
    /// One round trip if it is free, and two requests. While waiting, a lost connection costs nothing but
    /// time; the place in the queue is kept as long as the session lives.
    ///
    /// Dropping the future gives up, wherever it was: no node stays behind, and nobody waits for one. In a
    /// `select!` loop keep one pinned future; a new one each time begins at the end of the queue.
    ///
    /// # Errors
    /// [`AcquireError`], never for doubt: what became of a lost create is found out first.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        let (mut place, listing) = self.line.join().await?;
        self.line.wait(&mut place, listing).await?;
        self.grant(place)
    }

    /// As [`acquire`](Lock::acquire), for at most this long: connecting, queueing and waiting together.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; the node is removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<Guard, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes the lock if nobody has it and nobody waits for it.
    ///
    /// Looks first: as long as the lock is taken this is one read and no write. The server that is asked may
    /// be a little behind, so that a lock that has just been released still counts as taken.
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        if self.line.is_busy().await? {
            return Ok(None);
        }
        let (place, listing) = self.line.join().await?;
        if self.line.is_first(&place, listing).await? {
            self.grant(place).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Who has the lock and who waits for it, whatever implementation they use: the holder first.
    ///
    /// # Errors
    /// [`ReadError`] if the queue cannot be read. A lock that nobody has ever asked for is an empty queue.
    pub async fn contenders(&self) -> Result<Vec<Contender>, ReadError> {
        queue::contenders(&self.line.client, &self.line.path).await
    }

    fn grant(&self, place: crate::line::Place) -> Result<Guard, AcquireError> {
        let guard = Guard::new(self.line.client.clone(), place).map_err(|lost| match lost {
            Lost::SessionEnded(end) => AcquireError::SessionEnded(end),
            Lost::LeaseRanOut => AcquireError::LeaseRanOut,
            Lost::NodeDeleted => AcquireError::NodeDeleted,
        })?;
        tracing::debug!(path = guard.path(), token = guard.token().get(), "acquired");
        Ok(guard)
    }
}

impl LockBuilder {
    /// Who is asking, for people who look at the queue: a few words of text. Default: host and process.
    pub fn description(mut self, text: &str) -> Self {
        self.description = Some(text.to_owned());
        self
    }

    /// Who may do what with the lock's nodes, and with the levels of its path where they are missing. All
    /// contenders need to read each other's nodes, and to create and delete under the path. Default:
    /// everybody may do everything.
    pub fn acl(mut self, acl: &AclList) -> Self {
        self.acl = acl.clone();
        self
    }

    /// How long a waiter trusts its watch at most without looking again; `None` for ever. Default 45 s.
    /// Only a bug would make it matter.
    pub const fn recheck(mut self, pause: Option<Duration>) -> Self {
        self.recheck = pause;
        self
    }

    /// The lock.
    #[must_use]
    pub fn build(self) -> Lock {
        let Self { client, path, description, acl, recheck } = self;
        let description = description.unwrap_or_else(identity::describe);
        let without_containers = AtomicBool::new(false);
        Lock { line: Line { client, path, acl, description, recheck, without_containers } }
    }
}
