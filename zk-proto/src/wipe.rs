//! Overwriting secrets that are not needed any more.

use bytes::{Bytes, BytesMut};
use zeroize::Zeroize as _;

/// Overwrites bytes that are not shared. Shared ones are left to their last owner.
pub(crate) fn wipe(bytes: &mut Bytes) {
    if let Ok(mut own) = core::mem::take(bytes).try_into_mut() {
        own.zeroize();
    }
}

/// Overwrites all memory of a buffer, including the part before its beginning, and frees it.
pub(crate) fn wipe_buffer(buffer: &mut BytesMut) {
    overwrite(buffer);
    // Reserves more than the capacity. If bytes have been taken off the front, the buffer moves to the front then.
    // Otherwise it moves elsewhere, and would grow each time if it were kept.
    buffer.reserve(buffer.capacity().saturating_add(1));
    overwrite(buffer);
    *buffer = BytesMut::new();
}

fn overwrite(buffer: &mut BytesMut) {
    buffer.resize(buffer.capacity(), 0);
    buffer.zeroize();
    buffer.clear();
}

#[cfg(test)]
mod tests {
    use bytes::Buf as _;

    use super::*;

    #[test]
    fn buffer_is_overwritten_from_its_start() {
        let mut buffer = BytesMut::with_capacity(64);
        buffer.extend_from_slice(b"abcdefgh");
        let front = buffer.as_ptr();
        buffer.advance(5);
        buffer.clear();
        // `wipe_buffer` relies on this.
        buffer.reserve(buffer.capacity() + 1);
        assert_eq!((buffer.as_ptr(), buffer.capacity()), (front, 64));
    }

    #[test]
    fn a_buffer_does_not_grow_by_being_wiped() {
        let mut buffer = BytesMut::new();
        for _ in 0..64 {
            buffer.extend_from_slice(b"secret");
            buffer.clear();
            wipe_buffer(&mut buffer);
            assert_eq!(buffer.capacity(), 0);
        }
    }

    #[test]
    fn shared_bytes_are_left_alone() {
        let mut bytes = Bytes::copy_from_slice(b"secret");
        let other = bytes.clone();
        wipe(&mut bytes);
        assert_eq!((&*bytes, &*other), (&b""[..], &b"secret"[..]));
        wipe(&mut Bytes::from_static(b"nobody's"));
    }
}
