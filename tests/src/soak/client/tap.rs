//! What servers say on the wire: transactions never go back.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use bytes::BytesMut;
use tokio_util::io::InspectReader;
use zk_client::{BoxFuture, Connect, ResolvedConnect, Transport, Zxid};
use zk_proto::{
    frame::{LEN_REPLY_MAX, split_frame},
    traffic::{Received, Traffic},
};

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

    /// How many of them reported an older one.
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
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let (dial, seen) = (ResolvedConnect::default().connect(server), self.0.clone());
        let (mut inbound, mut traffic) = (BytesMut::new(), Traffic::default());
        let look = move |read: &[u8]| {
            inbound.extend_from_slice(read);
            while let Ok(Some(frame)) = split_frame(&mut inbound, LEN_REPLY_MAX) {
                match traffic.received(&frame) {
                    Ok(Received::Reply(reply)) if reply.header.zxid > Zxid(0) => {
                        seen.reply(reply.header.zxid);
                    }
                    // Notifications have their own, or none.
                    _ => {}
                }
            }
        };
        Box::pin(async move {
            Ok(Box::new(InspectReader::new(dial.await?, look)) as Box<dyn Transport>)
        })
    }

    fn fails_whole(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_goes_back_is_noticed() {
        let seen = Seen::default();
        for (zxid, went_back) in [(5, 0), (5, 0), (7, 0), (6, 1)] {
            seen.reply(Zxid(zxid));
            assert_eq!(seen.went_back.load(Ordering::Relaxed), went_back);
        }
    }
}
