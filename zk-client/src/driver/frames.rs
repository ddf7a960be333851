//! The shared buffer in which requests are encoded.

use std::sync::Mutex;

use bytes::BytesMut;
use zk_proto::{frame::RequestFrame, request::Request};

/// The buffer that requests of one session are encoded in. They leave it in roughly the order of their submission, so
/// its memory is reused, and a few requests that wait for another server do not keep all of it.
#[derive(Debug, Default)]
pub(crate) struct Frames(Mutex<BytesMut>);

impl Frames {
    /// Encodes a request.
    pub(crate) fn of<R: Request>(&self, request: &R) -> RequestFrame {
        // If another task is encoding, a separate buffer is better than waiting.
        let Ok(mut buffer) = self.0.try_lock() else { return RequestFrame::of(request) };
        RequestFrame::within(&mut buffer, request)
    }

    /// Releases the buffer.
    pub(crate) fn clear(&self) {
        if let Ok(mut buffer) = self.0.try_lock() {
            *buffer = BytesMut::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use zk_proto::{Str, Xid, request::GetDataRequest};

    use super::*;

    #[test]
    fn requests_encode_alike_in_a_shared_buffer() {
        let frames = Frames::default();
        let long = format!("/{}", "x".repeat(8 << 10));
        let paths = ["/a", &long, "/b", "/c"];
        let requests = paths.map(|path| GetDataRequest { path: Str::from(path), watch: false });
        let shared = requests.each_ref().map(|request| frames.of(request));
        frames.clear();
        for (request, shared) in requests.iter().zip(shared) {
            let (mut alone, mut together) = (BytesMut::new(), BytesMut::new());
            RequestFrame::of(request).write(Xid(7), &mut alone);
            shared.write(Xid(7), &mut together);
            assert_eq!(alone, together);
        }
    }

    #[test]
    fn busy_buffer_falls_back_to_an_own_one() {
        let frames = Frames::default();
        let _taken = frames.0.lock().unwrap();
        let request = GetDataRequest { path: Str::from("/a"), watch: false };
        assert_eq!(frames.of(&request), RequestFrame::of(&request));
    }
}
