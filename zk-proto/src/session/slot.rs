//! What occupies a place in the order of requests: users' requests, the session's own, its end.

use alloc::{boxed::Box, sync::Arc};

use super::{
    output::{Outgoing, Patience, Place},
    suspects::Suspicion,
    watch::{WatchBy, WatchIntent},
};
use crate::frame::RequestFrame;

/// What occupies a place in the order of requests.
#[derive(Debug)]
pub(crate) enum Slot<R, W> {
    /// Submitted by a user.
    User {
        request: Outgoing<R, W>,
        /// Whether it was sent over an earlier connection, so that it may have been carried out.
        was_sent: bool,
        suspicion: Suspicion,
        place: Place,
        rare: Option<Box<Rare>>,
    },
    /// The session's own business with the server of one connection; never survives that.
    Own { frame: RequestFrame, purpose: Purpose, place: Place },
    /// The end of the session. Nothing follows it.
    Close { frame: RequestFrame, token: R, place: Place },
}

/// What few requests have. It stands apart because requests are moved from queue to queue.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// How often servers have had no time for it.
    refusals: u8,
    /// The place that its user knows it by, once it has been refused.
    first: Option<Place>,
    /// What it makes the server watch for good, even if nobody wants to hear of it any more.
    pub(crate) asks: Option<(WatchBy, Arc<str>)>,
}

/// What the session itself asks a server for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Arms watches again on a new connection.
    Restore,
    /// Arms a recursive watch again that a later request may have replaced.
    Rearm(Arc<str>),
    /// Removes all watches from a path that nobody waits for any more.
    Unwatch(Arc<str>),
    /// Has the leader confirm that it knows of the session.
    Confirm,
}

/// What a request has that arms such a watch.
#[cold]
fn asking<W>(watch: &WatchIntent<W>) -> Option<Box<Rare>> {
    let asks = || Some((watch.by, watch.path.clone()));
    watch.by.is_persistent().then(|| Box::new(Rare { asks: asks(), ..Rare::default() }))
}

impl<R, W> Slot<R, W> {
    /// A user's request.
    ///
    /// Inlined, as is what follows until it is sent: left to itself the compiler moves it from call to call, which takes
    /// as long as a tenth of all that a session does for a request.
    #[inline(always)]
    pub(crate) fn user(request: Outgoing<R, W>) -> Self {
        let rare = request.watch.as_ref().and_then(|watch| asking(watch));
        let (suspicion, place) = (Suspicion::NONE, Place(0));
        Self::User { request, was_sent: false, suspicion, place, rare }
    }

    /// What the session itself asks for.
    pub(crate) const fn own(frame: RequestFrame, purpose: Purpose) -> Self {
        Self::Own { frame, purpose, place: Place(0) }
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

    pub(super) const fn rare(&self) -> Option<&Rare> {
        match self {
            Self::User { rare: Some(rare), .. } => Some(rare),
            _ => None,
        }
    }

    /// The place that it was submitted at.
    #[inline(always)]
    pub(crate) fn first(&self) -> Place {
        match self.rare() {
            Some(Rare { first: Some(first), .. }) => *first,
            _ => self.place(),
        }
    }

    #[cfg(debug_assertions)]
    pub(crate) fn was_refused(&self) -> bool {
        self.rare().is_some_and(|rare| rare.refusals > 0)
    }

    /// A server had no time for it: how often that has happened. `None` if it is no user's.
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

    /// Whether a server that has no time for it is to be asked again.
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

    /// Whoever waits for the outcome, if that is not the session itself.
    pub(crate) fn into_token(self) -> Option<R> {
        match self {
            Self::User { request, .. } => Some(request.token),
            Self::Close { token, .. } => Some(token),
            Self::Own { .. } => None,
        }
    }

    /// What speaks against it.
    pub(crate) const fn suspicion(&self) -> Suspicion {
        match self {
            Self::User { suspicion, .. } => *suspicion,
            Self::Own { .. } | Self::Close { .. } => Suspicion::NONE,
        }
    }
}
