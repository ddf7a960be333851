//! Timers that have run out: pings, silence, expiry.

use super::{
    fault::{CloseReason, LinkError},
    phase::Phase,
    state::Session,
    timer::Timer,
    watch::Watcher,
};
use crate::time::Time;

impl<R, W: Watcher> Session<R, W> {
    /// Reports that [`deadline`](Session::deadline) has come. Harmless if it has not.
    pub fn elapsed(&mut self, now: Time) {
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                Timer::Expiry => self.finish(CloseReason::Expired),
                Timer::Close => self.finish(CloseReason::Closed),
                Timer::Dial => self.drop_link(now, LinkError::TimedOut),
                Timer::Silence => self.fell_silent(now),
                Timer::Confirm => self.confirm(now),
                Timer::Ping => self.ping(now),
                Timer::Retry => self.dial(now),
                Timer::Probation => self.observed(now),
                Timer::Probe => self.probe(),
                Timer::Pause => self.end_due_pauses(now),
                Timer::Unwatch => self.remove_again(now),
            }
        }
        self.check();
    }

    /// Sends a heartbeat, unless the close of the session is in flight: the server closes the connection behind that,
    /// and bytes that it has not read by then can cost its answer.
    pub(super) fn ping(&mut self, now: Time) {
        if let Phase::Up(_) = self.phase {
            if self.in_flight.close_was_sent(u64::MAX) {
                self.liveness.sent(now);
            } else {
                self.note_drain(now);
                self.link.write_ping(!self.liveness.is_waiting());
                self.liveness.pinged(now);
            }
            self.watch_silence();
        }
    }

    /// Bytes that leave slowly are progress too, and the answer to a ping behind them is not due yet.
    pub(super) fn note_drain(&mut self, now: Time) {
        if self.link.drains(now) {
            self.liveness.drained(now);
        }
    }

    /// Handles silence: the connection counts as dead, unless it has been taking our bytes.
    pub(super) fn fell_silent(&mut self, now: Time) {
        self.note_drain(now);
        if self.liveness.silence() <= now {
            self.drop_link(now, LinkError::TimedOut);
        } else {
            self.watch_silence();
        }
    }

    pub(super) fn watch_expiry(&mut self) {
        if let Some(at) = self.liveness.expiry().filter(|_| self.identity.is_established()) {
            self.timers.set(Timer::Expiry, at);
        }
    }

    pub(super) fn watch_silence(&mut self) {
        // Behind the close there are no pings.
        let closes = self.in_flight.close_was_sent(u64::MAX);
        let owed = self.in_flight.oldest_sent().filter(|_| !closes);
        self.timers.set(Timer::Ping, self.liveness.ping_due(owed));
        self.timers.set(Timer::Silence, self.liveness.silence());
    }
}
