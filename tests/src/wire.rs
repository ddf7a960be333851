//! Bytes of a connection, cut into frames.

use bytes::{Bytes, BytesMut};
use zk_proto::frame::split_frame;

/// Cuts whole frames, without their length prefixes.
///
/// # Panics
/// If there is anything else.
#[must_use]
pub fn frames(bytes: &[u8]) -> Vec<Bytes> {
    let mut bytes = BytesMut::from(bytes);
    let mut frames = Vec::new();
    while let Some(frame) = split_frame(&mut bytes, usize::MAX).expect("lengths are in range") {
        frames.push(frame);
    }
    assert!(bytes.is_empty(), "only whole frames are put in front of the driver");
    frames
}
