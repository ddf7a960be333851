//! One connection: its bytes, and its history.

use alloc::{collections::VecDeque, sync::Arc};

use super::{
    inbound::Inbound, liveness::Liveness, outbound::Outbound, phase::Password, suspects::Probation,
};
use crate::{data::Xid, frame::RequestFrame, request::Ping, time::Time};

/// The state of one connection, which ends with it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    pub(crate) inbound: Inbound,
    pub(crate) outbound: Outbound,
    /// The offset of the oldest unanswered ping in the stream; zero if that is not known.
    ping_start: u64,
    /// When the amount of written bytes was last checked, and that amount.
    looked: (Time, u64),
    /// How it has behaved without the requests that are suspected of costing connections.
    pub(crate) probation: Probation,
    /// Whether it has been useful: with an answer to a user, or to a ping if nothing else was due.
    pub(crate) is_of_use: bool,
    /// Whether the server has accepted a batch of restored watches.
    pub(crate) has_restored: bool,
    /// The credentials that await an answer, with their offsets in the stream. Answers arrive in order.
    pub(crate) auth_pending: VecDeque<(usize, u64)>,
    /// The password of the session that a server offers, until it is authenticated.
    pub(crate) offered: Option<Password>,
    /// The server at the other end.
    pub(crate) server: Option<Arc<str>>,
}

impl Link {
    /// Frees the memory of empty buffers.
    pub(crate) fn shrink(&mut self) {
        self.inbound.shrink();
        self.outbound.shrink();
    }

    /// Appends a ping. `is_oldest` is whether no other ping is unanswered.
    pub(crate) fn write_ping(&mut self, is_oldest: bool) {
        let ping = RequestFrame::of(&Ping);
        let start = self.outbound.write(|out| ping.write(Xid::PING, out));
        if is_oldest {
            self.ping_start = start;
        }
    }

    /// Records that the oldest ping was answered.
    pub(crate) const fn ponged(&mut self) {
        self.ping_start = 0;
    }

    /// Whether, since the last call, bytes ahead of the oldest ping have been leaving fast enough to count as a sign of
    /// life. Bytes behind it do not count: its answer is due.
    pub(crate) fn drains(&mut self, now: Time) -> bool {
        let written = self.outbound.written();
        let (at, before) = core::mem::replace(&mut self.looked, (now, written));
        let least = Liveness::least(now.since(at));
        written <= self.ping_start && written.saturating_sub(before) >= least
    }

    /// Resets everything but the memory of the buffers.
    pub(super) fn reset(&mut self) {
        self.inbound.clear();
        self.outbound.reset();
        (self.ping_start, self.looked) = (0, (Time::ZERO, 0));
        (self.probation, self.is_of_use, self.has_restored) = (Probation::NotBegun, false, false);
        self.auth_pending.clear();
        self.offered = None;
    }

    /// Resets everything and frees the memory.
    pub(crate) fn close(&mut self) {
        self.reset();
        *self = Self::default();
    }
}
