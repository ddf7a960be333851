//! A lock that is held: how to know that it still is, and how to give it back.

use std::{fmt, future::Future, sync::OnceLock, time::Duration};

use tokio::{sync::Mutex, time::sleep};
use zk_client::{
    Client, EventType, MultiError, OwnedNode, ReadError, Rejection, SessionEnd, SessionState,
    Watch, Zxid, planted,
};

use crate::{
    error::{CheckError, Lost, ReleaseError},
    line::Place,
};

/// A number that grows with every grant of a lock.
///
/// Hand it to whatever the lock protects, and have that remember the largest number it has seen and refuse
/// smaller ones: then a holder that was stalled past the end of its lock can do no harm. It is the
/// transaction that created the lock's node (`czxid`); unlike the number in the node's name it goes on
/// growing when the lock's path is deleted and made anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(Zxid);

impl FencingToken {
    /// The number. Positive.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencingToken({self})")
    }
}

/// What is known locally about a lock that was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Held.
    Held,
    /// Held, as long as the servers keep the session although they cannot be reached now: at least for
    /// this long.
    Suspect {
        /// Time left until the lock counts as lost.
        lease_left: Duration,
    },
    /// Not held any more, for good.
    Lost(Lost),
}

/// A lock that is held until the guard is [released](Guard::release) or dropped, or the lock is
/// [lost](Guard::lost).
///
/// Dropping it releases the lock in the background: the session deletes the lock's node, and goes on trying
/// over lost connections until a server has confirmed it. The guard keeps the session alive.
///
/// No lock service can keep a process that was stopped for a while from acting on a lock that it has lost
/// meanwhile. Pass the [token](Guard::token) on to what the lock protects.
#[must_use = "dropping it releases the lock"]
pub struct Guard {
    client: Client,
    node: OwnedNode,
    /// On the lock's node. Whoever waits for the loss holds the mutex, and leaves the watch in it.
    own_watch: Mutex<Option<Watch>>,
    /// Written once.
    lost: OnceLock<Lost>,
}

impl Guard {
    /// A guard for a place at the head of the queue; `Err` if it was lost on the way.
    pub(crate) fn new(client: Client, place: Place) -> Result<Self, Lost> {
        let Place { node, own_watch, .. } = place;
        let guard = Self { client, node, own_watch: Mutex::new(own_watch), lost: OnceLock::new() };
        match guard.status() {
            Status::Lost(lost) => Err(lost),
            Status::Held | Status::Suspect { .. } => Ok(guard),
        }
    }

    /// The number to show to whatever the lock protects.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        if planted!(TokenFromSuffix) {
            return FencingToken(Zxid(self.node.sequence().map_or(0, i64::from)));
        }
        FencingToken(self.node.stat().czxid)
    }

    /// The path of the lock's node, relative to the client's chroot.
    #[must_use]
    pub fn path(&self) -> &str {
        self.node.path()
    }

    /// What is known locally, without asking anybody. Once it says [`Status::Lost`] it never says anything
    /// else.
    ///
    /// It does not notice if somebody deletes the lock's node, unless a [`lost`](Guard::lost) future is
    /// being awaited.
    #[must_use]
    pub fn status(&self) -> Status {
        if let Some(&lost) = self.lost.get() {
            return Status::Lost(lost);
        }
        let session = self.client.session();
        let lease_left = session.lease_left();
        match session.state() {
            SessionState::Ended(end) => self.lose(Lost::SessionEnded(end)),
            SessionState::Closing => self.lose(Lost::SessionEnded(SessionEnd::Closed)),
            _ if lease_left.is_zero() && !planted!(LeaseIgnored) => self.lose(Lost::LeaseRanOut),
            SessionState::Connected { read_only: false } => Status::Held,
            _ => Status::Suspect { lease_left },
        }
    }

    /// Waits until the lock is lost; resolves at once if it is already.
    ///
    /// That is: when the session ends or is told to close; when the servers have not been heard of for so
    /// long that they may have given the lock to somebody else, which a partitioned holder learns no later
    /// than its successor is let in (by a standalone server or a leader that it was connected to); or when
    /// somebody deletes the lock's node. Waiting costs one request, which arms a watch on that node. The
    /// future can be dropped and made anew at will.
    pub async fn lost(&self) -> Lost {
        let lost = tokio::select! {
            biased;
            lost = self.out_of_touch() => lost,
            lost = self.deleted() => lost,
        };
        match self.lose(lost) {
            Status::Lost(first) => first,
            Status::Held | Status::Suspect { .. } => lost,
        }
    }

    /// Runs `work` until it is done or the lock is lost, whichever comes first.
    ///
    /// # Errors
    /// [`Lost`]; `work` has been dropped then, wherever it was.
    pub async fn scope<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        tokio::select! {
            biased;
            lost = self.lost() => Err(lost),
            output = work => Ok(output),
        }
    }

    /// Asks the servers whether the lock is held: a transaction that a quorum has agreed to. The answer was
    /// true at some moment while this was under way.
    ///
    /// # Errors
    /// [`CheckError::Lost`] if it is not; [`CheckError::Unavailable`] if they could not be asked.
    pub async fn check(&self) -> Result<(), CheckError> {
        if let Status::Lost(lost) = self.status() {
            return Err(lost.into());
        }
        match self.client.multi().check(self.node.path()).await {
            Ok(Ok(_)) => match self.status() {
                Status::Lost(lost) => Err(lost.into()),
                Status::Held | Status::Suspect { .. } => Ok(()),
            },
            Ok(Err(MultiError { rejection: Rejection::NoNode, .. })) => {
                self.lose(Lost::NodeDeleted);
                Err(Lost::NodeDeleted.into())
            }
            Ok(Err(MultiError { rejection, .. })) => {
                Err(CheckError::Unavailable(zk_client::WriteError::Rejected(rejection)))
            }
            Err(error) => match self.status() {
                Status::Lost(lost) => Err(lost.into()),
                Status::Held | Status::Suspect { .. } => Err(CheckError::Unavailable(error)),
            },
        }
    }

    /// Releases the lock, and waits until the next one can have it.
    ///
    /// The release is under way when this returns the future; dropping the future does not stop it.
    ///
    /// # Errors
    /// [`ReleaseError`] if no server has confirmed it: the session has ended, and the lock with it.
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        let Self { client, node, .. } = self;
        let deleted = node.delete();
        async move {
            let released = deleted.await.map_err(ReleaseError::from);
            // Kept until here: the last client to go closes the session.
            drop(client);
            released
        }
    }

    /// Records a loss; the first one stays.
    fn lose(&self, lost: Lost) -> Status {
        if planted!(LossForgotten) {
            return Status::Lost(lost);
        }
        let first = *self.lost.get_or_init(|| {
            tracing::warn!(path = self.node.path(), token = self.token().get(), %lost);
            lost
        });
        Status::Lost(first)
    }

    /// Waits until the session cannot be counted on any more.
    async fn out_of_touch(&self) -> Lost {
        let mut session = self.client.session();
        loop {
            if let Status::Lost(lost) = self.status() {
                return lost;
            }
            let lease_left = session.lease_left();
            tokio::select! {
                biased;
                _ = session.changed() => {}
                // What is left grows again with every answer; look again when it would have run out.
                () = sleep(lease_left), if !planted!(LossHeardLate) => {}
            }
        }
    }

    /// Waits until somebody deletes the lock's node.
    async fn deleted(&self) -> Lost {
        let mut slot = self.own_watch.lock().await;
        loop {
            let watch = match &mut *slot {
                Some(watch) => watch,
                none => match self.client.get(self.node.path()).watch().await {
                    Ok((_, watch)) => none.insert(watch),
                    Err(ReadError::Rejected(Rejection::NoNode)) => return Lost::NodeDeleted,
                    // Not to be had; the other half still watches the session.
                    Err(_) => std::future::pending().await,
                },
            };
            let event = watch.await;
            // It has resolved for good, and others may be waiting for the slot.
            *slot = None;
            match event {
                Ok(_) if planted!(DeletionUnheard) => std::future::pending().await,
                Ok(event) if event.kind == EventType::NODE_DELETED => return Lost::NodeDeleted,
                Ok(_) => {}
                Err(end) => return Lost::SessionEnded(end),
            }
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("path", &self.path())
            .field("token", &self.token())
            .field("lost", &self.lost.get())
            .finish_non_exhaustive()
    }
}
