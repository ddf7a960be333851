//! Bytes of requests; replies that are counted, or looked at as far as it takes.

use std::{future::Future, io, net::TcpStream, path::Path, pin::pin, task};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use zk_proto::{
    Secret, SessionId, Xid, Zxid,
    frame::{ReplyHeader, RequestFrame, encode_frame, split_frame},
    jute::{Decode as _, Reader},
    request::{CloseSession, ConnectRequest, Request, TrailingFlag},
};

use crate::{
    client::Failure,
    tls::{Secured, secured},
};

/// Longest reply.
const REPLY_MAX: usize = 64 << 20;

/// Most that is read at once of what is looked at.
pub(super) const READ_LEN: usize = 16 << 10;

/// The first frame of a connection.
pub(super) fn greeting() -> BytesMut {
    let mut out = BytesMut::new();
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: Zxid(0),
        time_out: 10_000,
        session_id: SessionId(0),
        passwd: Secret(Some(&[0; 16])),
        read_only: TrailingFlag(Some(false)),
    };
    encode_frame(&request, &mut out);
    out
}

/// Appends a request.
pub(super) fn put(out: &mut BytesMut, xid: i32, request: &impl Request) {
    RequestFrame::of(request).write(Xid(xid), out);
}

/// A reply, or an event.
pub(super) struct Reply {
    pub(super) header: ReplyHeader,
    frame: Bytes,
    body: usize,
}

impl Reply {
    pub(super) fn read(frame: Bytes) -> Result<Self, Failure> {
        let mut reader = Reader::new(&frame);
        let header = ReplyHeader::decode(&mut reader).map_err(|error| error.to_string())?;
        let body = reader.offset();
        Ok(Self { header, frame, body })
    }

    pub(super) fn body(&self) -> Bytes {
        self.frame.slice(self.body..)
    }
}

/// What locks are made of: requests in one write, replies one by one.
pub(super) trait Talk: Sized {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Reads what there is; never nothing.
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    async fn reply(&mut self) -> Result<Reply, Failure>;

    /// One that has been read already.
    fn buffered(&mut self) -> Result<Option<Reply>, Failure>;
}

/// A connection that many can wait on at the same time.
pub(super) struct SharedWire {
    stream: tokio::net::TcpStream,
    inbound: BytesMut,
}

impl SharedWire {
    pub(super) fn new(wire: Wire) -> io::Result<Self> {
        wire.stream.set_nonblocking(true)?;
        let stream = tokio::net::TcpStream::from_std(wire.stream)?;
        Ok(Self { stream, inbound: wire.inbound })
    }
}

impl Talk for SharedWire {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        not_nothing(self.stream.read(buffer).await?)
    }

    async fn reply(&mut self) -> Result<Reply, Failure> {
        loop {
            if let Some(frame) = split(&mut self.inbound)? {
                return Reply::read(frame);
            }
            self.inbound.reserve(READ_LEN);
            not_nothing(self.stream.read_buf(&mut self.inbound).await?)?;
        }
    }

    fn buffered(&mut self) -> Result<Option<Reply>, Failure> {
        split(&mut self.inbound)?.map(Reply::read).transpose()
    }
}

impl<S: io::Read + io::Write> Talk for Wire<S> {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        Self::write(self, bytes)
    }

    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Self::read(self, buffer)
    }

    async fn reply(&mut self) -> Result<Reply, Failure> {
        Self::reply(self)
    }

    fn buffered(&mut self) -> Result<Option<Reply>, Failure> {
        split(&mut self.inbound)?.map(Reply::read).transpose()
    }
}

fn not_nothing(len: usize) -> io::Result<usize> {
    if len == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(len) }
}

fn split(inbound: &mut BytesMut) -> Result<Option<Bytes>, Failure> {
    split_frame(inbound, REPLY_MAX).map_err(|error| error.to_string().into())
}

/// A connection with a session, on which one waits.
pub(super) struct Wire<S = TcpStream> {
    stream: S,
    inbound: BytesMut,
}

impl Wire {
    pub(super) fn connect(server: &str) -> Result<Self, Failure> {
        Self::begin(dial(server)?)
    }

    /// The same connection, for another thread to write to.
    pub(super) fn twin(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.try_clone()?, inbound: BytesMut::new() })
    }
}

impl Wire<Secured> {
    pub(super) fn connect_secured(server: &str, authority: &Path) -> Result<Self, Failure> {
        Self::begin(secured(dial(server)?, authority)?)
    }
}

fn dial(server: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl<S: io::Read + io::Write> Wire<S> {
    fn begin(stream: S) -> Result<Self, Failure> {
        let mut wire = Self { stream, inbound: BytesMut::with_capacity(1 << 10) };
        wire.write(&greeting())?;
        let answer = wire.frame()?;
        if answer.len() < 36 || answer.slice(4..).get_i32() <= 0 {
            return Err("no session".into());
        }
        Ok(wire)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads what there is; never nothing.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        not_nothing(self.stream.read(buffer)?)
    }

    fn frame(&mut self) -> Result<Bytes, Failure> {
        loop {
            if let Some(frame) = split(&mut self.inbound)? {
                return Ok(frame);
            }
            let mut buffer = [0; READ_LEN];
            let len = self.read(&mut buffer)?;
            self.inbound.extend_from_slice(&buffer[..len]);
        }
    }

    pub(super) fn reply(&mut self) -> Result<Reply, Failure> {
        self.frame().and_then(Reply::read)
    }

    pub(super) fn close(mut self) {
        let mut out = BytesMut::new();
        put(&mut out, i32::MAX, &CloseSession);
        // It ends one way or the other.
        let _ = self.write(&out).and_then(|()| self.read(&mut [0; 64]));
    }
}

/// What a future comes to that never waits but in the system.
pub(super) fn now<F: Future>(future: F) -> F::Output {
    let mut cx = task::Context::from_waker(task::Waker::noop());
    match pin!(future).poll(&mut cx) {
        task::Poll::Ready(output) => output,
        task::Poll::Pending => unreachable!("it waits in the system"),
    }
}

/// Counts frames in a stream of bytes, whatever is in them.
#[derive(Default)]
pub(super) struct Counter {
    /// Bytes of a prefix that are there.
    prefix: BytesMut,
    /// Bytes of a frame that are still to come.
    rest: usize,
}

impl Counter {
    /// How many frames end in these bytes.
    pub(super) fn count(&mut self, mut bytes: &[u8]) -> u64 {
        let mut frames = 0;
        loop {
            if self.rest > 0 {
                let skipped = self.rest.min(bytes.len());
                bytes.advance(skipped);
                self.rest -= skipped;
                if self.rest > 0 {
                    return frames;
                }
                frames += 1;
            }
            // Almost always there is a whole prefix.
            if self.prefix.is_empty() && bytes.len() >= 4 {
                self.rest = bytes.get_u32() as usize;
                continue;
            }
            let taken = bytes.len().min(4 - self.prefix.len());
            self.prefix.extend_from_slice(&bytes[..taken]);
            bytes.advance(taken);
            if self.prefix.len() < 4 {
                return frames;
            }
            self.rest = self.prefix.split().get_u32() as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_however_they_are_cut() {
        let mut bytes = BytesMut::new();
        for xid in 1..=5 {
            put(&mut bytes, xid, &CloseSession);
        }
        for len in 1..=bytes.len() {
            let mut counter = Counter::default();
            let counted: u64 = bytes.chunks(len).map(|chunk| counter.count(chunk)).sum();
            assert_eq!(counted, 5, "in pieces of {len}");
        }
    }
}
