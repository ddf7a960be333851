//! Servers that send more than was requested.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf, join, sink};
use zk_client::{BoxFuture, Cause, Connect, ConnectOptions, ReadError, Transport};
use zk_proto::{
    ErrorCode, EventType, KeeperState, Text, Xid, Zxid,
    frame::{ReplyHeader, encode_frame, encode_frame_with},
    jute::Encode as _,
    request::WatcherEvent,
};
use zk_tests::pretender::greeting;

/// How long a flood lasts.
const FLOOD: Duration = Duration::from_secs(60);

/// A connection to a server that makes a session, and then says the same over and over, as fast as it is read.
struct Flood {
    next: Bytes,
    again: Bytes,
    ends: Instant,
}

impl AsyncRead for Flood {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.next.has_remaining() {
            if Instant::now() > self.ends {
                return Poll::Pending;
            }
            self.next = self.again.clone();
        }
        let len = out.remaining().min(self.next.len());
        out.put_slice(&self.next.split_to(len));
        Poll::Ready(Ok(()))
    }
}

/// Connects to nothing else.
struct Flooding(Bytes);

impl Connect for Flooding {
    fn connect(&self, _: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let mut out = BytesMut::new();
        encode_frame(&greeting(), &mut out);
        let ends = Instant::now() + FLOOD;
        let flood = Flood { next: out.freeze(), again: self.0.clone(), ends };
        Box::pin(async move { Ok(Box::new(join(flood, sink())) as _) })
    }
}

fn many(event: Option<&WatcherEvent>) -> Bytes {
    let xid = if event.is_some() { Xid::NOTIFICATION } else { Xid::PING };
    let mut frames = BytesMut::new();
    while frames.len() < 64 << 10 {
        encode_frame_with(&mut frames, |out| {
            ReplyHeader { xid, zxid: Zxid(-1), err: ErrorCode::OK }.encode(out);
            event.into_iter().for_each(|event| event.encode(out));
        });
    }
    frames.freeze()
}

/// On one thread with all others.
#[test]
fn a_flood_leaves_everybody_else_their_turn() {
    let event = WatcherEvent {
        kind: EventType::NODE_DATA_CHANGED,
        state: KeeperState::SYNC_CONNECTED,
        path: Text::from("/a"),
    };
    for frames in [many(None), many(Some(&event))] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let options = ConnectOptions::new("flood:1").unwrap().connector(Flooding(frames));
            let zk = options.connect().await.unwrap();
            let since = Instant::now();
            // Asked under the flood, and never answered: it ends in time.
            let late = zk.get("/").timeout(Duration::from_millis(20)).await.unwrap_err();
            assert_eq!(late, ReadError::Unavailable(Cause::DeadlineExceeded));
            let took = since.elapsed();
            assert!(took < FLOOD / 5, "20 ms took {took:?}");
        });
    }
}
