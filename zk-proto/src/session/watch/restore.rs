//! Restoring watches on a new connection.

use super::{
    notice::WatchNotice,
    set_watches::{BATCH_LEN_MAX, set_watches},
    subscribers::Watcher,
};
use crate::{
    code::ErrorCode,
    op::OpCode,
    session::{
        fault::{Broken, LinkError},
        output::Output,
        pending_request::{PendingRequest, Purpose},
        phase::Phase,
        state::Session,
    },
    time::Time,
};

/// Batches are not made smaller than this: no server is known to have a lower limit.
const BATCH_LEN_MIN: usize = 4 << 10;

impl<R, W: Watcher> Session<R, W> {
    /// Makes the server of a new connection arm all registered watches.
    pub(in crate::session) fn restore(&mut self, now: Time) {
        let (since, len_max) = (self.identity.watches_since(), self.batch_len_max);
        let mut restoring: usize = 0;
        set_watches(&mut self.registry, since, len_max, |frame| {
            restoring = restoring.saturating_add(1);
            let restore = PendingRequest::own(frame, Purpose::Restore);
            self.in_flight.send_first(now, restore, &mut self.link);
        });
        if let Phase::Up(up) = &mut self.phase {
            up.restoring = restoring;
        }
        if restoring == 0 {
            self.settled();
        }
        for (by, path) in self.registry.persistent() {
            self.server_watches.asked(by, path);
            self.server_watches.armed(path);
        }
    }

    /// Records that all watches are armed.
    const fn settled(&mut self) {
        self.identity.thaw_watches();
    }

    /// Processes the answer to one frame of watch restoration.
    pub(in crate::session) fn restored(
        &mut self,
        op: OpCode,
        err: ErrorCode,
    ) -> Result<(), Broken> {
        if !err.is_ok() {
            if err == ErrorCode::UNIMPLEMENTED && op == OpCode::SET_WATCHES2 {
                // An older server has joined the ensemble. Its connection is lost with this answer;
                // without the persistent watches the next one will not be.
                self.tell_persistent(&WatchNotice::Unsupported);
                self.registry.drop_persistent();
            }
            return Err(Broken::Link(LinkError::Unrestored(err)));
        }
        self.link.has_restored = true;
        if let Phase::Up(up) = &mut self.phase {
            up.restoring = up.restoring.saturating_sub(1);
            if up.restoring == 0 {
                self.settled();
                self.tell_persistent(&WatchNotice::Gap);
            }
        }
        Ok(())
    }

    fn tell_persistent(&mut self, notice: &WatchNotice) {
        let outputs = &mut self.outputs;
        self.registry.tell_persistent(notice, |watcher, notice| {
            outputs.push_back(Output::Watch { watcher, notice });
        });
    }

    /// Halves the batches if a server has ended a connection during restoration, and had not accepted any batch: it may
    /// have been too much at once (`jute.maxbuffer`).
    pub(in crate::session) fn shorten_batches(&mut self, why: &LinkError) {
        let restoring = matches!(self.phase, Phase::Up(up) if up.restoring > 0);
        let is_ended = matches!(why, LinkError::Closed | LinkError::Reset);
        if restoring && is_ended && !self.link.has_restored {
            let longest = self.batch_len_max.min(BATCH_LEN_MAX);
            let half = longest.checked_div(2).unwrap_or_default();
            self.batch_len_max = half.max(BATCH_LEN_MIN.min(longest));
        }
    }
}
