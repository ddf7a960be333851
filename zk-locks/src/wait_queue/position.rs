//! A place in a queue, and its events.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};
use zk_client::{
    Cause, ChildNames, Client, EventType, NodeEvent, OwnedNode, Pending, ReadError, Rejection,
    SessionEnd, SessionId, Stat, Watch, bytes::Bytes,
};

use super::{
    Settings,
    asked::{LONG_WAIT, Looking, is_answered},
    listing::Listing,
    previous_holder::{LookingBack, PreviousHolder},
};
use crate::{
    contender::REVOKE,
    entry::{Entry, SEQUENCE_MAX},
    error::AcquireError,
    observe::Observers,
};

/// Our place in a queue. Dropping it leaves the queue.
///
/// Holds the whole state of a wait, so that the wait can be dropped and resumed.
#[derive(Debug)]
pub(crate) struct Position {
    pub(crate) node: OwnedNode,
    pub(crate) entry: Entry,
    /// A node that is not waited for: that of our read lock during an upgrade.
    pub(super) besides: Option<String>,
    /// On our own node; fires if it is deleted.
    pub(crate) own_watch: Option<Watch>,
    /// Whether a client has asked for the lock back already.
    pub(crate) revoked: bool,
    /// The version of our own node's data, as far as it has been read: others write into it to ask for the place. `None` if it
    /// may not be read.
    version: Option<i32>,
    /// The known state of the queue; `None` if it has to be listed (again).
    pub(super) listing: Option<Listing>,
    /// The nodes ahead that are watched.
    pub(super) watched: Vec<Watched>,
    /// When to watch our own node as well, if that was put off.
    pub(super) own_at: Option<Instant>,
    /// When to list the queue again without an event.
    pub(super) recheck_at: Option<Instant>,
    /// What is known of the previous holder, where that matters.
    pub(super) previous: Option<PreviousHolder>,
    /// The report of the wait.
    pub(super) span: WaitSpan,
    pub(super) looking: Option<Looking<Names>>,
    /// The reads in flight that arm watches.
    pub(super) arming: Option<Arming>,
    /// The listing in flight that arms one watch on the whole queue.
    pub(super) herding: Option<Box<Looking<WatchedNames>>>,
    /// The read behind a listing that shows whose our node was on it, where names do not tell.
    pub(super) confirming: Option<Box<Looking<Option<Stat>>>>,
    /// The reads that show what became of the previous holder.
    pub(super) looking_back: Option<Box<LookingBack>>,
}

/// A wait so far: reports that it was given up, unless it is ended before this is dropped.
#[derive(Debug)]
pub(crate) struct WaitSpan {
    pub(super) since: Instant,
    /// How many contenders were ahead at first.
    pub(super) ahead: Option<usize>,
    observers: Observers,
    path: Option<String>,
}

/// A place at the head of the queue without its node.
#[derive(Debug)]
pub(crate) struct DetachedPosition {
    entry: Entry,
    own_watch: Option<Watch>,
    revoked: bool,
    version: Option<i32>,
    listing: Option<Listing>,
    previous: Option<PreviousHolder>,
    span: WaitSpan,
}

impl DetachedPosition {
    /// Restores the place: the trade failed.
    pub(crate) fn back(self, node: OwnedNode) -> Position {
        let Self { entry, own_watch, revoked, version, listing, previous, span } = self;
        let (besides, watched) = (None, Vec::new());
        let (own_at, recheck_at, looking, arming) = (None, None, None, None);
        let (herding, confirming, looking_back) = (None, None, None);
        Position {
            node,
            entry,
            besides,
            own_watch,
            revoked,
            version,
            listing,
            watched,
            own_at,
            recheck_at,
            previous,
            span,
            looking,
            arming,
            herding,
            confirming,
            looking_back,
        }
    }

    /// Whether a client had asked for the lock back.
    pub(crate) const fn is_revoked(&self) -> bool {
        self.revoked
    }

    /// The version in which the node's data has been read, unless it is known that a client has asked for the lock back: in a
    /// later one it may be asked for.
    pub(crate) fn read_version(&self) -> Option<i32> {
        self.version.filter(|_| !self.revoked)
    }

    /// Ends the wait: the node was traded for a grant.
    pub(crate) fn traded(mut self) -> Waited {
        self.span.end()
    }
}

/// The duration of a wait, and the number of contenders ahead at its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited {
    pub(crate) time: Duration,
    pub(crate) ahead: Option<usize>,
}

impl WaitSpan {
    /// Reports that the wait begins.
    fn begin(path: &str, observers: Observers) -> Self {
        observers.tell(|observer| observer.joined(path));
        Self { since: Instant::now(), ahead: None, observers, path: Some(path.to_owned()) }
    }

    pub(crate) fn end(&mut self) -> Waited {
        if let Some(path) = self.path.take() {
            self.observers.tell(|observer| observer.left(&path));
        }
        Waited { time: self.since.elapsed(), ahead: self.ahead }
    }
}

impl Drop for WaitSpan {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            self.observers.tell(|observer| {
                observer.left(path);
                observer.given_up(path, self.since.elapsed());
            });
        }
    }
}

/// What a listing tells.
pub(super) type Names = (ChildNames, Stat);

/// What a listing tells that arms a watch.
type WatchedNames = ((Vec<String>, Stat), Watch);

/// A read with a watch in flight.
pub(super) type Read = Pending<((Bytes, Stat), Watch), ReadError>;

/// The reads in flight, and their first result.
#[derive(Debug)]
pub(super) struct Arming {
    pub(super) ahead: Vec<(String, Read)>,
    pub(super) own: Option<Read>,
    pub(super) wake: Option<Wake>,
}

/// A watched node ahead of us.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) name: String,
    pub(super) owner: SessionId,
    pub(super) watch: Watch,
}

/// Why a wait has ended.
#[derive(Debug)]
pub(super) enum Wake {
    /// A node ahead is gone.
    Gone { name: String, was_of: Option<SessionId> },
    /// Something else happened, or it is time to list the queue again.
    LookAgain,
    /// The wait has become a long one: our own node is to be watched as well.
    WatchOwn,
}

impl Position {
    pub(super) fn new(
        node: OwnedNode,
        besides: Option<String>,
        settings: &Settings,
    ) -> Result<Self, AcquireError> {
        let span = WaitSpan::begin(node.path(), settings.observers.clone());
        let entry =
            settings.filter.parse(node.name().to_owned()).map_err(|_| AcquireError::NodeDeleted)?;
        let sequence = node.sequence().unwrap_or(entry.sequence);
        // Those who read another number in its name have another order.
        if sequence != entry.sequence || !(0..=SEQUENCE_MAX).contains(&sequence) {
            return Err(AcquireError::SequenceExhausted { sequence });
        }
        Ok(Self {
            node,
            entry,
            besides,
            own_watch: None,
            revoked: false,
            version: Some(0),
            listing: None,
            watched: Vec::new(),
            own_at: None,
            recheck_at: None,
            previous: None,
            span,
            looking: None,
            arming: None,
            herding: None,
            confirming: None,
            looking_back: None,
        })
    }

    /// Splits this into the node, its watch and its revocation, and the wait, which is given up unless it is ended.
    pub(crate) fn granted(self) -> (OwnedNode, Option<Watch>, bool, WaitSpan) {
        (self.node, self.own_watch, self.revoked, self.span)
    }

    /// Lends the node for a trade, with the rest of the place in case the trade fails.
    pub(crate) fn lend(self) -> (OwnedNode, DetachedPosition) {
        let Self { node, entry, own_watch, revoked, version, listing, previous, span, .. } = self;
        (node, DetachedPosition { entry, own_watch, revoked, version, listing, previous, span })
    }

    /// Reads our own node, into which others have written: they may have asked for the place.
    ///
    /// # Errors
    /// If the session has ended.
    pub(crate) async fn read_own(&mut self, client: &Client) -> Result<(), AcquireError> {
        match client.get(self.node.path()).await {
            Ok((data, stat)) if self.is_own_node(&stat) => {
                self.revoked |= data == REVOKE;
                self.version = Some(stat.version);
            }
            Err(ReadError::Unavailable(Cause::SessionEnded(end))) => {
                return Err(AcquireError::SessionEnded(end));
            }
            // A contender that may not read its node cannot be asked.
            Err(ReadError::Rejected(rejection)) if rejection != Rejection::NoNode => {
                self.version = None;
            }
            // The next listing shows whether it is still there.
            Ok(_) | Err(_) => {}
        }
        Ok(())
    }

    /// The number of contenders ahead when the queue was last listed.
    pub(crate) fn ahead(&self) -> Option<usize> {
        self.listing.as_ref().map(Listing::ahead)
    }

    /// The epoch of the connection over which, or over a later one, the queue was last listed.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.listing.as_ref().map(Listing::epoch)
    }

    /// Whether there was a contender behind us when the queue was last listed.
    pub(crate) fn is_followed(&self) -> bool {
        self.listing.as_ref().is_some_and(Listing::is_followed)
    }

    /// Whether what was read under the name of our node is of our node: names without an id can be another's later.
    pub(super) fn is_own_node(&self, stat: &Stat) -> bool {
        stat.czxid == self.node.stat().czxid
    }

    /// Discards what was known of the queue some time ago, if that may be over by now and no watch would tell: another
    /// client may have deleted our node at the head of the queue, which nobody watches until the wait is over. Returns
    /// whether it was old.
    pub(crate) fn forget_if_old(&mut self) -> bool {
        let is_old = |listing: &Listing| listing.ahead() == 0 && listing.age() >= LONG_WAIT;
        let Self { listing, confirming, looking, herding, .. } = self;
        let is_old = listing.as_ref().is_some_and(is_old)
            // A read under way will show what has become of our node.
            && confirming.as_mut().is_none_or(|read| is_answered(&mut read.names));
        let is_old = is_old
            || looking.as_mut().is_some_and(Looking::is_old)
            || herding.as_mut().is_some_and(|it| it.is_old());
        if is_old {
            self.forget();
        }
        is_old
    }

    /// Discards the known state of the queue.
    pub(crate) fn forget(&mut self) {
        (self.listing, self.looking, self.arming) = (None, None, None);
        (self.herding, self.confirming) = (None, None);
    }

    /// Whether our own node is to be watched now, besides the nearest `sight` nodes ahead.
    ///
    /// At once, if an event may prove the grant. Otherwise the queue will be listed in any case, which shows our own
    /// node: its watch is only for an endless wait, and a lock that changes hands a thousand times a second should not
    /// pay for it.
    pub(super) fn wants_own_watch(&mut self, sight: usize) -> bool {
        if self.own_watch.is_some() {
            return false;
        }
        let may_prove_grant =
            |listing: &Listing| listing.ahead() > 0 && listing.may_prove_grant(sight);
        if self.listing.as_ref().is_some_and(may_prove_grant) {
            return true;
        }
        let now = Instant::now();
        *self.own_at.get_or_insert(now + LONG_WAIT) <= now
    }

    /// Whether our own node is watched, and nothing has happened to it since. A watch that has fired is dropped.
    pub(super) fn is_undisturbed(&mut self) -> bool {
        let undisturbed = self.own_watch.as_mut().is_some_and(|watch| watch.try_event().is_none());
        if !undisturbed {
            self.own_watch = None;
        }
        undisturbed
    }

    /// Waits for the next event of a watched node.
    pub(super) async fn heard(&mut self) -> Result<Wake, AcquireError> {
        let Self { own_watch, watched, own_at, recheck_at, .. } = self;
        let own_at = own_at.filter(|_| own_watch.is_none());
        let wait_ends = async {
            match [own_at, *recheck_at].into_iter().flatten().min() {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // If it was deleted, the next listing shows why: a session that ends takes its nodes along, and gets no
            // answers any more.
            own = watched_event(own_watch) => {
                *own_watch = None;
                own.map(|_| Wake::LookAgain)
            }
            wake = poll_fn(|cx| event_of(watched, cx)) => wake,
            () = wait_ends => Ok(match *recheck_at {
                Some(at) if own_at.is_none_or(|own_at| at < own_at) => {
                    *recheck_at = None;
                    Wake::LookAgain
                }
                _ => Wake::WatchOwn,
            }),
        }
    }
}

/// The event of a watch; never resolves if there is none.
pub(crate) async fn watched_event(watch: &mut Option<Watch>) -> Result<NodeEvent, AcquireError> {
    match watch {
        Some(watch) => watch.await.map_err(AcquireError::SessionEnded),
        None => std::future::pending().await,
    }
}

/// The next event of any of these nodes, which is then removed from the list.
fn event_of(watched: &mut Vec<Watched>, cx: &mut Context<'_>) -> Poll<Result<Wake, AcquireError>> {
    for index in 0..watched.len() {
        let Poll::Ready(event) = Pin::new(&mut watched[index].watch).poll(cx) else { continue };
        let Watched { name, owner, .. } = watched.remove(index);
        return Poll::Ready(woken(event, name, owner));
    }
    Poll::Pending
}

fn woken(
    event: Result<NodeEvent, SessionEnd>,
    name: String,
    owner: SessionId,
) -> Result<Wake, AcquireError> {
    match event.map_err(AcquireError::SessionEnded)? {
        NodeEvent { kind: EventType::NODE_DELETED, .. } => {
            Ok(Wake::Gone { name, was_of: Some(owner) })
        }
        _ => Ok(Wake::LookAgain),
    }
}
