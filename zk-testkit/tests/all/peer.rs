//! A server without a tree: it answers every request with success, and tells what it saw.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use zk_proto::frame::{LEN_REPLY_MAX, ReplyHeader, RequestHeader, encode_frame, split_frame};
use zk_proto::jute::{Decode, Encode, Reader};
use zk_proto::request::{ConnectResponse, ExistsRequest, TrailingFlag, WatcherEvent};
use zk_proto::{ErrorCode, EventType, KeeperState, OpCode, Secret, SessionId, Xid, Zxid};

use crate::support::within_limit;

/// A request to look at this path is answered by an event first.
pub(crate) const EVENT_PATH: &str = "/event";

/// What a peer sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// So many bytes by one read.
    Read(usize),
    Handshake,
    Request(OpCode),
    /// The client closed in order.
    End,
    /// The connection broke.
    Broken,
}

#[derive(Debug)]
pub(crate) struct EchoPeer {
    addr: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    news: watch::Sender<()>,
    accepting: AbortHandle,
}

impl EchoPeer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let news = watch::Sender::new(());
        let log = Log { seen: Arc::clone(&seen), news: news.clone() };
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, log.clone()));
            }
        });
        Self { addr, seen, news, accepting: accepting.abort_handle() }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Everything but reads.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let seen = self.seen.lock().expect("no panic");
        let is_message = |seen: &&Seen| !matches!(seen, Seen::Read(_));
        seen.iter().filter(is_message).copied().collect()
    }

    /// The lengths of all reads.
    pub(crate) fn reads(&self) -> Vec<usize> {
        let seen = self.seen.lock().expect("no panic");
        let lengths = seen.iter().filter_map(|seen| match seen {
            Seen::Read(len) => Some(*len),
            _ => None,
        });
        lengths.collect()
    }

    pub(crate) async fn wait_for(&self, wanted: Seen) {
        let mut news = self.news.subscribe();
        within_limit(async {
            while !self.seen().contains(&wanted) {
                news.changed().await.expect("the peer lives");
            }
        })
        .await;
    }
}

impl Drop for EchoPeer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

#[derive(Clone)]
struct Log {
    seen: Arc<Mutex<Vec<Seen>>>,
    news: watch::Sender<()>,
}

impl Log {
    fn enter(&self, seen: Seen) {
        self.seen.lock().expect("no panic").push(seen);
        self.news.send_replace(());
    }
}

async fn serve(mut stream: TcpStream, log: Log) {
    let mut inbox = BytesMut::with_capacity(64 << 10);
    let mut greeted = false;
    let mut zxid = Zxid(0);
    loop {
        match stream.read_buf(&mut inbox).await {
            Ok(0) => return log.enter(Seen::End),
            Ok(len) => log.enter(Seen::Read(len)),
            Err(_) => return log.enter(Seen::Broken),
        }
        if inbox.starts_with(b"ruok") {
            // As real servers do: answer, then close. Failing means that the client is gone.
            let _ = stream.write_all(b"imok").await;
            return log.enter(Seen::End);
        }
        let mut answers = BytesMut::new();
        while let Some(frame) = split_frame(&mut inbox, LEN_REPLY_MAX).expect("a length") {
            if greeted {
                let mut reader = Reader::new(&frame);
                let header = RequestHeader::decode(&mut reader).expect("a request header");
                log.enter(Seen::Request(header.op));
                zxid.0 += 1;
                if header.op == OpCode::EXISTS {
                    let request = ExistsRequest::decode(&mut reader).expect("a request");
                    announce(&request.path.lossy(), zxid, &mut answers);
                }
                encode_frame(&reply_header(header.xid, zxid), &mut answers);
            } else {
                greeted = true;
                log.enter(Seen::Handshake);
                encode_frame(&welcome(), &mut answers);
            }
        }
        if stream.write_all(&answers).await.is_err() {
            return log.enter(Seen::Broken);
        }
    }
}

fn announce(path: &str, zxid: Zxid, answers: &mut BytesMut) {
    if path == EVENT_PATH {
        let event = WatcherEvent {
            kind: EventType::NODE_CREATED,
            state: KeeperState::SYNC_CONNECTED,
            path: path.into(),
        };
        zk_proto::frame::encode_frame_with(answers, |out| {
            reply_header(Xid::NOTIFICATION, zxid).encode(out);
            event.encode(out);
        });
    }
}

fn reply_header(xid: Xid, zxid: Zxid) -> ReplyHeader {
    ReplyHeader { xid, zxid, err: ErrorCode::OK }
}

fn welcome() -> ConnectResponse {
    ConnectResponse {
        protocol_version: 0,
        time_out: 10_000,
        session_id: SessionId(7),
        passwd: Secret(Some(bytes::Bytes::from_static(&[1; 16]))),
        read_only: TrailingFlag(Some(false)),
    }
}
