//! One connection: its bytes, and what has been seen of it.

use alloc::{collections::VecDeque, sync::Arc};

use bytes::BytesMut;

use super::{inbound::Inbound, liveness::Liveness, phase::Password, suspects::Trial};
use crate::{data::Xid, frame::RequestFrame, request::Ping, time::Time, wipe::wipe_buffer};

/// How much memory of what has been written is kept for later. One long value must not stay for the life of a session.
const LEN_KEPT: usize = 64 << 10;

/// Bytes around a secret in its frame: headers and lengths.
const LEN_SECRET_SPARE: usize = 128;

/// What belongs to one connection and ends with it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    pub(crate) inbound: Inbound,
    pub(crate) outbound: BytesMut,
    /// Whether `outbound` has held more than is to be kept.
    has_outgrown: bool,
    /// Whether `outbound` has held something that must not stay in memory.
    has_secrets: bool,
    /// Bytes appended to `outbound` so far.
    appended: u64,
    /// Where the oldest ping begins in the stream that has not been answered; zero if that is not known.
    ping_start: u64,
    /// When it was last looked at how much had been written, and how much that was.
    looked: (Time, u64),
    /// What it has shown without the requests that are suspected of costing connections.
    pub(crate) trial: Trial,
    /// Whether it has led to anything: an answer to a user, or to a ping if there was nothing else to answer.
    pub(crate) is_of_use: bool,
    /// Whether the server has taken a part of the watches that it was told of.
    pub(crate) has_restored: bool,
    /// Which credentials await an answer, and where in the stream they begin. Answers come in order.
    pub(crate) auth_pending: VecDeque<(usize, u64)>,
    /// The password of the session that a server offers, until it has proved who it is.
    pub(crate) offered: Option<Password>,
    /// Who is on the other side.
    pub(crate) server: Option<Arc<str>>,
}

impl Link {
    /// Appends to what goes to the server. Returns where in the stream that begins.
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

    /// The same of something that must not stay in memory, of about so many bytes.
    pub(crate) fn write_secret(&mut self, len: usize, append: impl FnOnce(&mut BytesMut)) -> u64 {
        self.renew_outbound();
        self.make_room_beside_secrets(len.saturating_add(LEN_SECRET_SPARE));
        self.has_secrets = true;
        self.append(append)
    }

    /// Gives a buffer back that has been written whole, if it must not be kept.
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

    /// Makes room in `outbound` for so many bytes more, and leaves nothing behind where it has been.
    fn make_room_beside_secrets(&mut self, len_free: usize) {
        let len = self.outbound.len();
        if self.outbound.capacity().saturating_sub(len) < len_free {
            let mut larger = BytesMut::with_capacity(len.saturating_add(len_free));
            larger.extend_from_slice(&self.outbound);
            wipe_buffer(&mut self.outbound);
            self.outbound = larger;
        }
    }

    /// Overwrites secrets that have been written, once nothing else waits to be.
    pub(crate) fn forget_secrets(&mut self) {
        if self.has_secrets && self.outbound.is_empty() {
            wipe_buffer(&mut self.outbound);
            self.has_secrets = false;
        }
    }

    /// Gives the memory of empty buffers back.
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

    /// Appends a ping. `is_oldest` is whether no other one waits for its answer.
    pub(crate) fn write_ping(&mut self, is_oldest: bool) {
        let ping = RequestFrame::of(&Ping);
        let start = self.write(|out| ping.write(Xid::PING, out));
        if is_oldest {
            self.ping_start = start;
        }
    }

    /// The oldest ping was answered.
    pub(crate) const fn ponged(&mut self) {
        self.ping_start = 0;
    }

    /// Whether, since this was last asked, bytes have been leaving in front of the oldest ping, and fast enough to be taken
    /// for a sign of life. Behind it they say nothing: its answer is due.
    pub(crate) fn drains(&mut self, now: Time) -> bool {
        let written = self.written();
        let (at, before) = core::mem::replace(&mut self.looked, (now, written));
        let least = Liveness::least(now.since(at));
        written <= self.ping_start && written.saturating_sub(before) >= least
    }

    /// Forgets everything but the memory of the buffers.
    pub(super) fn reset(&mut self) {
        if !planted!(OldBytesKept) {
            self.inbound.clear();
        }
        self.outbound.clear();
        self.forget_secrets();
        self.appended = 0;
        (self.ping_start, self.looked) = (0, (Time::ZERO, 0));
        (self.trial, self.is_of_use, self.has_restored) = (Trial::NotBegun, false, false);
        self.auth_pending.clear();
        self.offered = None;
    }

    /// Gives the memory back too.
    pub(crate) fn close(&mut self) {
        self.reset();
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_behind_something_long_does_not_move_while_it_is_written() {
        let mut link = Link::default();
        link.write(|out| out.resize(LEN_KEPT + 1, 0));
        link.outbound.clear();
        link.write_secret(8, |out| out.extend_from_slice(b"password"));
        assert_eq!(&*link.outbound, b"password");
        assert!(link.outbound.capacity() >= 8 + LEN_SECRET_SPARE, "the room was made elsewhere");
    }
}
