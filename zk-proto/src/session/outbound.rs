//! Bytes for the server, from the moment they are decided on until they are written.

use alloc::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use crate::{data::Xid, frame::RequestFrame, wipe::wipe_buffer};

/// How much memory of written bytes is kept for later. One long burst must not stay for the life of a session.
const LEN_KEPT: usize = 64 << 10;

/// Bytes around a secret in its frame: headers and lengths.
const LEN_SECRET_SPARE: usize = 128;

/// The bytes that are to be written to the server, in order.
///
/// The driver takes what it has written off the front, with [`advance`](Buf::advance), and changes nothing else. Most of the
/// time there is one piece, which is [`chunk`](Buf::chunk). Long data are pieces of their own, so that they are not copied:
/// [`pieces`](Self::pieces) is for writing several at once.
#[derive(Debug, Default)]
pub struct Outbound {
    /// In front of `tail`: long bodies, and what lies between them.
    ahead: VecDeque<Bytes>,
    len_ahead: usize,
    tail: BytesMut,
    /// Whether `tail` has held more than is to be kept.
    has_outgrown: bool,
    /// Whether `tail` has held bytes that must not stay in memory.
    has_secrets: bool,
    /// How many bytes were appended so far.
    appended: u64,
}

impl Outbound {
    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len_ahead.saturating_add(self.tail.len())
    }

    /// Whether all has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.ahead.is_empty()
    }

    /// Whether there are several pieces.
    #[must_use]
    pub fn is_in_pieces(&self) -> bool {
        self.ahead.len() > usize::from(self.tail.is_empty())
    }

    /// The pieces, none of which is empty, in the order in which they are to be written.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let tail = (!self.tail.is_empty()).then_some(&*self.tail);
        self.ahead.iter().map(|piece| &**piece).chain(tail)
    }

    /// Takes all of the bytes as one piece, as [`copy_to_bytes`](Buf::copy_to_bytes) would.
    pub fn take_all(&mut self) -> Bytes {
        let len = self.len();
        self.copy_to_bytes(len)
    }

    /// Bytes that the driver has taken for writing; the server may have seen all of them.
    pub(crate) fn written(&self) -> u64 {
        self.appended.saturating_sub(self.len() as u64)
    }

    /// Appends bytes. Returns the offset in the stream at which they begin.
    pub(crate) fn write(&mut self, append: impl FnOnce(&mut BytesMut)) -> u64 {
        self.renew();
        if !self.has_secrets {
            return self.append(append);
        }
        let mut apart = BytesMut::new();
        append(&mut apart);
        self.make_room_beside_secrets(apart.len());
        self.append(|out| out.extend_from_slice(&apart))
    }

    /// As [`write`](Self::write), for a request. A long body is not copied.
    #[inline(always)]
    pub(crate) fn write_request(&mut self, xid: Xid, frame: &RequestFrame) -> u64 {
        match frame.long_body() {
            Some(body) if !self.has_secrets => self.write_long(xid, frame, body),
            _ => self.write(|out| frame.write(xid, out)),
        }
    }

    fn write_long(&mut self, xid: Xid, frame: &RequestFrame, body: &Bytes) -> u64 {
        self.renew();
        let start = self.append(|out| frame.write_head(xid, out));
        for piece in [self.tail.split().freeze(), body.clone()] {
            self.len_ahead = self.len_ahead.saturating_add(piece.len());
            self.ahead.push_back(piece);
        }
        self.appended = self.appended.saturating_add(body.len() as u64);
        start
    }

    /// As [`write`](Self::write), for about `len` bytes that must not stay in memory.
    pub(crate) fn write_secret(&mut self, len: usize, append: impl FnOnce(&mut BytesMut)) -> u64 {
        self.renew();
        self.make_room_beside_secrets(len.saturating_add(LEN_SECRET_SPARE));
        self.has_secrets = true;
        self.append(append)
    }

    /// Frees a buffer that has been written whole, if it must not be kept.
    fn renew(&mut self) {
        self.forget_secrets();
        if self.has_outgrown && self.tail.is_empty() {
            (self.tail, self.has_outgrown) = (BytesMut::new(), false);
        }
    }

    fn append(&mut self, append: impl FnOnce(&mut BytesMut)) -> u64 {
        let (start, before) = (self.appended, self.tail.len());
        append(&mut self.tail);
        self.has_outgrown |= self.tail.len() > LEN_KEPT;
        let len = self.tail.len().saturating_sub(before);
        self.appended = start.saturating_add(len as u64);
        start
    }

    /// Makes room in `tail` for `len_free` more bytes, and wipes the memory it leaves.
    fn make_room_beside_secrets(&mut self, len_free: usize) {
        let len = self.tail.len();
        if self.tail.capacity().saturating_sub(len) < len_free {
            let mut larger = BytesMut::with_capacity(len.saturating_add(len_free));
            larger.extend_from_slice(&self.tail);
            wipe_buffer(&mut self.tail);
            self.tail = larger;
        }
    }

    /// Overwrites secrets that have been written, once nothing else is waiting to be written.
    pub(crate) fn forget_secrets(&mut self) {
        if self.has_secrets && self.tail.is_empty() {
            wipe_buffer(&mut self.tail);
            self.has_secrets = false;
        }
    }

    /// Frees the memory of empty buffers.
    pub(crate) fn shrink(&mut self) {
        self.forget_secrets();
        if self.is_empty() {
            (self.tail, self.ahead) = (BytesMut::new(), VecDeque::new());
        }
    }

    /// Drops what was not written, for another connection.
    pub(crate) fn reset(&mut self) {
        self.ahead.clear();
        self.len_ahead = 0;
        self.tail.clear();
        self.forget_secrets();
        self.appended = 0;
    }
}

impl Buf for Outbound {
    fn remaining(&self) -> usize {
        self.len()
    }

    fn chunk(&self) -> &[u8] {
        self.ahead.front().map_or(&*self.tail, |piece| piece)
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(first) = self.ahead.front_mut().filter(|_| count > 0) {
            let taken = count.min(first.len());
            first.advance(taken);
            if first.is_empty() {
                self.ahead.pop_front();
            }
            self.len_ahead = self.len_ahead.saturating_sub(taken);
            count = count.saturating_sub(taken);
        }
        self.tail.advance(count);
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        if self.ahead.is_empty() {
            return self.tail.copy_to_bytes(len);
        }
        let mut all = BytesMut::with_capacity(len);
        while all.len() < len {
            let piece = self.chunk();
            let taken = piece.len().min(len.saturating_sub(all.len()));
            assert!(taken > 0, "there are not so many bytes");
            all.extend_from_slice(piece.get(..taken).unwrap_or_default());
            self.advance(taken);
        }
        all.freeze()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::{frame::LEN_LONG, op::OpCode};

    fn frame(len: usize) -> RequestFrame {
        let body: Bytes = (0..len).map(|at| at as u8).collect();
        RequestFrame::from_body(OpCode::SET_DATA, body)
    }

    /// Short and long requests by turns, and the bytes that they are.
    fn filled(lens: &[usize]) -> (Outbound, BytesMut) {
        let (mut outbound, mut all) = (Outbound::default(), BytesMut::new());
        for (xid, len) in (1..).map(Xid).zip(lens) {
            let start = outbound.write_request(xid, &frame(*len));
            assert_eq!(start, all.len() as u64);
            frame(*len).write(xid, &mut all);
        }
        (outbound, all)
    }

    const LENS: [usize; 6] = [3, LEN_LONG, 0, LEN_LONG - 1, 5 * LEN_LONG, 40];

    #[test]
    fn long_bodies_are_not_copied() {
        let long = frame(LEN_LONG);
        let mut outbound = Outbound::default();
        outbound.write_request(Xid(1), &long);
        outbound.write_request(Xid(2), &frame(1));
        let pieces: Vec<&[u8]> = outbound.pieces().collect();
        let [_, body, _] = *pieces else { panic!("{} pieces", pieces.len()) };
        assert_eq!(body.as_ptr(), long.body().as_ptr());
    }

    #[test]
    fn bytes_leave_in_their_order_however_many_are_taken() {
        for step in [1, 7, 4_096, LEN_LONG, LEN_LONG + 20, usize::MAX] {
            let (mut outbound, all) = filled(&LENS);
            assert_eq!(outbound.pieces().collect::<Vec<_>>().concat(), all);
            let mut left = Vec::new();
            while outbound.has_remaining() {
                let chunk = outbound.chunk();
                let taken = step.min(chunk.len());
                left.extend(chunk.iter().take(taken));
                outbound.advance(taken);
                assert_eq!(outbound.len(), all.len() - left.len());
                assert_eq!(outbound.written(), left.len() as u64);
            }
            assert_eq!(left, all);
            assert!(outbound.is_empty() && outbound.pieces().next().is_none());
        }
    }

    #[test]
    fn bytes_across_pieces_are_taken_at_once() {
        for len in [1, 30, LEN_LONG + 30, 2 * LEN_LONG + 100] {
            let (mut outbound, all) = filled(&LENS);
            let first = all.clone().split_to(len);
            assert_eq!(outbound.copy_to_bytes(len), first);
            assert_eq!([first.freeze(), outbound.take_all()].concat(), all);
            assert_eq!(outbound.written(), all.len() as u64);
        }
        let (mut outbound, _) = filled(&LENS);
        outbound.advance(LEN_LONG);
        outbound.reset();
        assert!(outbound.is_empty() && !outbound.is_in_pieces());
        assert_eq!((outbound.len(), outbound.written()), (0, 0));
    }

    #[test]
    fn burst_leaves_no_buffer_behind() {
        for (len, is_kept) in [(LEN_KEPT, true), (LEN_KEPT + 1, false)] {
            let mut outbound = Outbound::default();
            outbound.write(|out| out.resize(len, 0));
            outbound.advance(len);
            outbound.write(|out| out.resize(1, 0));
            assert_eq!(outbound.tail.capacity() > LEN_KEPT / 2, is_kept, "{len} bytes");
        }
    }

    #[test]
    fn secret_is_not_moved_while_it_is_written() {
        let mut outbound = Outbound::default();
        outbound.write(|out| out.resize(LEN_KEPT + 1, 0));
        outbound.advance(LEN_KEPT + 1);
        outbound.write_secret(8, |out| out.extend_from_slice(b"password"));
        assert_eq!(outbound.chunk(), b"password");
        assert!(outbound.tail.capacity() >= 8 + LEN_SECRET_SPARE, "the room was made elsewhere");
        // Nor does a body behind it leave the memory in which it is to be overwritten.
        outbound.write_request(Xid(1), &frame(LEN_LONG));
        assert!(!outbound.is_in_pieces());
    }
}
