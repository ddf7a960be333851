//! What is known of a lock that was acquired: whether it is held, and if not, why.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::OnceLock,
    task::Poll,
};

use tokio::{
    sync::{Mutex, watch},
    time::sleep,
};
use tracing::Instrument as _;
use zk_client::{
    Client, EventType, MultiError, ReadError, Rejection, SessionEnd, SessionState, Stat, Watch,
    planted,
};

use super::{FencingToken, Status};
use crate::{
    error::{CheckError, Lost},
    queue::REVOKE,
    together,
};

/// A node that stands for a lock, and what is known of it. Does not delete it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) client: Client,
    /// Of the node.
    pub(crate) path: String,
    pub(crate) token: FencingToken,
    /// On the node. Whoever waits for the loss holds the mutex, and leaves the watch in it.
    own_watch: Mutex<Option<Watch>>,
    /// Whether others may have nodes of the same name: then the token tells which one is this.
    has_shared_name: bool,
    /// Written once.
    lost: OnceLock<Lost>,
    /// Whether somebody has asked for the lock back.
    revoked: watch::Sender<bool>,
}

impl Held {
    pub(crate) fn new(client: Client, path: String, token: FencingToken) -> Self {
        Self {
            client,
            path,
            token,
            own_watch: Mutex::new(None),
            has_shared_name: false,
            lost: OnceLock::new(),
            revoked: watch::Sender::new(false),
        }
    }

    /// With what was heard of the node before it stood for the lock.
    pub(crate) fn heard(mut self, own_watch: Option<Watch>, revoked: bool) -> Self {
        *self.own_watch.get_mut() = own_watch;
        if revoked {
            self.revoked.send_replace(true);
        }
        self
    }

    /// A node whose name others use too.
    pub(crate) fn of_shared_name(client: Client, path: String, token: FencingToken) -> Self {
        let mut held = Self::new(client, path, token);
        held.has_shared_name = true;
        held
    }

    /// Whether a node of the name is another one.
    const fn is_another(&self, stat: &Stat) -> bool {
        self.has_shared_name && stat.czxid.0 != self.token.get()
    }

    /// The same for the next holder within the process, who takes the watch over. `Err` if the lock is known
    /// to be lost.
    pub(crate) fn passed_on(&self) -> Result<Self, Lost> {
        if let Some(lost) = self.known_loss() {
            return Err(lost);
        }
        // Somebody else may still be waiting for the loss; then there will be another watch if need be.
        let mut own_watch = self.own_watch.try_lock().ok().and_then(|mut slot| slot.take());
        match own_watch.as_mut().and_then(Watch::try_event) {
            Some(Ok(event)) if event.kind == EventType::NODE_DELETED => {
                self.lose(Lost::NodeDeleted);
                return Err(Lost::NodeDeleted);
            }
            Some(_) => own_watch = None,
            None => {}
        }
        let mut next = Self::new(self.client.clone(), self.path.clone(), self.token.passed_on());
        next.has_shared_name = self.has_shared_name;
        Ok(next.heard(own_watch, *self.revoked.borrow()))
    }

    pub(crate) fn status(&self) -> Status {
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

    pub(crate) async fn lost(&self) -> Lost {
        let mut lost = pin!(async {
            tokio::select! {
                biased;
                lost = self.out_of_touch() => lost,
                lost = self.deleted() => lost,
            }
        });
        let lost = poll_fn(|cx| match self.status() {
            // When a process goes on that was stopped, its timers may fire after everything else that is ready
            // has been polled, and work must not go on meanwhile.
            Status::Lost(lost) => Poll::Ready(lost),
            Status::Held | Status::Suspect { .. } => lost.as_mut().poll(cx),
        });
        let lost = lost.await;
        match self.lose(lost) {
            Status::Lost(first) => first,
            Status::Held | Status::Suspect { .. } => lost,
        }
    }

    /// Runs what is pinned until it is done or the lock is lost, in a span with the lock's path and token.
    pub(crate) async fn scope<F: Future>(&self, work: Pin<&mut F>) -> Result<F::Output, Lost> {
        let span = tracing::info_span!("zk.lock", path = self.path, token = %self.token);
        together::unless(self.lost(), pin!(work.instrument(span))).await
    }

    pub(crate) async fn revoked(&self) -> Result<(), Lost> {
        let mut revoked = self.revoked.subscribe();
        let asked_for = async {
            // Fails only if the sender is gone.
            drop(revoked.wait_for(|revoked| *revoked).await);
        };
        tokio::select! {
            biased;
            () = asked_for => Ok(()),
            // Whoever watches the node tells of both.
            lost = self.lost() => Err(lost),
        }
    }

    pub(crate) async fn check(&self) -> Result<(), CheckError> {
        if let Status::Lost(lost) = self.status() {
            return Err(lost.into());
        }
        let check = self.client.multi().check(&self.path).submit();
        // Behind the check: what it finds there now was there then, unless it is younger.
        let look = self.has_shared_name.then(|| self.client.get(&self.path).submit());
        let checked = check.await;
        if let Some(look) = look {
            match look.await {
                Ok((_, stat)) if self.is_another(&stat) => {
                    self.lose(Lost::NodeDeleted);
                    return Err(Lost::NodeDeleted.into());
                }
                Ok(_) | Err(ReadError::Rejected(_)) => {}
                Err(ReadError::Unavailable(cause)) if checked.is_ok() => {
                    return Err(CheckError::Unavailable(zk_client::WriteError::NotApplied(cause)));
                }
                // The check tells more.
                Err(_) => {}
            }
        }
        match checked {
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

    /// Records a loss; the first one stays.
    pub(crate) fn lose(&self, lost: Lost) -> Status {
        if planted!(LossForgotten) {
            return Status::Lost(lost);
        }
        let first = *self.lost.get_or_init(|| {
            tracing::warn!(path = self.path, token = self.token.get(), %lost);
            lost
        });
        Status::Lost(first)
    }

    /// Why the lock is lost, if that is known already.
    pub(crate) fn known_loss(&self) -> Option<Lost> {
        self.lost.get().copied()
    }

    /// Waits until the session cannot be counted on any more.
    pub(crate) async fn out_of_touch(&self) -> Lost {
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

    /// Waits until somebody deletes the lock's node. Tells of it if somebody asks for the lock back.
    async fn deleted(&self) -> Lost {
        let mut slot = self.own_watch.lock().await;
        loop {
            let watch = match &mut *slot {
                Some(watch) => watch,
                none => match self.client.get(&self.path).watch().await {
                    Ok(((_, stat), _)) if self.is_another(&stat) => return Lost::NodeDeleted,
                    Ok(((data, _), watch)) => {
                        self.revoked.send_if_modified(|revoked| {
                            let news = data == REVOKE && !*revoked;
                            *revoked |= news;
                            news
                        });
                        none.insert(watch)
                    }
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
