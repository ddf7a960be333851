//! What servers say on the wire: transactions never go back.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use zk_client::{Connect, Dial, ResolvedConnect, Transport, Zxid};

/// Connections over TCP, all of one session, whose replies are looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Tap(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    newest: AtomicI64,
    compared: AtomicU64,
    went_back: AtomicU64,
}

impl Tap {
    /// How many replies were compared with the newest transaction before them.
    pub(super) fn compared(&self) -> u64 {
        self.0.compared.load(Ordering::Relaxed)
    }

    /// How many of them told of an older one.
    pub(super) fn went_back(&self) -> u64 {
        self.0.went_back.load(Ordering::Relaxed)
    }
}

impl Seen {
    fn reply(&self, zxid: Zxid) {
        self.compared.fetch_add(1, Ordering::Relaxed);
        if self.newest.fetch_max(zxid.0, Ordering::Relaxed) > zxid.0 {
            self.went_back.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Connect for Tap {
    fn connect(&self, server: &str) -> Dial {
        let (dial, seen) = (ResolvedConnect::default().connect(server), self.0.clone());
        Box::pin(async move {
            let stream = dial.await?;
            Ok(Box::new(Tapped { stream, frames: Frames::default(), seen }) as Box<dyn Transport>)
        })
    }
}

struct Tapped {
    stream: Box<dyn Transport>,
    frames: Frames,
    seen: Arc<Seen>,
}

/// Length, number of the request, transaction: what of a reply is looked at.
const HEAD_LEN: usize = 4 + 4 + 8;

/// Where one reply ends and the next begins.
#[derive(Default)]
struct Frames {
    /// What there is so far of the head of the present one.
    head: Vec<u8>,
    /// How much of it is still to come behind the head.
    rest: usize,
    /// The first one answers the handshake, and has no such head.
    shook_hands: bool,
}

impl Frames {
    /// Takes bytes, and tells the transactions of the replies whose heads are complete with them.
    fn take(&mut self, mut bytes: &[u8], mut reply: impl FnMut(Zxid)) {
        while !bytes.is_empty() {
            let skipped = self.rest.min(bytes.len());
            self.rest -= skipped;
            bytes = &bytes[skipped..];
            let wanted = (HEAD_LEN - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..wanted]);
            bytes = &bytes[wanted..];
            if self.head.len() < HEAD_LEN {
                continue;
            }
            let number = |range: std::ops::Range<usize>| {
                self.head[range].iter().fold(0_i64, |number, byte| number << 8 | i64::from(*byte))
            };
            let (len, xid, zxid) = (number(0..4), number(4..8), number(8..16));
            self.rest = usize::try_from(len).unwrap_or_default().saturating_sub(HEAD_LEN - 4);
            self.head.clear();
            // Notifications have their own, or none.
            let is_notification = xid == i64::from(u32::MAX);
            if std::mem::replace(&mut self.shook_hands, true) && !is_notification && zxid > 0 {
                reply(Zxid(zxid));
            }
        }
    }
}

impl AsyncRead for Tapped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        this.frames.take(&buf.filled()[before..], |zxid| this.seen.reply(zxid));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with such a header, and a body of zeros.
    fn frame(xid: u8, zxid: u8, body: usize) -> Vec<u8> {
        let len = u8::try_from(12 + body).unwrap();
        let xid = if xid == 255 { [255; 4] } else { [0, 0, 0, xid] };
        [&[0, 0, 0, len][..], &xid, &[0, 0, 0, 0, 0, 0, 0, zxid], &vec![0; body]].concat()
    }

    #[test]
    fn transactions_are_found_wherever_the_bytes_are_cut() {
        let handshake = frame(0, 9, 25);
        let bytes = [handshake, frame(1, 5, 4), frame(255, 6, 30), frame(2, 7, 40)].concat();
        for len in 1..bytes.len() {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for part in bytes.chunks(len) {
                frames.take(part, |zxid| found.push(zxid.0));
            }
            assert_eq!(found, [5, 7], "in parts of {len}");
        }
    }

    #[test]
    fn a_transaction_that_goes_back_is_noticed() {
        let seen = Seen::default();
        for (zxid, went_back) in [(5, 0), (5, 0), (7, 0), (6, 1)] {
            seen.reply(Zxid(zxid));
            assert_eq!(seen.went_back.load(Ordering::Relaxed), went_back);
        }
    }
}
