//! Frames in what passes by.

use bytes::{Bytes, BytesMut};
use zk_proto::{
    frame::{LEN_REPLY_MAX, split_frame},
    traffic::{Received, Reply, Sent, SentRequest, Traffic},
};

/// Both ways of a connection.
#[derive(Debug, Default)]
pub(super) struct Tap {
    up: Splitter,
    down: Splitter,
    traffic: Traffic,
}

/// Splits one way of a connection into frames.
#[derive(Debug, Default)]
struct Splitter {
    buffer: BytesMut,
    has_begun: bool,
    /// Whether it is no frames that pass, or not any more.
    opaque: bool,
}

impl Splitter {
    fn next(&mut self) -> Option<Bytes> {
        let frame = split_frame(&mut self.buffer, LEN_REPLY_MAX);
        self.opaque |= frame.is_err();
        frame.ok().flatten().filter(|_| !self.opaque)
    }
}

impl Tap {
    /// The client has sent these bytes: its frames.
    ///
    /// # Panics
    /// If one of them cannot be read.
    pub(super) fn up(&mut self, bytes: &[u8], mut see: impl FnMut(&Sent<'_>)) {
        if !self.up.has_begun && bytes.starts_with(b"isro") {
            self.up.opaque = true;
            self.down.opaque = true;
        }
        self.up.has_begun = true;
        self.up.buffer.extend_from_slice(bytes);
        while let Some(frame) = self.up.next() {
            match self.traffic.sent(&frame) {
                Ok(sent) => see(&sent),
                Err(error) => panic!("a client sends what cannot be read: {error}"),
            }
        }
    }

    /// Whether what the client has sent ends with a frame.
    pub(super) fn is_up_whole(&self) -> bool {
        self.up.buffer.is_empty() || self.up.opaque
    }

    /// These bytes have come to the client: the server's frames.
    pub(super) fn down(&mut self, bytes: &[u8], mut see: impl FnMut(&Received)) {
        self.down.buffer.extend_from_slice(bytes);
        while let Some(frame) = self.down.next() {
            match self.traffic.received(&frame) {
                Ok(received) => see(&received),
                Err(_) => self.down.opaque = true,
            }
        }
    }
}

/// What a trace calls a frame, and its number.
pub(super) fn sent_as(frame: &Sent<'_>) -> (&'static str, u64) {
    match frame {
        Sent::Connect(_) => ("connect", 0),
        Sent::Request(SentRequest { header, .. }) => {
            (header.op.name().unwrap_or("request"), u64::from(header.xid.0.unsigned_abs()))
        }
    }
}

/// The same of what has come.
pub(super) fn received_as(frame: &Received) -> (&'static str, u64) {
    let (what, xid) = match frame {
        Received::Connect(_) => ("  greeting", 0),
        Received::Event { .. } => ("  event", 0),
        Received::Reply(Reply { header, .. }) if header.err.is_ok() => ("  reply", header.xid.0),
        Received::Reply(Reply { header, .. }) | Received::Refused(header) => {
            ("  refusal", header.xid.0)
        }
    };
    (what, u64::from(xid.unsigned_abs()))
}

/// The bytes in front of the last frame, and that.
pub(super) fn last_frame(bytes: &Bytes) -> (Bytes, Option<Bytes>) {
    let mut at = 0;
    loop {
        let prefix = bytes.get(at..at + 4).and_then(|prefix| <[u8; 4]>::try_from(prefix).ok());
        let Some(prefix) = prefix else { return (bytes.clone(), None) };
        let len = prefix.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
        let next = at + 4 + len;
        if next >= bytes.len() {
            return (bytes.slice(..at), (next == bytes.len()).then(|| bytes.slice(at..)));
        }
        at = next;
    }
}
