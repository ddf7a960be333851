//! How many requests may be in flight, and what the end of a connection proves about them.

use core::time::Duration;

use super::{
    fault::LinkError,
    in_flight::{InFlight, Sent},
    output::Outcome,
    pending_request::PendingRequest,
    phase::Phase,
    state::Session,
    suspects::{Probation, Suspicion},
    timer::Timer,
    watch::Watcher,
};
use crate::time::Time;

impl<R, W> InFlight<R, W> {
    /// Sent requests but for the session's own for confirmations: of these there is always one where answers take longer than
    /// the interval, and none of them costs a connection.
    pub(crate) fn sent_but_confirmations(&self) -> impl Iterator<Item = &Sent<R, W>> {
        self.sent.iter().filter(|sent| !sent.slot.is_confirmation())
    }

    /// Whether a request has to wait for others even if it could be sent.
    #[inline(always)]
    pub(crate) fn is_paced(&self) -> bool {
        let is_suspect = |sent: &Sent<R, W>| sent.slot.suspicion().is_any();
        !self.waiting.is_empty() || self.sent_but_confirmations().next().is_some_and(is_suspect)
    }

    /// Whether any request waits to be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the next request is to be sent alone.
    pub(crate) fn awaits_probation(&self) -> bool {
        self.waiting.front().is_some_and(|slot| slot.suspicion().goes_alone())
    }

    /// Whether the next request may be sent, beside those in flight.
    pub(crate) fn may_go(&self, slot: &PendingRequest<R, W>, probation: Probation) -> bool {
        let oldest = self.sent_but_confirmations().next();
        let oldest = oldest.map_or(Suspicion::NONE, |sent| sent.slot.suspicion());
        let window = oldest.window().min(slot.suspicion().window());
        let has_room =
            self.sent.len() < window || self.sent_but_confirmations().take(window).count() < window;
        has_room && (probation.allows() || !slot.suspicion().goes_alone())
    }

    /// When the oldest user's request was sent that begins within the first `written` bytes.
    pub(crate) fn oldest_user_sent(&self, written: u64) -> Option<Time> {
        let is_user = |sent: &&Sent<R, W>| matches!(sent.slot, PendingRequest::User { .. });
        self.sent.iter().find(is_user).filter(|sent| sent.start < written).map(|sent| sent.at)
    }

    /// The only request in flight, if it was to be alone.
    pub(crate) fn only_suspect(&mut self) -> Option<&mut Sent<R, W>> {
        let is_alone = self.sent_but_confirmations().nth(1).is_none();
        let only = self.sent.iter_mut().find(|sent| !sent.slot.is_confirmation());
        only.filter(|sent| is_alone && sent.slot.suspicion().goes_alone())
    }

    /// Changes the evidence against waiting requests.
    pub(crate) fn reconsider(&mut self, change: impl Fn(&mut Suspicion)) {
        for slot in &mut self.waiting {
            if let PendingRequest::User { suspicion, .. } = slot {
                change(suspicion);
            }
        }
    }
}

impl<R, W: Watcher> Session<R, W> {
    /// Begins to observe a connection before a request is tried alone over it.
    pub(super) fn observe(&mut self, now: Time) {
        let restoring = !matches!(self.phase, Phase::Up(up) if up.restoring == 0);
        let busy = restoring || !self.link.auth_pending.is_empty() || self.in_flight.has_sent();
        if busy || self.link.probation != Probation::NotBegun || !self.in_flight.awaits_probation()
        {
            return;
        }
        if let Some(time) = self.suspects.to_be_observed() {
            self.link.probation = Probation::Observing(time);
            self.timers.set(Timer::Probation, now.after(time));
        } else {
            self.link.probation = Probation::Observed(Duration::ZERO);
            self.send_waiting(now);
        }
    }

    /// Ends the observation of a connection. A last ping shows that it is still alive.
    pub(super) fn observed(&mut self, now: Time) {
        if let (Probation::Observing(time), Phase::Up(up)) = (self.link.probation, &mut self.phase)
        {
            up.doubts = up.doubts.max(1);
            self.link.probation = Probation::Observed(time);
            self.ping(now);
        }
    }

    /// Judges the requests in flight by the loss of an established connection, before they are sorted out. Returns the
    /// outcome of the culprit, if that is certain.
    pub(super) fn judge(
        &mut self,
        now: Time,
        why: &LinkError,
    ) -> Option<(PendingRequest<R, W>, Outcome)> {
        if !matches!(why, LinkError::Closed | LinkError::Reset) {
            return None;
        }
        let written = self.link.outbound.written();
        let at = self.in_flight.oldest_user_sent(written);
        let Some(at) = at else {
            if !matches!(self.phase, Phase::Up(up) if up.restoring > 0) {
                self.in_flight.reconsider(Suspicion::clear);
            }
            return None;
        };
        let lived = now.since(at);
        self.suspects.lived(lived);
        if !self.link.probation.is_conclusive(lived) || !self.link.inbound.buffer().is_empty() {
            return None;
        }
        let PendingRequest::User { request, suspicion, .. } =
            &mut self.in_flight.only_suspect()?.slot
        else {
            return None;
        };
        let cause = self.suspects.convict(&request.frame, suspicion)?;
        let slot = self.in_flight.take_suspect()?;
        self.in_flight.reconsider(|suspicion| *suspicion = Suspicion::NONE);
        self.rotation.succeeded();
        Some((slot, Outcome::Unknown(cause)))
    }
}
