//! Detection of requests that cost their connections.
//!
//! A server that receives more than it accepts (`jute.maxbuffer`), or a request that it fails over, ends the connection
//! without a word. The requests in flight are resent over the next one, the culprit with them, and so on: no request
//! would ever be answered. So fewer go out together each time, down to one:
//!
//! | connections in a row that a server has ended with a request in flight | it goes out |
//! |---|---|
//! | 0 | with all others |
//! | 1 | with at most [`WINDOW`] in flight |
//! | 2 and more | alone: everything ahead of it has been answered, everything else waits |
//!
//! A request that costs its connection when it is alone may still be unlucky: servers crash, and networks break. It
//! counts as evidence only if the connection was observed for a while before, without any request, and stayed alive
//! ([`Probation`]); if it ended within an eighth of that time after the request was sent; and if not a byte had arrived
//! meanwhile. A connection that ends while it is observed voids all evidence: the request was not the cause. One such
//! trial is enough for a request that is longer than any that this session has had an answer to; it takes [`TRIALS`]
//! for others, and one more for each request of this session that was answered after a trial had spoken against it.

use alloc::{boxed::Box, sync::Arc};
use core::time::Duration;

use super::fault::{Cause, Costly};
use crate::frame::RequestFrame;

/// Most requests in flight, as long as one of them was in flight when a connection ended. Also the number of requests
/// to distinguish afterwards, one at a time.
pub(crate) const WINDOW: usize = 64;

/// The number of connections ended with a request in flight from which on it goes out alone.
const LOSSES_ALONE: u8 = 2;

/// Trials that convict a request, unless its length does.
const TRIALS: u8 = 3;

/// Most trials, however many have been acquitted.
const TRIALS_MAX: u8 = 10;

/// Shortest request in bytes that may be too long for a server. No server is known to have a lower limit.
const LEN_SUSPECT: usize = 4 << 10;

/// How long a connection is observed before a trial, as a multiple of how long the last one lived with the request.
const OBSERVED: u32 = 8;

/// Shortest time to observe: a server that is busy takes a while to end a connection.
const OBSERVED_MIN: Duration = Duration::from_millis(400);

/// Longest time to observe. A cause that takes longer to show proves nothing: all other requests wait meanwhile.
const OBSERVED_MAX: Duration = Duration::from_secs(3);

/// The evidence against one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suspicion {
    /// Connections in a row that servers have ended with it under way.
    losses: u8,
    /// How many trials have spoken against it.
    trials: u8,
}

impl Suspicion {
    pub(crate) const NONE: Self = Self { losses: 0, trials: 0 };

    pub(crate) const fn is_any(self) -> bool {
        self.losses > 0
    }

    /// Whether it is to be sent with nothing else in flight.
    pub(crate) const fn goes_alone(self) -> bool {
        self.losses >= LOSSES_ALONE
    }

    /// How many requests may be in flight with it.
    pub(crate) const fn window(self) -> usize {
        match self.losses {
            0 => usize::MAX,
            1 => WINDOW,
            _ => 1,
        }
    }

    /// Records that a server has ended a connection with it in flight.
    pub(crate) const fn lost(&mut self) {
        self.losses = self.losses.saturating_add(1);
    }

    /// Records that a connection has ended for another reason than this request: it was only unlucky.
    pub(crate) fn clear(&mut self) {
        *self = Self { losses: self.losses.min(1), trials: 0 };
    }
}

/// What this session has learned about its servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects {
    /// The longest request that has been answered.
    len_answered: usize,
    /// Requests that were answered after a trial had spoken against them.
    acquitted: u8,
    /// How long the last connection lived with the oldest request that was in flight when a server ended it.
    lived: Option<Duration>,
}

/// How a connection has behaved without the suspected requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Probation {
    /// Nothing yet.
    #[default]
    NotBegun,
    /// It is being observed.
    Observing(Duration),
    /// It has stayed alive for this long: suspects may be sent, one at a time.
    Observed(Duration),
}

impl Probation {
    pub(crate) const fn allows(self) -> bool {
        matches!(self, Self::Observed(_))
    }

    /// Whether a connection that was observed, and then lived this long with a request, was ended over that.
    pub(crate) fn is_conclusive(self, lived: Duration) -> bool {
        matches!(self, Self::Observed(observed) if lived.saturating_mul(OBSERVED) <= observed)
    }
}

impl Suspects {
    /// Records that a user's request was answered.
    #[inline(always)]
    pub(crate) fn answered(&mut self, len: usize, suspicion: Suspicion) {
        self.len_answered = self.len_answered.max(len);
        if suspicion.trials > 0 {
            self.acquitted = self.acquitted.saturating_add(1);
        }
    }

    /// How long to observe a connection, if that can be conclusive.
    pub(crate) fn to_be_observed(&self) -> Option<Duration> {
        let time = self.lived?.saturating_mul(OBSERVED).max(OBSERVED_MIN);
        Some(time).filter(|time| *time <= OBSERVED_MAX)
    }

    fn probations_needed(&self, len: usize) -> u8 {
        if len >= LEN_SUSPECT && len > self.len_answered {
            1
        } else {
            TRIALS.saturating_add(self.acquitted).min(TRIALS_MAX)
        }
    }

    /// Records how long a connection lived with the oldest request that was in flight when a server ended it.
    pub(crate) const fn lived(&mut self, lived: Duration) {
        self.lived = Some(lived);
    }

    /// Counts a trial that has spoken against a request; returns the cause if that convicts it.
    pub(crate) fn convict(&self, frame: &RequestFrame, suspicion: &mut Suspicion) -> Option<Cause> {
        let needed = self.probations_needed(frame.len());
        suspicion.trials = suspicion.trials.saturating_add(1);
        (suspicion.trials >= needed).then(|| {
            Cause::CostsConnection(Box::new(Costly {
                op: frame.op(),
                path: frame.path().map(Arc::from),
                len: frame.len(),
                // This connection counts too.
                connections: u32::from(suspicion.losses).saturating_add(1),
                len_answered: self.len_answered,
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_alone_convicts_only_a_new_maximum() {
        let mut suspects = Suspects::default();
        assert_eq!(suspects.probations_needed(LEN_SUSPECT - 1), TRIALS);
        assert_eq!(suspects.probations_needed(LEN_SUSPECT), 1);
        suspects.answered(LEN_SUSPECT, Suspicion::default());
        assert_eq!(suspects.probations_needed(LEN_SUSPECT), TRIALS);
        assert_eq!(suspects.probations_needed(LEN_SUSPECT + 1), 1);
        suspects.answered(10, Suspicion { losses: 3, trials: 1 });
        assert_eq!(suspects.probations_needed(10), TRIALS + 1, "networks that break take more");
    }

    #[test]
    fn observation_is_eight_times_last_lifetime() {
        let of = |millis| {
            let lived = Some(Duration::from_millis(millis));
            Suspects { lived, ..Suspects::default() }.to_be_observed()
        };
        assert_eq!(Suspects::default().to_be_observed(), None);
        assert_eq!(of(1), Some(OBSERVED_MIN));
        assert_eq!(of(100), Some(Duration::from_millis(800)));
        assert_eq!(of(375), Some(OBSERVED_MAX));
        assert_eq!(of(376), None);
    }
}
