//! One connection: its bytes, and its history.

use alloc::{collections::VecDeque, sync::Arc};

use bytes::BytesMut;

use super::{inbound::Inbound, liveness::Liveness, phase::Password, suspects::Probation};
use crate::{data::Xid, frame::RequestFrame, request::Ping, time::Time, wipe::wipe_buffer};

/// How much memory of written bytes is kept for later. One long value must not stay for the life of a session.
const LEN_KEPT: usize = 64 << 10;

/// Bytes around a secret in its frame: headers and lengths.
const LEN_SECRET_SPARE: usize = 128;

/// The state of one connection, which ends with it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    pub(crate) inbound: Inbound,
    pub(crate) outbound: BytesMut,
    /// Whether `outbound` has held more than is to be kept.
    has_outgrown: bool,
    /// Whether `outbound` has held bytes that must not stay in memory.
    has_secrets: bool,
    /// Bytes appended to `outbound` so far.
    appended: u64,
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
    /// Appends to the outbound bytes. Returns the offset in the stream at which that begins.
    pub(crate) fn write(&mut self, append: impl FnOnce(&mut BytesMut)) -> u64 {
        self.renew_outbound();
        if !self.has_secrets {
            return self.append(append);
        }
        let mut apart = BytesMut::new();
        append(&mut apart);
        self.make_room_beside_secrets(apart.len());
        self.append(|out| out.extend_from_slice(&apart))
    }

    /// As [`write`](Self::write), for about `len` bytes that must not stay in memory.
    pub(crate) fn write_secret(&mut self, len: usize, append: impl FnOnce(&mut BytesMut)) -> u64 {
        self.renew_outbound();
        self.make_room_beside_secrets(len.saturating_add(LEN_SECRET_SPARE));
        self.has_secrets = true;
        self.append(append)
    }

    /// Frees a buffer that has been written whole, if it must not be kept.
    fn renew_outbound(&mut self) {
        self.forget_secrets();
        if self.has_outgrown && self.outbound.is_empty() {
            (self.outbound, self.has_outgrown) = (BytesMut::new(), false);
        }
    }

    fn append(&mut self, append: impl FnOnce(&mut BytesMut)) -> u64 {
        let (start, before) = (self.appended, self.outbound.len());
        append(&mut self.outbound);
        self.has_outgrown |= self.outbound.len() > LEN_KEPT;
        let len = self.outbound.len().saturating_sub(before);
        self.appended = start.saturating_add(len as u64);
        start
    }

    /// Makes room in `outbound` for `len_free` more bytes, and wipes the memory it leaves.
    fn make_room_beside_secrets(&mut self, len_free: usize) {
        let len = self.outbound.len();
        if self.outbound.capacity().saturating_sub(len) < len_free {
            let mut larger = BytesMut::with_capacity(len.saturating_add(len_free));
            larger.extend_from_slice(&self.outbound);
            wipe_buffer(&mut self.outbound);
            self.outbound = larger;
        }
    }

    /// Overwrites secrets that have been written, once nothing else is waiting to be written.
    pub(crate) fn forget_secrets(&mut self) {
        if self.has_secrets && self.outbound.is_empty() {
            wipe_buffer(&mut self.outbound);
            self.has_secrets = false;
        }
    }

    /// Frees the memory of empty buffers.
    pub(crate) fn shrink(&mut self) {
        self.forget_secrets();
        self.inbound.shrink();
        if self.outbound.is_empty() {
            self.outbound = BytesMut::new();
        }
    }

    /// Bytes that the driver has taken for writing; the server may have seen all of them.
    pub(crate) fn written(&self) -> u64 {
        self.appended.saturating_sub(self.outbound.len() as u64)
    }

    /// Appends a ping. `is_oldest` is whether no other ping is unanswered.
    pub(crate) fn write_ping(&mut self, is_oldest: bool) {
        let ping = RequestFrame::of(&Ping);
        let start = self.write(|out| ping.write(Xid::PING, out));
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
        let written = self.written();
        let (at, before) = core::mem::replace(&mut self.looked, (now, written));
        let least = Liveness::least(now.since(at));
        written <= self.ping_start && written.saturating_sub(before) >= least
    }

    /// Resets everything but the memory of the buffers.
    pub(super) fn reset(&mut self) {
        self.inbound.clear();
        self.outbound.clear();
        self.forget_secrets();
        self.appended = 0;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_not_moved_while_it_is_written() {
        let mut link = Link::default();
        link.write(|out| out.resize(LEN_KEPT + 1, 0));
        link.outbound.clear();
        link.write_secret(8, |out| out.extend_from_slice(b"password"));
        assert_eq!(&*link.outbound, b"password");
        assert!(link.outbound.capacity() >= 8 + LEN_SECRET_SPARE, "the room was made elsewhere");
    }
}
