//! Throttled requests: kept, and resent after a pause.
//!
//! Such a request has not been carried out. It is resent behind all requests submitted meanwhile, so that its place
//! among all requests changes; its submitter still knows it by the first one.

use super::{
    disposition::Disposition,
    fault::{Broken, Cause, CloseReason},
    pending_request::PendingRequest,
    state::Session,
    timer::Timer,
    watch::Watcher,
};
use crate::{code::ErrorCode, time::Time};

impl<R, W: Watcher> Session<R, W> {
    /// Handles a server's refusal of a request that is to be resent.
    pub(super) fn throttled(
        &mut self,
        now: Time,
        slot: PendingRequest<R, W>,
    ) -> Result<(), Broken> {
        // Before the pause: a paused request counts among those that are about to arm a watch.
        let undone = match slot.asks() {
            Some((_, path)) => self.add_watch_refused(now, path, ErrorCode::THROTTLED_OP),
            None => Ok(()),
        };
        if self.closing {
            // It could only be queued behind the close.
            let disposition =
                if slot.was_sent() { Disposition::Unknown } else { Disposition::NotSent };
            self.report(slot, disposition, &Cause::SessionOver(CloseReason::Closed));
        } else {
            self.in_flight.pause(now, slot, &mut self.rng);
            self.watch_pauses();
        }
        undone
    }

    /// Resends the requests whose pauses have ended.
    pub(super) fn end_due_pauses(&mut self, now: Time) {
        while let Some(slot) = self.in_flight.take_due(now) {
            self.in_flight.push(slot);
        }
        self.send_waiting(now);
        self.watch_pauses();
    }

    /// Ends all pauses.
    pub(super) fn end_pauses(&mut self, now: Time) {
        for slot in self.in_flight.take_pausing() {
            self.in_flight.push(slot);
        }
        self.send_waiting(now);
        self.watch_pauses();
    }

    fn watch_pauses(&mut self) {
        match self.in_flight.next_due() {
            Some(at) => self.timers.set(Timer::Pause, at),
            None => self.timers.stop(Timer::Pause),
        }
    }
}
