//! What the tests of this crate share: a client without cleverness.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zk_proto::frame::{LEN_REPLY_MAX, ReplyHeader, RequestFrame, encode_frame, split_frame};
use zk_proto::jute::{Decode, Reader, decode_prefix};
use zk_proto::request::{
    ConnectRequest, ConnectResponse, Create2Request, CreateRequest, ExistsRequest, TrailingFlag,
};
use zk_proto::{Acl, CreateFlags, ErrorCode, List, Request, Secret, SessionId, Xid, Zxid};

/// Whatever a test waits for comes within this time, or never.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Waits for something that must happen.
pub(crate) async fn within_limit<F: Future>(future: F) -> F::Output {
    timeout(LIMIT, future).await.expect("it never happened")
}

/// A connection that sends what it is given, and reads frame by frame.
#[derive(Debug)]
pub(crate) struct RawClient {
    stream: TcpStream,
    inbox: BytesMut,
    next_xid: Xid,
}

impl RawClient {
    /// Opens a connection without saying anything.
    pub(crate) async fn dial(addr: SocketAddr) -> io::Result<Self> {
        Ok(Self {
            stream: TcpStream::connect(addr).await?,
            inbox: BytesMut::new(),
            next_xid: Xid::FIRST,
        })
    }

    /// Opens a connection and a session.
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let mut client = Self::dial(addr).await.expect("a connection");
        client.send(&connect_request()).await;
        let response = client.frame().await.expect("a connect response");
        let response: ConnectResponse = decode_prefix(&response).expect("a connect response");
        assert!(response.time_out > 0, "the session was refused");
        client
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("an open connection");
    }

    /// Sends a request without waiting for the answer.
    pub(crate) async fn ask<R: Request>(&mut self, request: &R) -> Xid {
        let (xid, bytes) = self.encode(request);
        self.send(&bytes).await;
        xid
    }

    /// The bytes of a request, under a number of its own.
    pub(crate) fn encode<R: Request>(&mut self, request: &R) -> (Xid, BytesMut) {
        let xid = self.next_xid;
        self.next_xid = xid.next();
        let mut bytes = BytesMut::new();
        RequestFrame::new(R::OP, request).write(xid, &mut bytes);
        (xid, bytes)
    }

    /// Reads the next reply that is not a heartbeat or an event.
    pub(crate) async fn reply(&mut self) -> io::Result<(ReplyHeader, Bytes)> {
        loop {
            let frame = self.frame().await?;
            let mut reader = Reader::new(&frame);
            let header = ReplyHeader::decode(&mut reader).expect("a reply header");
            if header.xid >= Xid(0) {
                return Ok((header, frame.slice(reader.offset()..)));
            }
        }
    }

    /// Sends a request and waits for the answer.
    pub(crate) async fn call<R: Request>(&mut self, request: &R) -> io::Result<ErrorCode> {
        let xid = self.ask(request).await;
        let (header, _) = self.reply().await?;
        assert_eq!(header.xid, xid);
        Ok(header.err)
    }

    /// Reads one frame; an orderly end is `UnexpectedEof`.
    pub(crate) async fn frame(&mut self) -> io::Result<Bytes> {
        within_limit(async {
            loop {
                if let Some(frame) = split_frame(&mut self.inbox, LEN_REPLY_MAX).expect("a length")
                {
                    return Ok(frame);
                }
                if self.stream.read_buf(&mut self.inbox).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        })
        .await
    }

    /// How the connection ends, when nothing more is expected before that.
    pub(crate) async fn end(&mut self) -> io::ErrorKind {
        self.frame().await.expect_err("an end").kind()
    }

    /// Bytes that have arrived and are not a whole frame.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.inbox
    }

    /// Reads everything up to the end of the connection.
    pub(crate) async fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        within_limit(self.stream.read_to_end(&mut bytes)).await.expect("an orderly end");
        bytes
    }

    /// Ends the connection without an orderly close.
    pub(crate) fn reset(self) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(Some(Duration::ZERO)).expect("an open socket");
    }

    /// Whether nothing arrives for a while.
    pub(crate) async fn hears_nothing_for(&mut self, time: Duration) -> bool {
        timeout(time, self.stream.read_buf(&mut self.inbox)).await.is_err()
    }
}

/// The first frame of a client that wants a new session.
pub(crate) fn connect_request() -> BytesMut {
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: Zxid(0),
        time_out: 10_000,
        session_id: SessionId(0),
        passwd: Secret(Some(&[0; 16])),
        read_only: TrailingFlag(Some(false)),
    };
    let mut bytes = BytesMut::new();
    encode_frame(&request, &mut bytes);
    bytes
}

/// A request to create a persistent node that all clients may use.
pub(crate) fn create2(path: &str) -> Create2Request<'_> {
    Create2Request(CreateRequest {
        path: path.into(),
        data: Some(b""),
        acl: List::from_iter([Acl::open_unsafe()]),
        flags: CreateFlags::PERSISTENT,
    })
}

pub(crate) fn exists(path: &str) -> ExistsRequest<'_> {
    ExistsRequest { path: path.into(), watch: false }
}
