//! Requests on their way: not yet written, or written and unanswered.
//!
//! This is the only place that knows whether a request was sent, and so whether it may have been
//! carried out.

use alloc::collections::VecDeque;

use super::{
    link::Link,
    output::{Cause, OnLoss, Outcome, Outgoing, WatchBy, WatchIntent},
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
    },
    /// Arms watches again on a new connection; never survives the connection.
    Restore(RequestFrame),
    /// The end of the session. Nothing follows it.
    Close { frame: RequestFrame, token: R },
}

impl<R, W> Slot<R, W> {
    pub(crate) const fn frame(&self) -> &RequestFrame {
        match self {
            Self::User { request: Outgoing { frame, .. }, .. }
            | Self::Restore(frame)
            | Self::Close { frame, .. } => frame,
        }
    }

    /// Whoever waits for the outcome, if that is not the session itself.
    pub(crate) fn into_token(self) -> Option<R> {
        match self {
            Self::User { request, .. } => Some(request.token),
            Self::Close { token, .. } => Some(token),
            Self::Restore(_) => None,
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
    /// Bytes of all frames in both queues.
    bytes: usize,
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
        Self { sent: VecDeque::new(), waiting: VecDeque::new(), next_xid, bytes: 0 }
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
    pub(crate) fn push(&mut self, slot: Slot<R, W>) {
        self.bytes = self.bytes.saturating_add(slot.frame().len());
        self.waiting.push_back(slot);
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

    /// Whether everything submitted has been answered.
    #[cfg(debug_assertions)]
    pub(crate) fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Gives all waiting requests their xids and appends them to the bytes for the server. Returns
    /// whether there were any.
    pub(crate) fn send_waiting(&mut self, now: Time, link: &mut Link) -> bool {
        let any = !self.waiting.is_empty();
        while let Some(slot) = self.waiting.pop_front() {
            self.send(now, slot, link);
        }
        any
    }

    /// Sends a request ahead of the waiting ones.
    pub(crate) fn send_first(&mut self, now: Time, slot: Slot<R, W>, link: &mut Link) {
        self.bytes = self.bytes.saturating_add(slot.frame().len());
        self.send(now, slot, link);
    }

    fn send(&mut self, now: Time, slot: Slot<R, W>, link: &mut Link) {
        let xid = self.next_xid;
        self.next_xid = xid.next();
        if planted!(XidsOverflow) {
            self.next_xid = Xid(xid.0.wrapping_add(1));
        }
        let start = link.write(|out| slot.frame().write(xid, out));
        self.sent.push_back(Sent { xid, slot, at: now, start });
    }

    /// Takes the request that a reply answers: the oldest sent one, if the reply carries its xid.
    ///
    /// # Errors
    /// The xid that was due, if any.
    pub(crate) fn answered(&mut self, xid: Xid) -> Result<Sent<R, W>, Option<Xid>> {
        match self.sent.pop_front() {
            Some(sent) if sent.xid == xid || planted!(XidMismatchAccepted) => {
                self.forget(&sent.slot);
                Ok(sent)
            }
            Some(sent) => {
                let due = sent.xid;
                self.sent.push_front(sent);
                Err(Some(due))
            }
            None => Err(None),
        }
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
    /// Requests without a single written byte wait again, as do those that may be sent twice; both keep
    /// their order. Replays of watches are dropped, to be made anew for the next connection. The others
    /// are returned in order.
    pub(crate) fn link_lost(&mut self, written: u64) -> VecDeque<Slot<R, W>> {
        let mut unknown = VecDeque::new();
        let mut again = VecDeque::new();
        for Sent { mut slot, start, .. } in core::mem::take(&mut self.sent) {
            let unwritten = start >= written && !planted!(UnsentReportedLost);
            let wait_again = match &mut slot {
                Slot::Restore(_) => {
                    self.forget(&slot);
                    continue;
                }
                Slot::User { request, was_sent } => {
                    *was_sent |= !unwritten;
                    unwritten || request.on_loss == OnLoss::Resend || planted!(BlindRetry)
                }
                Slot::Close { .. } => unwritten,
            };
            if wait_again {
                again.push_back(slot);
            } else {
                self.forget(&slot);
                unknown.push_back(slot);
            }
        }
        if planted!(UnsentReportedLost) {
            for slot in core::mem::take(&mut self.waiting) {
                self.forget(&slot);
                unknown.push_back(slot);
            }
        }
        again.append(&mut self.waiting);
        self.waiting = again;
        unknown
    }

    /// Keeps unanswered requests from arming watches on `path` that `gone` picks. Returns whether others
    /// will arm the server's watch that `by` stands for.
    pub(crate) fn disarm(
        &mut self,
        by: WatchBy,
        path: &str,
        mut gone: impl FnMut(&W) -> bool,
    ) -> bool {
        let mut remain = false;
        let sent = self.sent.iter_mut().map(|sent| &mut sent.slot);
        for slot in sent.chain(&mut self.waiting) {
            let Slot::User { request: Outgoing { watch, .. }, .. } = slot else { continue };
            let is_there = |watch: &WatchIntent<W>| {
                Kind::armed_by(watch.by) == Kind::armed_by(by) && *watch.path == *path
            };
            if let Some(there) = watch.take_if(|watch| is_there(watch)) {
                *watch = (!gone(&there.watcher)).then_some(there);
                remain |= watch.is_some();
            }
        }
        remain
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
