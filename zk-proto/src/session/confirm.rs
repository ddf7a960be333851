//! Leases that the leader confirms, for sessions that users rely on.

use super::{
    config::Lease,
    pending_request::{PendingRequest, Purpose},
    phase::Phase,
    state::Session,
    timer::Timer,
    watch::Watcher,
};
use crate::{frame::RequestFrame, request::SyncRequest, text::Str, time::Time};

impl<R, W: Watcher> Session<R, W> {
    /// Until when the leader keeps this session, by the rule of [`Config::lease`](super::Config::lease): counted from
    /// when the newest message was *sent* of which it had been told when it was last involved in an answer, for less than
    /// the session timeout. `None` as for [`lease`](Session::lease), and before the leader has confirmed anything.
    #[must_use]
    pub fn confirmed_lease(&self) -> Option<Time> {
        self.liveness.confirmed_lease()
    }

    /// Sets whether a user relies on the session's lasting, such as the holder of a lock: then the session asks the
    /// leader to confirm it at least as often as it would send pings, unless writes confirm it too. Does nothing if every answer
    /// [counts](Lease::Connection).
    ///
    /// A user that begins to rely on the session can count on earlier confirmations, such as the answer to a create.
    pub fn rely(&mut self, relied_on: bool) {
        if self.relied_on != relied_on && self.config.lease != Lease::Connection {
            self.relied_on = relied_on;
            self.watch_confirmation();
        }
    }

    pub(super) fn watch_confirmation(&mut self) {
        match self.phase {
            // A session that is about to end asks nothing any more.
            Phase::Up(up) if self.relied_on && !up.negotiated.read_only && !self.closing => {
                self.timers.set(Timer::Confirm, self.liveness.confirmation_due());
            }
            _ => self.timers.stop(Timer::Confirm),
        }
    }

    /// Asks the leader for a confirmation, if it is still due. By a `sync`, which leaves no trace in any log.
    pub(super) fn confirm(&mut self, now: Time) {
        if self.liveness.confirmation_due() <= now && !self.closing {
            if self.sends() {
                self.liveness.asked(now);
                let sync = SyncRequest { path: Str::from("/") };
                let slot = PendingRequest::own(RequestFrame::of(&sync), Purpose::Confirm);
                // Other users' requests must not cost a lock.
                self.in_flight.send_first(now, slot, &mut self.link);
                self.has_sent(now);
            } else {
                // Asks as soon as the connection has proved to be alive.
                self.liveness.not_asked(now);
            }
        }
        self.watch_confirmation();
    }
}
