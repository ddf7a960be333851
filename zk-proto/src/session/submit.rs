//! Users' requests: submission, sending and withdrawal.

use super::{
    fault::Cause,
    output::{Outcome, Outgoing, Patience, Place, Withdrawn},
    pending_request::PendingRequest,
    phase::Phase,
    state::Session,
    watch::{WatchBy, Watcher},
};
use crate::time::Time;

impl<R, W: Watcher> Session<R, W> {
    /// Submits a request, to be sent as soon as there is a connection, behind all earlier ones.
    ///
    /// An operation that the server of this connection does not know is not sent to it again: that would cost another
    /// connection.
    ///
    /// The token is returned in exactly one [`Output::Reply`](super::Output::Reply), or when the request is
    /// [withdrawn](Session::withdraw). Returns the request's place.
    pub fn submit(&mut self, now: Time, request: Outgoing<R, W>) -> Place {
        let (len, len_max) = (request.frame.len(), self.config.request_len_max);
        let refusal = if let Some(over) = self.over_or_closing() {
            Some(Cause::SessionOver(over))
        } else if len > len_max {
            Some(Cause::TooLarge { len, len_max })
        } else if request.frame.op().is_the_sessions() {
            Some(Cause::Reserved(request.frame.op()))
        } else if WatchBy::asked_by(&request.frame) != request.watch.as_ref().map(|watch| watch.by)
        {
            Some(Cause::WatchMismatch)
        } else if request.patience == Patience::FailFast
            && (self.leaving || !matches!(self.phase, Phase::Up(_)))
        {
            Some(Cause::NotConnected)
        } else {
            None
        };
        let place = if let Some(cause) = refusal {
            self.reply(request.token, Outcome::NotSent(cause));
            Place(0)
        } else if self.unknown.contains(&request.frame.op()) {
            self.reply_unknown(request.token);
            Place(0)
        } else {
            self.pass_on(now, PendingRequest::user(request))
        };
        self.check();
        place
    }

    /// Withdraws a request whose user waits no longer: it is not sent if it has not been. `None` if it is finished
    /// already.
    ///
    /// A sent request keeps its place, so that its answer can be distinguished from the others'; if a server throttles
    /// it, that is the answer.
    pub fn withdraw(&mut self, place: Place) -> Option<Withdrawn<'_, R>> {
        self.in_flight.withdraw(place)
    }

    /// Sends a request, or queues it until requests can be sent. Waiting requests are sent first then: while requests
    /// can be sent, none waits.
    #[inline(always)]
    pub(super) fn pass_on(&mut self, now: Time, slot: PendingRequest<R, W>) -> Place {
        if !self.sends() || self.in_flight.is_paced() {
            return self.line_up(now, slot);
        }
        let place = self.in_flight.send_next(now, slot, &mut self.link, &mut self.server_watches);
        self.has_sent(now);
        place
    }

    /// Queues a request behind others, or until the connection has passed its trial.
    #[cold]
    pub(super) fn line_up(&mut self, now: Time, slot: PendingRequest<R, W>) -> Place {
        let place = self.in_flight.push(slot);
        self.send_waiting(now);
        place
    }

    pub(super) fn send_waiting(&mut self, now: Time) {
        if !self.sends() {
            return;
        }
        if self.in_flight.send_waiting(now, &mut self.link, &mut self.server_watches) {
            self.has_sent(now);
        }
        if self.in_flight.is_waiting() {
            self.observe(now);
        }
    }

    pub(super) const fn sends(&self) -> bool {
        matches!(self.phase, Phase::Up(up) if up.doubts == 0) && !self.leaving
    }

    #[inline(always)]
    pub(super) fn has_sent(&mut self, now: Time) {
        if self.liveness.sent(now) {
            self.watch_silence();
        }
    }
}
