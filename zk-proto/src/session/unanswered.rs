//! Requests that will not be answered: resent, reported with what is certain of them, or taken out.

use alloc::{collections::VecDeque, vec::Vec};

use super::{
    disposition::Disposition,
    in_flight::{InFlight, Sent},
    output::{OnLoss, Patience},
    pausing::Pausing,
    pending_request::{PendingRequest, Purpose},
    watch::Watcher,
};
use crate::{data::Xid, op::OpCode};

impl<R, W: Watcher> InFlight<R, W> {
    /// Makes the oldest sent request, if it carries this xid, count as not sent: a server has certainly not carried it
    /// out.
    pub(crate) fn undo(&mut self, xid: Xid) -> bool {
        let due = self.sent.front_mut().filter(|sent| sent.xid == xid);
        due.map(|sent| sent.start = u64::MAX).is_some()
    }

    /// Takes the oldest request that begins within the first `written` bytes, if it is a user's: its reply breaks the
    /// connection.
    pub(crate) fn take_first_user(&mut self, written: u64) -> Option<PendingRequest<R, W>> {
        let first = self.sent.front()?;
        if !matches!(first.slot, PendingRequest::User { .. }) || first.start >= written {
            return None;
        }
        let slot = self.sent.pop_front()?.slot;
        self.forget(&slot);
        Some(slot)
    }

    /// Takes the oldest request but for confirmations.
    pub(crate) fn take_suspect(&mut self) -> Option<PendingRequest<R, W>> {
        let suspect = self.sent.iter().position(|sent| !sent.slot.is_confirmation())?;
        let slot = self.sent.remove(suspect)?.slot;
        self.forget(&slot);
        Some(slot)
    }

    /// Takes the close of the session out of the queue, if it waits to be sent: returns its token.
    pub(crate) fn take_close(&mut self) -> Option<R> {
        match self.waiting.pop_back()? {
            PendingRequest::Close { frame, token, place } => {
                self.forget(&PendingRequest::Own { frame, purpose: Purpose::Confirm, place });
                Some(token)
            }
            other => {
                self.waiting.push_back(other);
                None
            }
        }
    }

    /// Sorts out the sent requests when the connection is lost after `written` bytes.
    ///
    /// Requests without a single written byte wait again, as do those that may be sent twice, unless they are
    /// configured not to wait; both keep their order. The session's own requests are dropped, to be made anew for the
    /// next connection. The others are returned in order, with what is certain of them.
    ///
    /// `is_ended` is whether the server ended the connection, for whatever reason.
    pub(crate) fn link_lost(
        &mut self,
        written: u64,
        is_ended: bool,
    ) -> VecDeque<(PendingRequest<R, W>, Disposition)> {
        let mut failed = VecDeque::new();
        let mut again = VecDeque::new();
        for Sent { mut slot, start, .. } in core::mem::take(&mut self.sent) {
            let unwritten = start >= written;
            let mut disposition =
                if unwritten { Disposition::NotSent } else { Disposition::Unknown };
            let wait_again = match &mut slot {
                PendingRequest::Own { .. } => {
                    self.forget(&slot);
                    continue;
                }
                PendingRequest::User { request, was_sent, suspicion, .. } => {
                    *was_sent |= !unwritten;
                    if is_ended && !unwritten {
                        suspicion.lost();
                    }
                    if *was_sent {
                        disposition = Disposition::Unknown;
                    }
                    let harmless = unwritten || request.on_loss == OnLoss::Resend;
                    harmless && request.patience != Patience::FailFast
                }
                PendingRequest::Close { .. } => true,
            };
            if wait_again {
                again.push_back(slot);
            } else {
                self.forget(&slot);
                failed.push_back((slot, disposition));
            }
        }
        for slot in core::mem::take(&mut self.waiting) {
            match slot {
                PendingRequest::Own { .. } => self.forget(&slot),
                PendingRequest::User { ref request, .. }
                    if request.patience == Patience::FailFast =>
                {
                    self.forget(&slot);
                    failed.push_back((slot, Disposition::NotSent));
                }
                PendingRequest::User { .. } | PendingRequest::Close { .. } => again.push_back(slot),
            }
        }
        self.waiting = again;
        failed
    }

    /// Takes the waiting requests of these operations.
    pub(crate) fn take_waiting(&mut self, ops: &[OpCode]) -> Vec<R> {
        let is_meant = |slot: &PendingRequest<R, W>| {
            matches!(slot, PendingRequest::User { .. }) && ops.contains(&slot.frame().op())
        };
        let waiting = core::mem::take(&mut self.waiting).into_iter();
        let (taken, waiting): (Vec<_>, VecDeque<_>) =
            waiting.fold((Vec::new(), VecDeque::new()), |(mut taken, mut waiting), slot| {
                if is_meant(&slot) {
                    taken.push(slot);
                } else {
                    waiting.push_back(slot);
                }
                (taken, waiting)
            });
        self.waiting = waiting;
        taken.iter().for_each(|slot| self.forget(slot));
        taken.into_iter().filter_map(PendingRequest::into_token).collect()
    }

    /// Takes all requests in the order of submission, at the end of the session after `written`
    /// bytes.
    pub(crate) fn take_all(
        &mut self,
        written: u64,
    ) -> impl Iterator<Item = (PendingRequest<R, W>, Disposition)> + use<R, W> {
        self.bytes = 0;
        let sent = core::mem::take(&mut self.sent).into_iter();
        let sent = sent.map(move |Sent { slot, start, .. }| (slot, start < written));
        let waiting = core::mem::take(&mut self.waiting).into_iter().map(|slot| (slot, false));
        let mut pausing = core::mem::replace(&mut self.pausing, Pausing::new());
        let pausing = pausing.take_all().map(|slot| (slot, false));
        sent.chain(waiting).chain(pausing).map(|(slot, is_written)| {
            let was_sent = is_written || slot.was_sent();
            (slot, if was_sent { Disposition::Unknown } else { Disposition::NotSent })
        })
    }
}
