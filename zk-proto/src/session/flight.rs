//! Requests on their way: not yet written, or written and unanswered.
//!
//! This is the only place that knows whether a request was sent, and so whether it may have been
//! carried out.

use alloc::{boxed::Box, collections::VecDeque, sync::Arc};

use super::{
    link::Link,
    output::{Cause, OnLoss, Outcome, Outgoing, Place, WatchBy, WatchIntent, Withdrawn},
    standing::Standing,
    watches::Kind,
};
use crate::{data::Xid, frame::RequestFrame, time::Time};

/// What occupies a place in the order of requests.
#[derive(Debug)]
pub(crate) enum Slot<R, W> {
    /// Submitted by a user.
    User {
        request: Outgoing<R, W>,
        /// Whether it was sent over an earlier connection, so that it may have been carried out.
        was_sent: bool,
        place: Place,
        /// What it makes the server watch for good, even if nobody wants to hear of it any more.
        asks: Option<Box<(WatchBy, Arc<str>)>>,
    },
    /// The session's own business with the server of one connection; never survives that.
    Own { frame: RequestFrame, purpose: Purpose, place: Place },
    /// The end of the session. Nothing follows it.
    Close { frame: RequestFrame, token: R, place: Place },
}

/// What the session itself asks a server for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Arms watches again on a new connection.
    Restore,
    /// Arms a recursive watch again that a later request may have replaced.
    Rearm(Arc<str>),
    /// Removes all watches from a path that nobody waits for any more.
    Unwatch(Arc<str>),
}

impl<R, W> Slot<R, W> {
    /// A user's request.
    pub(crate) fn user(request: Outgoing<R, W>) -> Self {
        let watch = request.watch.as_ref().filter(|watch| watch.by.is_persistent());
        let asks = watch.map(|watch| Box::new((watch.by, watch.path.clone())));
        Self::User { request, was_sent: false, place: Place(0), asks }
    }

    /// What the session itself asks for.
    pub(crate) const fn own(frame: RequestFrame, purpose: Purpose) -> Self {
        Self::Own { frame, purpose, place: Place(0) }
    }

    const fn place(&self) -> Place {
        match self {
            Self::User { place, .. } | Self::Own { place, .. } | Self::Close { place, .. } => {
                *place
            }
        }
    }

    const fn put(&mut self, at: Place) {
        match self {
            Self::User { place, .. } | Self::Own { place, .. } | Self::Close { place, .. } => {
                *place = at;
            }
        }
    }

    pub(crate) const fn frame(&self) -> &RequestFrame {
        match self {
            Self::User { request: Outgoing { frame, .. }, .. }
            | Self::Own { frame, .. }
            | Self::Close { frame, .. } => frame,
        }
    }

    /// Whoever waits for the outcome, if that is not the session itself.
    pub(crate) fn into_token(self) -> Option<R> {
        match self {
            Self::User { request, .. } => Some(request.token),
            Self::Close { token, .. } => Some(token),
            Self::Own { .. } => None,
        }
    }

    /// What a user waits for a watch on, if the request is to arm one.
    const fn watch(&self) -> Option<&WatchIntent<W>> {
        match self {
            Self::User { request: Outgoing { watch: Some(watch), .. }, .. } => Some(watch),
            _ => None,
        }
    }
}

/// A request that has an xid, since its bytes are on their way to the server.
#[derive(Debug)]
pub(crate) struct Sent<R, W> {
    pub(crate) xid: Xid,
    pub(crate) slot: Slot<R, W>,
    /// When its bytes were handed out for writing: not later than when the server saw them.
    pub(crate) at: Time,
    /// Where in the connection's stream of bytes it begins.
    start: u64,
}

/// Requests in the order of their submission, first the sent ones and behind them the waiting ones.
#[derive(Debug)]
pub(crate) struct Flight<R, W> {
    sent: VecDeque<Sent<R, W>>,
    waiting: VecDeque<Slot<R, W>>,
    next_xid: Xid,
    /// Bytes that are kept of all frames in both queues.
    bytes: usize,
    next_place: u64,
}

/// What is certain about a request that will not be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was not carried out.
    NotSent,
    /// Nothing.
    Unknown,
}

impl Fate {
    pub(crate) fn outcome(self, cause: &Cause) -> Outcome {
        match self {
            Self::NotSent => Outcome::NotSent(cause.clone()),
            Self::Unknown => Outcome::Unknown(cause.clone()),
        }
    }
}

impl<R, W> Flight<R, W> {
    pub(crate) const fn new(next_xid: Xid) -> Self {
        Self { sent: VecDeque::new(), waiting: VecDeque::new(), next_xid, bytes: 0, next_place: 1 }
    }

    /// The xid that the next request to be sent will carry.
    pub(crate) const fn next_xid(&self) -> Xid {
        self.next_xid
    }

    /// Takes an xid for something that is no user's.
    pub(crate) fn take_xid(&mut self) -> Xid {
        let xid = self.next_xid;
        self.next_xid = xid.next();
        xid
    }

    /// Puts a request behind all others.
    pub(crate) fn push(&mut self, mut slot: Slot<R, W>) -> Place {
        let place = self.admit(&mut slot);
        self.waiting.push_back(slot);
        place
    }

    /// Sends a request behind all others, of which none waits.
    pub(crate) fn send_next(
        &mut self,
        now: Time,
        mut slot: Slot<R, W>,
        link: &mut Link,
        standing: &mut Standing,
    ) -> Place {
        debug_assert!(self.waiting.is_empty(), "those come first");
        let place = self.admit(&mut slot);
        self.send_in_turn(now, slot, link, standing);
        place
    }

    fn admit(&mut self, slot: &mut Slot<R, W>) -> Place {
        let place = Place(self.next_place);
        self.next_place = self.next_place.wrapping_add(1);
        slot.put(place);
        self.bytes = self.bytes.saturating_add(slot.frame().len());
        place
    }

    /// Takes a user's request back if no byte of it is on its way, or gives access to its token. Both queues, one
    /// behind the other, are in the order of places.
    pub(crate) fn withdraw(&mut self, place: Place) -> Option<Withdrawn<'_, R>> {
        let index = self.waiting.partition_point(|slot| slot.place() < place);
        if self.waiting.get(index).is_some_and(|slot| slot.place() == place) {
            let slot = self.waiting.remove(index)?;
            self.forget(&slot);
            let Slot::User { request, was_sent, .. } = slot else { return None };
            return Some(Withdrawn::Unsent { token: request.token, was_sent });
        }
        let index = self.sent.partition_point(|sent| sent.slot.place() < place);
        let sent = self.sent.get_mut(index).filter(|sent| sent.slot.place() == place)?;
        match &mut sent.slot {
            Slot::User { request, .. } => Some(Withdrawn::Sent(&mut request.token)),
            Slot::Own { .. } | Slot::Close { .. } => None,
        }
    }

    pub(crate) fn requests(&self) -> usize {
        self.sent.len().saturating_add(self.waiting.len())
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// When the oldest request was sent that has not been answered.
    pub(crate) fn oldest_sent(&self) -> Option<Time> {
        self.sent.front().map(|sent| sent.at)
    }

    /// Whether something that was sent has not been answered.
    pub(crate) fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Gives all waiting requests their xids and appends them to the bytes for the server. Returns
    /// whether there were any.
    pub(crate) fn send_waiting(
        &mut self,
        now: Time,
        link: &mut Link,
        standing: &mut Standing,
    ) -> bool {
        let any = !self.waiting.is_empty();
        while let Some(slot) = self.waiting.pop_front() {
            self.send_in_turn(now, slot, link, standing);
        }
        any
    }

    fn send_in_turn(
        &mut self,
        now: Time,
        slot: Slot<R, W>,
        link: &mut Link,
        standing: &mut Standing,
    ) {
        let leans = slot.watch().is_some_and(|watch| standing.at(&watch.path).carry(watch.by));
        match &slot {
            Slot::User { asks: Some(asks), .. } => standing.asked(asks.0, &asks.1),
            Slot::Own { purpose: Purpose::Unwatch(path), .. } => standing.removed(path),
            _ => {}
        }
        self.send(now, slot, leans, link);
    }

    /// Sends a request ahead of the waiting ones.
    pub(crate) fn send_first(&mut self, now: Time, slot: Slot<R, W>, link: &mut Link) {
        self.bytes = self.bytes.saturating_add(slot.frame().len());
        self.send(now, slot, false, link);
    }

    /// `leans` is whether the watch that it is to arm stands already.
    fn send(&mut self, now: Time, mut slot: Slot<R, W>, leans: bool, link: &mut Link) {
        let xid = self.next_xid;
        self.next_xid = xid.next();
        if planted!(XidsOverflow) {
            self.next_xid = Xid(xid.0.wrapping_add(1));
        }
        let start = link.write(|out| match slot.frame() {
            frame if leans => frame.write_unwatched(xid, out),
            frame => frame.write(xid, out),
        });
        if let Slot::Own { frame, .. } = &mut slot {
            // It is not sent again: what a connection takes with it is asked for anew over the next one.
            self.bytes = self.bytes.saturating_sub(frame.len());
            frame.drop_body();
            self.bytes = self.bytes.saturating_add(frame.len());
        }
        self.sent.push_back(Sent { xid, slot, at: now, start });
    }

    /// Takes the request that a reply answers: the oldest sent one, if the reply carries its xid.
    ///
    /// # Errors
    /// The xid that was due, if any.
    pub(crate) fn answered(&mut self, xid: Xid) -> Result<Sent<R, W>, Option<Xid>> {
        let due = self.sent.front().map(|sent| sent.xid);
        if due != Some(xid) && !planted!(XidMismatchAccepted) {
            return Err(due);
        }
        let sent = self.sent.pop_front().ok_or(None)?;
        self.forget(&sent.slot);
        Ok(sent)
    }

    /// Puts a request that a server certainly did not carry out back in front of all others.
    pub(crate) fn unanswer(&mut self, sent: Sent<R, W>) {
        self.bytes = self.bytes.saturating_add(sent.slot.frame().len());
        self.sent.push_front(Sent { start: u64::MAX, ..sent });
    }

    /// Takes the oldest request of which something is among the first `written` bytes, if it is a user's: its reply
    /// is what breaks the connection.
    pub(crate) fn take_first_user(&mut self, written: u64) -> Option<Slot<R, W>> {
        let first = self.sent.front()?;
        if !matches!(first.slot, Slot::User { .. }) || first.start >= written {
            return None;
        }
        let slot = self.sent.pop_front()?.slot;
        self.forget(&slot);
        Some(slot)
    }

    /// Whether the end of the session is under way, in whole or in part, after `written` bytes.
    pub(crate) fn close_was_sent(&self, written: u64) -> bool {
        let is_close = |sent: &Sent<R, W>| matches!(sent.slot, Slot::Close { .. });
        self.sent.back().is_some_and(|last| is_close(last) && last.start < written)
    }

    /// Sorts out what was sent when the connection is lost after `written` bytes.
    ///
    /// Requests without a single written byte wait again, as do those that may be sent twice, unless they are not
    /// to wait; both keep their order. What the session asked for itself is dropped, to be made anew for the next
    /// connection. The others are returned in order, with what is certain of them.
    pub(crate) fn link_lost(&mut self, written: u64) -> VecDeque<(Slot<R, W>, Fate)> {
        let mut failed = VecDeque::new();
        let mut again = VecDeque::new();
        for Sent { mut slot, start, .. } in core::mem::take(&mut self.sent) {
            let unwritten = start >= written && !planted!(UnsentReportedLost);
            let mut fate = if unwritten { Fate::NotSent } else { Fate::Unknown };
            let wait_again = match &mut slot {
                Slot::Own { .. } => {
                    self.forget(&slot);
                    continue;
                }
                Slot::User { request, was_sent, .. } => {
                    *was_sent |= !unwritten;
                    if *was_sent {
                        fate = Fate::Unknown;
                    }
                    let harmless = unwritten || request.on_loss == OnLoss::Resend;
                    (harmless && !request.fail_fast) || planted!(BlindRetry)
                }
                Slot::Close { .. } => unwritten,
            };
            if wait_again {
                again.push_back(slot);
            } else {
                self.forget(&slot);
                failed.push_back((slot, fate));
            }
        }
        if planted!(UnsentReportedLost) {
            for slot in core::mem::take(&mut self.waiting) {
                self.forget(&slot);
                failed.push_back((slot, Fate::Unknown));
            }
        }
        again.append(&mut self.waiting);
        self.waiting = again;
        failed
    }

    /// Keeps unanswered requests of kind `by` from arming watches on `path` that `gone` picks.
    pub(crate) fn disarm(&mut self, by: WatchBy, path: &str, mut gone: impl FnMut(&W) -> bool) {
        let sent = self.sent.iter_mut().map(|sent| &mut sent.slot);
        for slot in sent.chain(&mut self.waiting) {
            let Slot::User { request: Outgoing { watch, .. }, .. } = slot else { continue };
            watch.take_if(|watch| {
                let is_there = Kind::armed_by(watch.by) == Kind::armed_by(by);
                is_there && *watch.path == *path && gone(&watch.watcher)
            });
        }
    }

    /// Whether an unanswered request is to arm a watch on a path.
    pub(crate) fn is_to_watch(&self, path: &str) -> bool {
        let slots = self.sent.iter().map(|sent| &sent.slot).chain(&self.waiting);
        let mut watches = slots.filter_map(Slot::watch);
        watches.any(|watch| *watch.path == *path)
    }

    /// Takes everything in the order of submission, when there is nothing left to wait for after
    /// `written` bytes.
    pub(crate) fn take_all(
        &mut self,
        written: u64,
    ) -> impl Iterator<Item = (Slot<R, W>, Fate)> + use<R, W> {
        self.bytes = 0;
        let sent = core::mem::take(&mut self.sent).into_iter();
        let sent = sent.map(move |Sent { slot, start, .. }| (slot, start < written));
        let waiting = core::mem::take(&mut self.waiting).into_iter().map(|slot| (slot, false));
        sent.chain(waiting).map(|(slot, is_written)| {
            let was_sent = is_written || matches!(slot, Slot::User { was_sent: true, .. });
            (slot, if was_sent { Fate::Unknown } else { Fate::NotSent })
        })
    }

    fn forget(&mut self, slot: &Slot<R, W>) {
        self.bytes = self.bytes.saturating_sub(slot.frame().len());
    }

    /// Asserts that xids in flight follow each other, and that no byte is counted wrong. Called after
    /// each input, so that long queues would cost the square of their length.
    #[cfg(debug_assertions)]
    pub(crate) fn check(&self) {
        if self.requests() > 100 {
            return;
        }
        let slots = self.sent.iter().map(|sent| &sent.slot).chain(&self.waiting);
        let bytes = slots.map(|slot| slot.frame().len()).fold(0, usize::saturating_add);
        debug_assert_eq!(self.bytes, bytes, "bytes of all frames");
        let mut sent = self.sent.iter().peekable();
        while let Some(first) = sent.next() {
            if let Some(second) = sent.peek() {
                debug_assert_eq!(first.xid.next(), second.xid, "xids in flight follow each other");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::Zxid, frame::LEN_PREFIX, list::List, request::SetWatches};

    #[test]
    fn what_a_session_asks_for_itself_is_not_kept_once_it_is_sent() {
        let paths = ["/services/report"; 100];
        let restored = RequestFrame::of(&SetWatches {
            relative_zxid: Zxid(1),
            data_watches: List::of_strs(paths),
            exist_watches: List::EMPTY,
            child_watches: List::EMPTY,
        });
        let len = restored.len();
        let (mut flight, mut link) = (Flight::<(), ()>::new(Xid::FIRST), Link::default());
        flight.send_first(Time::ZERO, Slot::own(restored, Purpose::Restore), &mut link);
        assert_eq!(link.outbound.len(), len + LEN_PREFIX);
        assert!(flight.bytes() < 100, "{} of {len} bytes", flight.bytes());
        #[cfg(debug_assertions)]
        flight.check();
    }
}
