//! Leases that the leader confirms, for sessions that somebody relies on.

use super::{
    config::Lease,
    phase::Phase,
    slot::{Purpose, Slot},
    state::Session,
    timer::Timer,
    watch::Watcher,
};
use crate::{frame::RequestFrame, request::SyncRequest, text::Str, time::Time};

impl<R, W: Watcher> Session<R, W> {
    /// Until when the leader keeps this session, as far as [`Config::lease`](super::Config::lease) has it: counted from
    /// when the newest message was *sent* in whose answer the leader has taken part, and less than by the session
    /// timeout. `None` as for [`lease`](Session::lease), and before the leader has confirmed anything.
    #[must_use]
    pub fn confirmed_lease(&self) -> Option<Time> {
        self.liveness.confirmed_lease()
    }

    /// Whether somebody relies on the session's lasting, such as the holder of a lock: then the leader is asked to confirm
    /// it as often as pings would be sent, unless requests are under way that confirm it too. Does nothing if
    /// every answer [counts](Lease::Connection).
    ///
    /// Whoever begins to rely on the session can count on what has been confirmed so far, such as by the answer to a
    /// create.
    pub fn rely(&mut self, relied_on: bool) {
        if self.relied_on != relied_on && self.config.lease != Lease::Connection {
            self.relied_on = relied_on;
            self.watch_confirmation();
        }
    }

    pub(super) fn watch_confirmation(&mut self) {
        match self.phase {
            // Nothing is asked any more by who is about to go.
            Phase::Up(up) if self.relied_on && !up.negotiated.read_only && !self.closing => {
                self.timers.set(Timer::Confirm, self.liveness.confirmation_due());
            }
            _ => self.timers.stop(Timer::Confirm),
        }
    }

    /// Asks the leader for a confirmation, if it is due still. By a `sync`: that leaves no trace in anybody's log.
    pub(super) fn confirm(&mut self, now: Time) {
        if self.liveness.confirmation_due() <= now && !self.closing {
            if self.sends() {
                self.liveness.asked(now);
                let sync = SyncRequest { path: Str::from("/") };
                let slot = Slot::own(RequestFrame::of(&sync), Purpose::Confirm);
                // A lock is not lost over what somebody else's request costs.
                self.flight.send_first(now, slot, &mut self.link);
                self.has_sent(now);
            } else {
                // As soon as the connection has shown to live.
                self.liveness.not_asked(now);
            }
        }
        self.watch_confirmation();
    }
}
