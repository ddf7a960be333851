//! The entries in the order of requests: users' requests, the session's own, and the close.

use alloc::{boxed::Box, sync::Arc};

use super::{
    output::{Outgoing, Patience, Place},
    suspects::Suspicion,
    watch::{WatchBy, WatchIntent},
};
use crate::{code::ErrorCode, frame::RequestFrame};

/// An entry in the order of requests.
#[derive(Debug)]
pub(crate) enum PendingRequest<R, W> {
    /// Submitted by a user.
    User {
        request: Outgoing<R, W>,
        /// Whether it was sent over an earlier connection, so that it may have been carried out.
        was_sent: bool,
        suspicion: Suspicion,
        place: Place,
        rare: Option<Box<RareFields>>,
    },
    /// A request of the session itself, for one connection; never survives that.
    Own { frame: RequestFrame, purpose: Purpose, place: Place },
    /// The close of the session. Nothing follows it.
    Close { frame: RequestFrame, token: R, place: Place },
}

/// Fields that few requests need. Kept apart because requests are moved from queue to queue.
#[derive(Debug, Default)]
pub(crate) struct RareFields {
    /// How often servers have throttled it.
    refusals: u8,
    /// The place that its user knows it by, once it has been refused.
    first: Option<Place>,
    /// The persistent watch that it makes the server arm, even if no watcher is left.
    pub(crate) asks: Option<(WatchBy, Arc<str>)>,
    /// Whether its frame asks for a watch whose watcher has gone.
    pub(crate) is_unwanted: bool,
}

/// The purpose of a request of the session itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Arms watches again on a new connection.
    Restore,
    /// Arms a recursive watch again that a later request may have replaced.
    Rearm(Arc<str>),
    /// Removes all watches from a path that no longer has watchers.
    Unwatch(Arc<str>),
    /// Makes the leader confirm that it knows the session.
    Confirm,
}

/// The [`RareFields`] fields of a request that arms a persistent watch.
#[cold]
fn asking<W>(watch: &WatchIntent<W>) -> Option<Box<RareFields>> {
    let asks = || Some((watch.by, watch.path.clone()));
    watch.by.is_persistent().then(|| Box::new(RareFields { asks: asks(), ..RareFields::default() }))
}

impl<R, W> PendingRequest<R, W> {
    /// A user's request.
    ///
    /// Inlined, like all further steps until it is sent: otherwise the compiler moves it from call to call, which takes
    /// as long as a tenth of all that a session does for a request.
    #[inline(always)]
    pub(crate) fn user(request: Outgoing<R, W>) -> Self {
        let rare = request.watch.as_ref().and_then(|watch| asking(watch));
        let (suspicion, place) = (Suspicion::NONE, Place(0));
        Self::User { request, was_sent: false, suspicion, place, rare }
    }

    /// A request of the session itself.
    pub(crate) const fn own(frame: RequestFrame, purpose: Purpose) -> Self {
        Self::Own { frame, purpose, place: Place(0) }
    }

    /// Whether it is the session's own, for a confirmation by the leader.
    pub(crate) const fn is_confirmation(&self) -> bool {
        matches!(self, Self::Own { purpose: Purpose::Confirm, .. })
    }

    pub(crate) const fn place(&self) -> Place {
        match self {
            Self::User { place, .. } | Self::Own { place, .. } | Self::Close { place, .. } => {
                *place
            }
        }
    }

    pub(crate) const fn put(&mut self, at: Place) {
        match self {
            Self::User { place, .. } | Self::Own { place, .. } | Self::Close { place, .. } => {
                *place = at;
            }
        }
    }

    pub(super) const fn rare(&self) -> Option<&RareFields> {
        match self {
            Self::User { rare: Some(rare), .. } => Some(rare),
            _ => None,
        }
    }

    /// The place at which it was submitted.
    #[inline(always)]
    pub(crate) fn first(&self) -> Place {
        match self.rare() {
            Some(RareFields { first: Some(first), .. }) => *first,
            _ => self.place(),
        }
    }

    #[cfg(debug_assertions)]
    pub(crate) fn was_refused(&self) -> bool {
        self.rare().is_some_and(|rare| rare.refusals > 0)
    }

    /// Counts a refusal and returns the number of refusals so far. `None` if it is not a user's request.
    pub(crate) fn refused(&mut self) -> Option<u8> {
        let Self::User { place, rare, .. } = self else { return None };
        let rare = rare.get_or_insert_default();
        rare.first.get_or_insert(*place);
        rare.refusals = rare.refusals.saturating_add(1);
        Some(rare.refusals)
    }

    /// Whether it was sent over an earlier connection, so that it may have been carried out.
    pub(crate) const fn was_sent(&self) -> bool {
        matches!(self, Self::User { was_sent: true, .. })
    }

    /// Whether it may have been carried out although it is answered with this code: over an earlier connection.
    pub(crate) const fn is_open(&self, err: ErrorCode) -> bool {
        self.was_sent() && self.frame().op().writes() && err.is_about_the_server()
    }

    /// Whether it is to be resent if a server throttles it.
    pub(crate) const fn bears_throttling(&self) -> bool {
        matches!(self, Self::User { request: Outgoing { patience: Patience::Throttling, .. }, .. })
    }

    pub(crate) const fn frame(&self) -> &RequestFrame {
        match self {
            Self::User { request: Outgoing { frame, .. }, .. }
            | Self::Own { frame, .. }
            | Self::Close { frame, .. } => frame,
        }
    }

    /// The token of the caller that waits for the outcome, unless that is the session itself.
    pub(crate) fn into_token(self) -> Option<R> {
        match self {
            Self::User { request, .. } => Some(request.token),
            Self::Close { token, .. } => Some(token),
            Self::Own { .. } => None,
        }
    }

    /// The evidence against it.
    pub(crate) const fn suspicion(&self) -> Suspicion {
        match self {
            Self::User { suspicion, .. } => *suspicion,
            Self::Own { .. } | Self::Close { .. } => Suspicion::NONE,
        }
    }
}
