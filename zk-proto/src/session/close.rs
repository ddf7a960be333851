//! The end of a session, requested or not.

use core::time::Duration;

use bytes::Bytes;

use super::{
    disposition::Disposition,
    fault::{Cause, CloseReason},
    output::{Answer, Outcome, Output, Place, State},
    pending_request::PendingRequest,
    phase::Phase,
    state::Session,
    timer::Timer,
    watch::{WatchNotice, Watcher},
};
use crate::{code::ErrorCode, data::Zxid, frame::RequestFrame, request::CloseSession, time::Time};

impl<R, W: Watcher> Session<R, W> {
    /// Ends the session, so that its ephemeral nodes are deleted now and not when it expires:
    /// within [`close_timeout`](super::Config::close_timeout).
    pub fn close(&mut self, now: Time, token: R) {
        self.close_within(now, self.config.close_timeout, token);
    }

    /// Ends the session, so that its ephemeral nodes are deleted now and not when it expires.
    ///
    /// Requests that were submitted before are still sent first; none can be submitted afterwards. Without a connection
    /// the session tries for one, at once and for as long as the limit allows; and again if that is lost before a
    /// server has confirmed. A server that does not know the session any more confirms it too. The token comes back as
    /// answered if a server confirmed, otherwise as unknown or not sent; either way the session is over then. Of several
    /// limits the shortest applies; the tokens of all but the first close come back at once.
    pub fn close_within(&mut self, now: Time, limit: Duration, token: R) {
        if let Some(over) = self.over_or_closing() {
            let until = now.after(limit);
            if self.timers.at(Timer::Close).is_some_and(|at| at > until) {
                self.timers.set(Timer::Close, until);
            }
            self.reply(token, Outcome::NotSent(Cause::SessionOver(over)));
            return;
        }
        // Throttled requests get their last chance now.
        self.end_pauses(now);
        let frame = RequestFrame::of(&CloseSession);
        self.in_flight.push(PendingRequest::Close { frame, token, place: Place(0) });
        self.closing = true;
        // No other connection is needed.
        self.leaving = false;
        self.timers.set(Timer::Close, now.after(limit));
        match self.phase {
            Phase::Up(_) => self.send_waiting(now),
            // No reachable server knows the session.
            _ if !self.identity.is_global() => self.finish(CloseReason::Closed),
            Phase::Waiting => self.dial(now),
            Phase::Dialing
            | Phase::Handshaking { .. }
            | Phase::Authenticating(_)
            | Phase::Over(_) => {}
        }
        self.check();
    }

    /// Ends the client's half of the session and leaves the servers' half as it is, for use
    /// elsewhere with [`credentials`](Session::credentials) taken before.
    pub fn detach(&mut self) {
        if self.phase.over().is_none() {
            self.finish(CloseReason::Closed);
        }
        self.check();
    }

    /// Handles that servers do not know the session any more: if a close was sent, it has taken effect.
    pub(super) fn is_gone(&mut self) {
        let closed = if self.close_is_in_doubt { self.in_flight.take_close() } else { None };
        if let Some(token) = closed {
            let code = ErrorCode::OK;
            let answer = Answer { zxid: Zxid(0), code, body: Bytes::new() };
            self.reply(token, Outcome::Answered(answer));
            self.finish(CloseReason::Closed);
        } else {
            self.finish(CloseReason::Expired);
        }
    }

    /// Ends the session: informs every waiter, once.
    pub(super) fn finish(&mut self, over: CloseReason) {
        self.finish_because(over, &Cause::SessionOver(over));
    }

    /// As [`finish`](Self::finish), with a more precise cause for the waiters.
    pub(super) fn finish_because(&mut self, over: CloseReason, cause: &Cause) {
        if self.phase.has_link() {
            self.outputs.push_back(Output::HangUp);
        }
        self.phase = Phase::Over(over);
        self.liveness.disowned();
        self.timers.stop_all();
        for (slot, disposition) in self.in_flight.take_all(self.link.outbound.written()) {
            let is_in_doubt =
                self.close_is_in_doubt && matches!(slot, PendingRequest::Close { .. });
            self.report(slot, if is_in_doubt { Disposition::Unknown } else { disposition }, cause);
        }
        self.settle_credentials();
        for credential in core::mem::take(&mut self.credentials) {
            if let Some(token) = credential.token {
                self.reply(token, credential.disposition.outcome(cause));
            }
        }
        for watcher in self.registry.take_all() {
            self.outputs.push_back(Output::Watch { watcher, notice: WatchNotice::Over(over) });
        }
        self.link.close();
        self.outputs.push_back(Output::State(State::Over(over)));
    }
}
