//! How many requests may be in flight, and what the end of a connection proves about them.

use core::time::Duration;

use super::{
    fault::LinkError,
    flight::{Flight, Sent},
    output::Outcome,
    phase::Phase,
    slot::Slot,
    state::Session,
    suspects::{Suspicion, Trial},
    timer::Timer,
    watch::Watcher,
};
use crate::time::Time;

impl<R, W> Flight<R, W> {
    /// Whether a request has to wait for others even if it could be sent.
    #[inline(always)]
    pub(crate) fn is_paced(&self) -> bool {
        let is_suspect = |sent: &Sent<R, W>| sent.slot.suspicion().is_any();
        !self.waiting.is_empty() || self.sent.front().is_some_and(is_suspect)
    }

    /// Whether any request waits to be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the next request is to be sent alone.
    pub(crate) fn awaits_trial(&self) -> bool {
        self.waiting.front().is_some_and(|slot| slot.suspicion().goes_alone())
    }

    /// Whether the next request may be sent, beside those in flight.
    pub(crate) fn may_go(&self, slot: &Slot<R, W>, trial: Trial) -> bool {
        let oldest = self.sent.front().map_or(Suspicion::NONE, |sent| sent.slot.suspicion());
        let window = oldest.window().min(slot.suspicion().window());
        self.sent.len() < window && (trial.allows() || !slot.suspicion().goes_alone())
    }

    /// When the oldest user's request was sent that begins within the first `written` bytes.
    pub(crate) fn oldest_user_sent(&self, written: u64) -> Option<Time> {
        let is_user = |sent: &&Sent<R, W>| matches!(sent.slot, Slot::User { .. });
        self.sent.iter().find(is_user).filter(|sent| sent.start < written).map(|sent| sent.at)
    }

    /// The only request in flight, if it was to be alone.
    pub(crate) fn only_suspect(&mut self) -> Option<&mut Sent<R, W>> {
        let is_alone = self.sent.len() == 1;
        self.sent.front_mut().filter(|sent| is_alone && sent.slot.suspicion().goes_alone())
    }

    /// Changes the evidence against waiting requests.
    pub(crate) fn reconsider(&mut self, change: impl Fn(&mut Suspicion)) {
        for slot in &mut self.waiting {
            if let Slot::User { suspicion, .. } = slot {
                change(suspicion);
            }
        }
    }
}

impl<R, W: Watcher> Session<R, W> {
    /// Begins to observe a connection before a request is tried alone over it.
    pub(super) fn observe(&mut self, now: Time) {
        let restoring = !matches!(self.phase, Phase::Up(up) if up.restoring == 0);
        let busy = restoring || !self.link.auth_pending.is_empty() || self.flight.has_sent();
        if busy || self.link.trial != Trial::NotBegun || !self.flight.awaits_trial() {
            return;
        }
        if let Some(time) = self.suspects.to_be_observed() {
            self.link.trial = Trial::Observing(time);
            self.timers.set(Timer::Trial, now.after(time));
        } else {
            self.link.trial = Trial::Observed(Duration::ZERO);
            self.send_waiting(now);
        }
    }

    /// Ends the observation of a connection. A last ping shows that it is still alive.
    pub(super) fn observed(&mut self, now: Time) {
        if let (Trial::Observing(time), Phase::Up(up)) = (self.link.trial, &mut self.phase) {
            up.doubts = up.doubts.max(1);
            self.link.trial = Trial::Observed(time);
            self.ping(now);
        }
    }

    /// Judges the requests in flight by the loss of an established connection, before they are sorted out. Returns the
    /// outcome of the culprit, if that is certain.
    pub(super) fn judge(&mut self, now: Time, why: &LinkError) -> Option<(Slot<R, W>, Outcome)> {
        if !matches!(why, LinkError::Closed | LinkError::Reset) {
            return None;
        }
        let written = self.link.written();
        let at = self.flight.oldest_user_sent(written);
        let Some(at) = at else {
            if !matches!(self.phase, Phase::Up(up) if up.restoring > 0) {
                self.flight.reconsider(Suspicion::clear);
            }
            return None;
        };
        let lived = now.since(at);
        self.suspects.lived(lived);
        if !self.link.trial.is_conclusive(lived) || !self.link.inbound.buffer().is_empty() {
            return None;
        }
        let Slot::User { request, suspicion, .. } = &mut self.flight.only_suspect()?.slot else {
            return None;
        };
        let cause = self.suspects.convict(&request.frame, suspicion)?;
        let slot = self.flight.take_first_user(written)?;
        self.flight.reconsider(|suspicion| *suspicion = Suspicion::NONE);
        self.rotation.succeeded();
        Some((slot, Outcome::Unknown(cause)))
    }
}
