//! In-flight and waiting requests: not yet written, or written and unanswered.
//!
//! Only this module knows whether a request was sent, and so whether it may have been carried out.

use alloc::collections::VecDeque;

use super::{
    link::Link,
    output::{Outgoing, Patience, Place, Withdrawn},
    pausing::{PauseState, Pausing},
    pending_request::PendingRequest,
    watch::{ServerWatches, Watcher},
};
use crate::{data::Xid, op::OpCode, rng::Rng, time::Time};

/// A request that has an xid, since its bytes are on their way to the server.
#[derive(Debug)]
pub(crate) struct Sent<R, W> {
    pub(crate) xid: Xid,
    pub(crate) slot: PendingRequest<R, W>,
    /// When its bytes were handed out for writing: not later than when the server saw them.
    pub(crate) at: Time,
    /// The offset in the connection's byte stream at which it begins.
    pub(super) start: u64,
    /// Whether it went out without the watch that it could ask for.
    pub(super) unwatched: bool,
}

/// Requests in the order of their submission, first the sent ones and then the waiting ones. Paused requests are kept
/// apart, and rejoin behind all others.
#[derive(Debug)]
pub(crate) struct InFlight<R, W> {
    pub(super) sent: VecDeque<Sent<R, W>>,
    pub(super) waiting: VecDeque<PendingRequest<R, W>>,
    pub(super) pausing: Pausing<R, W>,
    next_xid: Xid,
    /// Total bytes kept of all frames.
    pub(super) bytes: usize,
    next_place: u64,
}

impl<R, W: Watcher> InFlight<R, W> {
    pub(crate) const fn new(next_xid: Xid) -> Self {
        Self {
            sent: VecDeque::new(),
            waiting: VecDeque::new(),
            pausing: Pausing::new(),
            next_xid,
            bytes: 0,
            next_place: 1,
        }
    }

    /// Frees the room for requests that are not there.
    pub(crate) fn shrink(&mut self) {
        self.sent.shrink_to_fit();
        self.waiting.shrink_to_fit();
    }

    /// The xid that the next request to be sent will carry.
    pub(crate) const fn next_xid(&self) -> Xid {
        self.next_xid
    }

    /// Takes an xid for a message that is not a user's request.
    pub(crate) fn take_xid(&mut self) -> Xid {
        let xid = self.next_xid;
        self.next_xid = xid.next();
        xid
    }

    /// Queues a request behind all others.
    pub(crate) fn push(&mut self, mut slot: PendingRequest<R, W>) -> Place {
        let place = self.admit(&mut slot);
        self.waiting.push_back(slot);
        place
    }

    /// Sends a request behind all others, when none is waiting.
    #[inline(always)]
    pub(crate) fn send_next(
        &mut self,
        now: Time,
        mut slot: PendingRequest<R, W>,
        link: &mut Link,
        server_watches: &mut ServerWatches,
    ) -> Place {
        debug_assert!(self.waiting.is_empty(), "those come first");
        let place = self.admit(&mut slot);
        self.send_in_turn(now, slot, link, server_watches);
        place
    }

    #[inline(always)]
    fn admit(&mut self, slot: &mut PendingRequest<R, W>) -> Place {
        let place = Place(self.next_place);
        self.next_place = self.next_place.wrapping_add(1);
        slot.put(place);
        self.pausing.moved(slot.first(), place);
        self.bytes = self.bytes.saturating_add(slot.frame().len());
        place
    }

    /// Takes a user's request back if no byte of it has been sent, or gives access to its token. Both queues, one
    /// behind the other, are in the order of places.
    pub(crate) fn withdraw(&mut self, first: Place) -> Option<Withdrawn<'_, R>> {
        let place = match self.pausing.find(first) {
            None => first,
            Some(PauseState::InLine(present)) => present,
            Some(PauseState::Pausing(until)) => {
                let slot = self.pausing.take(until, first)?;
                return self.give_up(slot);
            }
        };
        let index = self.waiting.partition_point(|slot| slot.place() < place);
        if self.waiting.get(index).is_some_and(|slot| slot.place() == place) {
            let slot = self.waiting.remove(index)?;
            return self.give_up(slot);
        }
        let index = self.sent.partition_point(|sent| sent.slot.place() < place);
        let sent = self.sent.get_mut(index).filter(|sent| sent.slot.place() == place)?;
        match &mut sent.slot {
            PendingRequest::User { request, .. } => {
                // No task waits for a second answer, nor for the next connection.
                request.patience = Patience::FailFast;
                Some(Withdrawn::Sent(&mut request.token))
            }
            PendingRequest::Own { .. } | PendingRequest::Close { .. } => None,
        }
    }

    fn give_up(&mut self, slot: PendingRequest<R, W>) -> Option<Withdrawn<'_, R>> {
        self.forget(&slot);
        let PendingRequest::User { request, was_sent, .. } = slot else { return None };
        Some(Withdrawn::Unsent { token: request.token, was_sent })
    }

    /// Pauses a user's request that a server has throttled.
    pub(crate) fn pause(&mut self, now: Time, mut slot: PendingRequest<R, W>, rng: &mut Rng) {
        let Some(refusals) = slot.refused() else { return };
        self.bytes = self.bytes.saturating_add(slot.frame().len());
        self.pausing.put(now, refusals, slot, rng);
    }

    /// Takes a request whose pause is over, to be queued behind all others.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<PendingRequest<R, W>> {
        let slot = self.pausing.take_due(now)?;
        self.bytes = self.bytes.saturating_sub(slot.frame().len());
        Some(slot)
    }

    /// Takes all paused requests, in the order of their submission, to be queued behind all others.
    pub(crate) fn take_pausing(
        &mut self,
    ) -> impl Iterator<Item = PendingRequest<R, W>> + use<R, W> {
        let len = |slot: &PendingRequest<R, W>| slot.frame().len();
        self.bytes = self.bytes.saturating_sub(self.pausing.slots().map(len).sum());
        self.pausing.take_all()
    }

    /// When the next pause ends.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.pausing.next()
    }

    pub(crate) fn requests(&self) -> usize {
        self.sent.len().saturating_add(self.waiting.len()).saturating_add(self.pausing.len())
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// When the oldest unanswered request was sent.
    pub(crate) fn oldest_sent(&self) -> Option<Time> {
        self.sent.front().map(|sent| sent.at)
    }

    /// Whether a sent request is unanswered, other than confirmations.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent_but_confirmations().next().is_some()
    }

    /// Assigns xids to waiting requests and appends them to the outbound bytes, as many as may be in flight together.
    /// Returns whether there were any.
    pub(crate) fn send_waiting(
        &mut self,
        now: Time,
        link: &mut Link,
        server_watches: &mut ServerWatches,
    ) -> bool {
        let mut any = false;
        while self.waiting.front().is_some_and(|slot| self.may_go(slot, link.probation)) {
            let Some(slot) = self.waiting.pop_front() else { break };
            self.send_in_turn(now, slot, link, server_watches);
            any = true;
        }
        any
    }

    #[inline(always)]
    fn send_in_turn(
        &mut self,
        now: Time,
        slot: PendingRequest<R, W>,
        link: &mut Link,
        server_watches: &mut ServerWatches,
    ) {
        let unwatched = match &slot {
            // Nearly all requests.
            PendingRequest::User { request: Outgoing { watch: None, .. }, rare: None, .. } => false,
            _ => slot.note_watches(server_watches),
        };
        self.send(now, slot, unwatched, link);
    }

    /// Sends a request ahead of the waiting ones. It is never withdrawn, so it may share a place with the one before.
    pub(crate) fn send_first(
        &mut self,
        now: Time,
        mut slot: PendingRequest<R, W>,
        link: &mut Link,
    ) {
        slot.put(self.sent.back().map_or(Place(0), |sent| sent.slot.place()));
        self.bytes = self.bytes.saturating_add(slot.frame().len());
        self.send(now, slot, false, link);
    }

    /// `unwatched` requests go out without the watch that they could ask for.
    fn send(
        &mut self,
        now: Time,
        mut slot: PendingRequest<R, W>,
        unwatched: bool,
        link: &mut Link,
    ) {
        let xid = self.next_xid;
        self.next_xid = xid.next();
        let start = match slot.frame() {
            frame if unwatched => link.outbound.write(|out| frame.write_unwatched(xid, out)),
            frame => link.outbound.write_request(xid, frame),
        };
        if let PendingRequest::Own { frame, .. } = &mut slot {
            // It is never resent: what a lost connection leaves undone is requested anew over the next one.
            self.bytes = self.bytes.saturating_sub(frame.len());
            frame.drop_body();
            self.bytes = self.bytes.saturating_add(frame.len());
        }
        self.sent.push_back(Sent { xid, slot, at: now, start, unwatched });
    }

    /// Takes the request that a reply answers: the oldest sent one, if the reply carries its xid.
    ///
    /// # Errors
    /// The xid of the oldest request in flight, if there is one.
    #[inline(always)]
    pub(crate) fn answered(&mut self, xid: Xid) -> Result<Sent<R, W>, Option<Xid>> {
        let due = self.sent.front().map(|sent| sent.xid);
        if due != Some(xid) {
            return Err(due);
        }
        let sent = self.sent.pop_front().ok_or(None)?;
        self.forget(&sent.slot);
        Ok(sent)
    }

    /// Puts a sent request in front, which is answered out of turn. Never the close: behind that, nothing is left to answer.
    #[cold]
    pub(crate) fn bring_forward(&mut self, xid: Xid) {
        let is_close = |slot: &PendingRequest<R, W>| matches!(slot, PendingRequest::Close { .. });
        let index = self.sent.iter().position(|sent| sent.xid == xid && !is_close(&sent.slot));
        if let Some(sent) = index.and_then(|index| self.sent.remove(index)) {
            self.sent.push_front(sent);
        }
    }

    /// The operation of the request that a reply with this xid answers.
    pub(crate) fn op_due(&self, xid: Xid) -> Option<OpCode> {
        let due = self.sent.front().filter(|sent| sent.xid == xid);
        due.map(|sent| sent.slot.frame().op())
    }

    /// Whether the close of the session was sent, in whole or in part, after `written` bytes.
    pub(crate) fn close_was_sent(&self, written: u64) -> bool {
        let is_close = |sent: &Sent<R, W>| matches!(sent.slot, PendingRequest::Close { .. });
        self.sent.back().is_some_and(|last| is_close(last) && last.start < written)
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &PendingRequest<R, W>> {
        let sent = self.sent.iter().map(|sent| &sent.slot);
        sent.chain(&self.waiting).chain(self.pausing.slots())
    }

    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = &mut PendingRequest<R, W>> {
        let sent = self.sent.iter_mut().map(|sent| &mut sent.slot);
        sent.chain(&mut self.waiting).chain(self.pausing.slots_mut())
    }

    /// Stops counting a request that has left the queues.
    pub(super) fn forget(&mut self, slot: &PendingRequest<R, W>) {
        self.bytes = self.bytes.saturating_sub(slot.frame().len());
        // The session's own requests may share a place with a user's.
        if self.pausing.has_moved_any() && matches!(slot, PendingRequest::User { .. }) {
            self.pausing.forget(slot.first());
        }
    }

    /// Asserts that requests in flight are in order, and that the byte count is right. Called after each input, so
    /// that long queues would cost the square of their length.
    #[cfg(debug_assertions)]
    pub(crate) fn check(&self) {
        if self.requests() > 100 {
            return;
        }
        let bytes = self.slots().map(|slot| slot.frame().len()).fold(0, usize::saturating_add);
        debug_assert_eq!(self.bytes, bytes, "bytes of all frames");
        let refused = self.slots().filter(|slot| slot.was_refused());
        debug_assert_eq!(self.pausing.whereabouts(), refused.count(), "those that have paused");
        let mut sent = self.sent.iter().peekable();
        while let Some(first) = sent.next() {
            if let Some(second) = sent.peek() {
                debug_assert!(first.start < second.start, "in the order of sending");
                debug_assert!(first.slot.place() <= second.slot.place(), "in the order of places");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::Zxid,
        frame::{LEN_PREFIX, RequestFrame},
        list::List,
        request::SetWatches,
        session::pending_request::Purpose,
    };

    #[test]
    fn internal_requests_are_dropped_once_sent() {
        let paths = ["/services/report"; 100];
        let restored = RequestFrame::of(&SetWatches {
            relative_zxid: Zxid(1),
            data_watches: List::of_strs(paths),
            exist_watches: List::EMPTY,
            child_watches: List::EMPTY,
        });
        let len = restored.len();
        let (mut in_flight, mut link) = (InFlight::<(), ()>::new(Xid::FIRST), Link::default());
        in_flight.send_first(
            Time::ZERO,
            PendingRequest::own(restored, Purpose::Restore),
            &mut link,
        );
        assert_eq!(link.outbound.len(), len + LEN_PREFIX);
        assert!(in_flight.bytes() < 100, "{} of {len} bytes", in_flight.bytes());
        #[cfg(debug_assertions)]
        in_flight.check();
    }
}
