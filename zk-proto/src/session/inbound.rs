//! The inbound buffer: bytes that are no whole frame yet, and room for more.

use bytes::BytesMut;

use crate::frame::{FrameError, LEN_PREFIX, frame_len, split_frame_mut};

/// Initial room, in bytes: more than the answer to one small read, so that it takes one call.
const LEN_MIN: usize = 512;

/// Most room for frames that share a buffer. No more is kept when there is nothing to read: thousands of sessions would
/// keep a megabyte each for one long listing.
const LEN_MAX: usize = 64 << 10;

/// The room is renewed when less than one part in this many is left: callers that hold replies keep the memory that
/// these were read into from being reused, and otherwise each reply would cost a buffer.
const USED_UP: usize = 4;

/// A longer frame gets a buffer of its own, unless it is in one already that holds all of it: its bytes are not moved
/// any more, and a caller that is handed a part of it holds nothing else.
const LEN_SHARED: usize = 32 << 10;

/// Memory that a frame gets for its claimed length alone.
const LEN_BELIEVED: usize = 128 << 10;

/// The buffer that is read into.
///
/// Starts small, so that thousands of idle sessions are cheap, and grows each time it has been filled, so that a batch
/// of replies is read at once. After a frame with a buffer of its own the room is small again, for the beginning of the
/// next: the rest is read to its final place.
#[derive(Debug)]
pub(crate) struct Inbound {
    buffer: BytesMut,
    /// How much room to make at a time.
    len_room: usize,
    /// Whether the buffer holds only its first frame.
    is_own: bool,
    /// The length of the last frame with a buffer of its own. The same claim of another frame is believed.
    len_seen: usize,
    /// How much of the first frame had arrived when that last counted as a sign of life.
    len_noted: usize,
}

impl Default for Inbound {
    fn default() -> Self {
        Self {
            buffer: BytesMut::new(),
            len_room: LEN_MIN,
            is_own: false,
            len_seen: 0,
            len_noted: 0,
        }
    }
}

impl Inbound {
    pub(crate) const fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Returns the buffer with room for reading.
    pub(crate) fn with_room(&mut self) -> &mut BytesMut {
        let (len, capacity) = (self.buffer.len(), self.buffer.capacity());
        let end = frame_len(&self.buffer).unwrap_or_default().saturating_add(LEN_PREFIX);
        if end <= LEN_SHARED {
            if capacity.saturating_sub(len) < self.len_room / USED_UP {
                self.buffer.reserve(self.len_room);
            }
        } else if capacity < end && (len == capacity || !self.is_own) {
            // The claimed length is believed only in proportion to the bytes received, of this frame and of earlier
            // ones.
            let believed = LEN_BELIEVED.max(self.len_seen).max(len.saturating_mul(2));
            let mut own = BytesMut::with_capacity(end.min(believed));
            own.extend_from_slice(&self.buffer);
            (self.buffer, self.is_own) = (own, true);
        }
        &mut self.buffer
    }

    /// Records that bytes were appended.
    pub(crate) fn note_growth(&mut self) {
        if self.buffer.len() > LEN_BELIEVED {
            // The driver has appended more than the room it was given.
            self.is_own = true;
        } else if self.buffer.len() == self.buffer.capacity() && !self.is_own {
            self.len_room = self.len_room.saturating_mul(2).min(LEN_MAX);
        }
    }

    /// Whether the incoming frame has grown by `len` bytes since this last returned `true`.
    pub(crate) fn has_grown_by(&mut self, len: u64) -> bool {
        let grown = self.buffer.len().saturating_sub(self.len_noted);
        let has_grown = u64::try_from(grown).is_ok_and(|grown| grown >= len);
        if has_grown {
            self.len_noted = self.buffer.len();
        }
        has_grown
    }

    /// Takes the first whole frame off, without its length prefix. `Ok(None)` means that more bytes are needed.
    pub(crate) fn split_frame(&mut self, len_max: usize) -> Result<Option<BytesMut>, FrameError> {
        split_frame_mut(&mut self.buffer, len_max).inspect(|frame| {
            if frame.is_some() {
                self.len_noted = 0;
            }
            if let (Some(frame), true) = (frame, self.is_own) {
                (self.len_seen, self.len_room) = (frame.len().saturating_add(LEN_PREFIX), LEN_MIN);
            }
        })
    }

    /// Called when no whole frame is left. Frees a frame's own buffer, unless the rest of that frame is still to be
    /// read.
    pub(crate) fn settle(&mut self) {
        if self.is_own && frame_len(&self.buffer).unwrap_or_default() <= LEN_SHARED {
            // Bytes of the next frame are kept.
            (self.buffer, self.is_own) = (BytesMut::from(&self.buffer[..]), false);
        }
    }

    /// Discards all received bytes.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.len_noted = 0;
        self.settle();
    }

    /// Frees unused memory after a time without traffic.
    pub(crate) fn shrink(&mut self) {
        (self.len_room, self.len_seen) = (LEN_MIN, 0);
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    clippy::big_endian_bytes,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const LEN_FRAME_MAX: usize = 64 << 20;

    /// Appends as much of `bytes` as there is room for, as a driver does that reads. Returns the capacity of the
    /// buffer, and the frame if it is complete.
    fn read(inbound: &mut Inbound, bytes: &mut &[u8]) -> (usize, Option<BytesMut>) {
        let buffer = inbound.with_room();
        let (capacity, room) = (buffer.capacity(), buffer.capacity() - buffer.len());
        assert!(room > 0, "what is read into nothing looks like the end of the stream");
        let (now, later) = bytes.split_at(room.min(bytes.len()));
        buffer.extend_from_slice(now);
        *bytes = later;
        inbound.note_growth();
        let frame = inbound.split_frame(LEN_FRAME_MAX).unwrap();
        if frame.is_none() {
            inbound.settle();
        }
        (capacity, frame)
    }

    fn frame(len: usize) -> Vec<u8> {
        let mut bytes = u32::try_from(len).unwrap().to_be_bytes().to_vec();
        bytes.extend((0..len).map(|index| (index % 251) as u8));
        bytes
    }

    /// Reads a frame. Returns the number of reads, and the longest buffer.
    fn read_frame(inbound: &mut Inbound, len: usize) -> (usize, usize) {
        let bytes = frame(len);
        let (mut rest, mut reads, mut longest) = (&*bytes, 0, 0);
        loop {
            let (capacity, frame) = read(inbound, &mut rest);
            (reads, longest) = (reads + 1, longest.max(capacity));
            if let Some(frame) = frame {
                assert_eq!(frame, bytes[LEN_PREFIX..]);
                inbound.settle();
                return (reads, longest);
            }
        }
    }

    #[test]
    fn long_frame_is_read_into_an_exact_buffer() {
        let mut inbound = Inbound::default();
        for _ in 0..3 {
            assert_eq!(read_frame(&mut inbound, 70_000), (2, 70_000 + LEN_PREFIX));
            assert_eq!(inbound.buffer.capacity(), 0, "it is not kept");
        }
    }

    #[test]
    fn announced_length_is_trusted_gradually() {
        let mut inbound = Inbound::default();
        let bytes = frame(1 << 20);
        let mut rest = &bytes[..200_000];
        let mut longest = 0;
        while !rest.is_empty() {
            longest = longest.max(read(&mut inbound, &mut rest).0);
        }
        assert_eq!(longest, 2 * LEN_BELIEVED, "twice what has come");
        inbound.clear();

        let (len, end) = ((1 << 20) - LEN_PREFIX, 1 << 20);
        let first = read_frame(&mut inbound, len);
        assert_eq!(first, (5, end), "the beginning, 128 KiB, 256, 512, all");
        assert_eq!(read_frame(&mut inbound, len), (2, end));
        inbound.shrink();
        assert_eq!(read_frame(&mut inbound, len), first, "that was long ago");
    }

    #[test]
    fn buffer_grows_with_input_and_is_released() {
        let mut inbound = Inbound::default();
        let bytes = frame(100).repeat(10_000);
        let mut rest = &*bytes;
        let mut longest = 0;
        while !rest.is_empty() {
            longest = longest.max(read(&mut inbound, &mut rest).0);
            while inbound.split_frame(LEN_FRAME_MAX).unwrap().is_some() {}
            inbound.settle();
        }
        assert!((LEN_MAX..LEN_BELIEVED).contains(&longest), "{longest}");
        inbound.buffer.clear();
        inbound.shrink();
        assert_eq!(inbound.buffer.capacity(), 0);
        assert_eq!(inbound.with_room().capacity(), LEN_MIN);
    }

    #[test]
    fn bytes_after_a_long_frame_are_kept() {
        let mut inbound = Inbound::default();
        let bytes = [frame(300_000), frame(5)].concat();
        inbound.buffer.extend_from_slice(&bytes[..bytes.len() - 1]);
        inbound.note_growth();
        assert_eq!(inbound.split_frame(LEN_FRAME_MAX).unwrap().unwrap().len(), 300_000);
        assert_eq!(inbound.split_frame(LEN_FRAME_MAX).unwrap(), None);
        inbound.settle();
        assert!(inbound.buffer.capacity() < LEN_MIN, "a long buffer was kept for a few bytes");
        let (_, last) = read(&mut inbound, &mut &bytes[bytes.len() - 1..]);
        assert_eq!(last.unwrap()[..], [0, 1, 2, 3, 4]);
    }
}
