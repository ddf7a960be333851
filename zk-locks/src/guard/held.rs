//! The state of a lock that was acquired: whether it is held, and if not, why.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use tokio::{sync::watch, time::timeout};
use tracing::Instrument as _;
use zk_client::{Client, MultiError, ReadError, Rejection, Stat, Watch, WriteError, bytes::Bytes};

use super::{
    Status,
    node::{HeldNode, Known},
    upkeep::Upkeep,
};
use crate::{
    contender::REVOKE,
    error::{CheckError, Lost, nothing_written},
    quorum, together,
    token::FencingToken,
};

/// How long [`Held::lost`] may be delayed to find out the right reason.
const REASON_WAIT: Duration = Duration::from_millis(100);

/// How long [`Held::reason`] may be delayed for that, when all work has stopped: longer than a session that has learned
/// of the end of its nodes, but not of its own, pauses before it dials again.
const REASON_WAIT_MAX: Duration = Duration::from_secs(2);

/// A view of a lock that is or was held. Does not delete its node.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) node: Arc<HeldNode>,
    pub(crate) token: FencingToken,
}

/// How long work may take to stop before its lock is given away anyway.
const STOP_WAIT: Duration = Duration::from_secs(1);

/// Work in progress in a scope.
pub(super) struct Working<'a>(&'a watch::Sender<Known>);

impl<'a> Working<'a> {
    fn begin(known: &'a watch::Sender<Known>) -> Self {
        // Notifies no receiver.
        known.send_if_modified(|known| {
            known.working += 1;
            false
        });
        Self(known)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.send_if_modified(|known| {
            known.working -= 1;
            known.is_lost && known.working == 0
        });
    }
}

impl Held {
    pub(crate) fn new(client: Client, path: String, token: FencingToken) -> Self {
        Self::of(client, path, token, None)
    }

    /// A node whose name other contenders use too.
    pub(crate) fn of_shared_name(client: Client, path: String, token: FencingToken) -> Self {
        Self::of(client, path, token, Some(token.get()))
    }

    fn of(client: Client, path: String, token: FencingToken, number: Option<i64>) -> Self {
        Self { node: Arc::new(HeldNode::new(client, path, number)), token }
    }

    /// Adds what was learned of the node before the grant.
    pub(crate) fn heard(self, own_watch: Option<Watch>, revoked: bool) -> Self {
        self.node.watched_by(own_watch);
        self.heard_of(revoked);
        self
    }

    /// Adds what a read of the node has shown, if it was answered: perhaps a client has asked for the lock back.
    pub(crate) fn shows(&self, read: Result<(Bytes, Stat), ReadError>) {
        let asked = read.is_ok_and(|(data, stat)| data == REVOKE && !self.node.is_another(&stat));
        self.heard_of(asked);
    }

    /// Adds whether a client has asked for the lock back, where that was learned elsewhere.
    pub(crate) fn heard_of(&self, revoked: bool) {
        if revoked {
            self.node.revoke();
        }
    }

    /// The view of the next holder within the process. `Err` if the lock is known to be lost.
    pub(crate) fn passed_on(&self) -> Result<Self, Lost> {
        match self.status() {
            Status::Lost(lost) => Err(lost),
            Status::Held | Status::Suspect { .. } => {
                Ok(Self { node: self.node.clone(), token: self.token.passed_on() })
            }
        }
    }

    /// A new view of the same lock, after it was [put away](Held::put_away), by the node that stands for it now.
    pub(super) fn afresh(&self, path: &str) -> Self {
        let HeldNode { client, number, .. } = &*self.node;
        let again = Self::of(client.clone(), path.to_owned(), self.token, *number);
        if let Some(lost) = self.node.loss().or_else(|| self.node.taken_away()) {
            again.lose(lost);
        }
        // A client that has asked for the lock back still waits for it.
        again.heard_of(self.is_revoked());
        again
    }

    /// Whether a client has asked for the lock back.
    pub(crate) fn is_revoked(&self) -> bool {
        self.node.known.borrow().is_revoked
    }

    pub(crate) fn path(&self) -> &str {
        &self.node.path
    }

    /// Whether other contenders use the node's name too, one at a time.
    pub(super) fn has_shared_name(&self) -> bool {
        self.node.number.is_some()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.node.client
    }

    pub(crate) fn status(&self) -> Status {
        self.node.status()
    }

    /// Has the node watched once it has been held for long, even if no task waits for its loss.
    pub(crate) fn watch_over(&self) {
        Upkeep::of(&self.node.client).add(&self.node);
    }

    /// Waits until the lock is lost. The reason may not be certain yet.
    pub(crate) async fn gone(&self) {
        self.node.keep();
        let mut known = self.node.known.subscribe();
        let mut lost = pin!(known.wait_for(|known| known.is_lost));
        poll_fn(|cx| match self.status() {
            // When a stopped process resumes, its timers may fire after everything else that is ready has been polled,
            // and work must not continue meanwhile.
            Status::Lost(_) => Poll::Ready(()),
            Status::Held | Status::Suspect { .. } => lost.as_mut().poll(cx).map(drop),
        })
        .await;
    }

    pub(crate) async fn lost(&self) -> Lost {
        self.gone().await;
        self.reason_within(REASON_WAIT).await
    }

    /// Why the lock is lost, once it is, for callers that have stopped all work under it.
    pub(crate) async fn reason(&self) -> Lost {
        self.reason_within(REASON_WAIT_MAX).await
    }

    async fn reason_within(&self, time: Duration) -> Lost {
        timeout(time, self.node.reason()).await.unwrap_or(Lost::NodeDeleted)
    }

    /// Counts work until the value is dropped: a lock that is taken away is given to others when all work has stopped.
    pub(super) fn working(&self) -> Working<'_> {
        Working::begin(&self.node.known)
    }

    /// Runs `work` until it is done or the lock is lost: then drops `work` at once, and looks for the reason.
    pub(crate) async fn scope<F: Future>(
        &self,
        mut work: Pin<&mut Option<F>>,
    ) -> Result<F::Output, Lost> {
        let span = tracing::info_span!("zk.lock", path = self.path(), token = %self.token);
        let working = self.working();
        let done = together::unless_gone(self.gone(), work.as_mut()).instrument(span).await;
        drop(working);
        match done {
            Some(output) => Ok(output),
            None => Err(self.reason().await),
        }
    }

    pub(crate) async fn revoked(&self) -> Result<(), Lost> {
        let mut known = self.node.known.subscribe();
        let asked_for = async {
            // Fails only if the sender is gone.
            drop(known.wait_for(|known| known.is_revoked).await);
        };
        tokio::select! {
            biased;
            () = asked_for => Ok(()),
            // The watch on the node reports both.
            lost = self.lost() => Err(lost),
        }
    }

    pub(crate) async fn check(&self) -> Result<(), CheckError> {
        if let Status::Lost(lost) = self.status() {
            return Err(lost.into());
        }
        let confirmed = tokio::select! {
            biased;
            lost = self.out_of_touch() => return Err(lost.into()),
            confirmed = self.confirm() => confirmed,
        };
        // A loss that is known by now wins over an answer, and over a failure to ask.
        match self.status() {
            Status::Lost(lost) => Err(lost.into()),
            Status::Held | Status::Suspect { .. } => confirmed,
        }
    }

    /// Whether the node that was just seen under this name is the lock's: a read, where other contenders use the name too.
    pub(crate) async fn is_own_node(&self) -> Result<bool, ReadError> {
        let HeldNode { client, path, number, .. } = &*self.node;
        if number.is_none() {
            return Ok(true);
        }
        let found = quorum::answer(client, || client.exists(path)).await?;
        Ok(found.is_some_and(|stat| !self.node.is_another(&stat)))
    }

    async fn confirm(&self) -> Result<(), CheckError> {
        let HeldNode { client, path, number, .. } = &*self.node;
        let checked = client.multi().check(path).await;
        if number.is_some() {
            // After the answer, since a check that a server had no time for is repeated later: a node found now was
            // there then, unless it is younger.
            match client.get(path).await {
                Ok((_, stat)) if self.node.is_another(&stat) => {
                    return Err(self.lose(Lost::NodeDeleted).into());
                }
                // What is gone does not come back: if it was there for the check, it was another's.
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    return Err(self.lose(Lost::NodeDeleted).into());
                }
                Err(error) if matches!(checked, Ok(Ok(_))) => {
                    return Err(CheckError::Unavailable(nothing_written(error)));
                }
                // The result of the check is more precise.
                Ok(_) | Err(_) => {}
            }
        }
        match checked {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(MultiError { rejection: Rejection::NoNode, .. })) => {
                Err(self.lose(Lost::NodeDeleted).into())
            }
            Ok(Err(MultiError { rejection, .. })) => {
                Err(CheckError::Unavailable(WriteError::Rejected(rejection)))
            }
            Err(error) => Err(CheckError::Unavailable(error)),
        }
    }

    /// Records a loss whose reason is certain; the first one stays. Returns the recorded loss.
    pub(crate) fn lose(&self, lost: Lost) -> Lost {
        self.node.lose(lost)
    }

    /// Waits until the session can no longer be relied on, or the loss is known otherwise. No request.
    pub(crate) async fn out_of_touch(&self) -> Lost {
        self.node.out_of_touch().await
    }

    /// Takes the lock from its holder: it is lost at once. The node is deleted when the work has stopped, as far as
    /// possible.
    pub(super) fn take_away(&self) {
        self.lose(Lost::HeldTooLong);
        let held = self.clone();
        self.client().spawn(async move { held.give_away().await });
    }

    async fn give_away(&self) {
        let mut known = self.node.known.subscribe();
        // Continues even if the work has not stopped.
        let _ = timeout(STOP_WAIT, known.wait_for(|known| known.working == 0)).await;
        self.node.owned.give_away();
    }

    /// Marks the node as no longer held: its deletion is no loss then.
    pub(crate) fn put_away(&self) {
        self.node.known.send_modify(|known| known.is_put_away = true);
        self.node.watched_by(None);
    }
}

/// Keeps a node watched until this is dropped.
#[derive(Debug)]
pub(crate) struct Keeping(Option<Held>);

impl Keeping {
    /// Begins to watch a node.
    pub(crate) fn begin(held: &Held) -> Self {
        held.watch_over();
        Self(Some(held.clone()))
    }

    /// Hands the node over to the next holder.
    pub(super) fn passed_on(mut self) -> Self {
        Self(self.0.take())
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        if let Some(held) = &self.0 {
            held.put_away();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_until_it_has_stopped() {
        let known = watch::Sender::new(Known::default());
        let (first, second) = (Working::begin(&known), Working::begin(&known));
        let mut heard = known.subscribe();
        drop(first);
        assert_eq!(known.borrow().working, 1);
        known.send_if_modified(|known| {
            known.is_lost = true;
            false
        });
        assert!(!heard.has_changed().unwrap(), "it goes on");
        drop(second);
        assert!(heard.has_changed().unwrap(), "the last one has stopped");
        assert_eq!(heard.borrow_and_update().working, 0);
    }
}
