//! A client over a stream that answers by itself.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::{Builder, Runtime},
};
use zk_client::{BoxFuture, Client, Clock, Connect, ConnectOptions, ReadError, Transport};
use zk_proto::{
    ErrorCode, OpCode, Xid, Zxid,
    frame::{ReplyHeader, encode_frame, encode_frame_with},
    jute::{Decode as _, Encode, Reader},
};

use crate::{
    Piece,
    session::{body, greeting},
};

/// Reads that are under way together.
const IN_FLIGHT: usize = 256;

/// Time does not pass: nothing is done because of it. The clock for production is none for valgrind, which does not
/// map the pages that it is read from.
struct Still;

impl Clock for Still {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

/// Connects to nobody.
struct Alone;

impl Connect for Alone {
    fn connect(&self, _: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        Box::pin(async { Ok(Box::new(Echo::new()) as Box<dyn Transport>) })
    }
}

/// A connection that has the answer to all that is written to it.
struct Echo {
    greeted: bool,
    /// The body of every answer to a read.
    body: Bytes,
    answers: BytesMut,
    reader: Option<Waker>,
}

impl Echo {
    fn new() -> Self {
        let mut encoded = BytesMut::new();
        body().encode(&mut encoded);
        let (answers, reader) = (BytesMut::with_capacity(1 << 20), None);
        Self { greeted: false, body: encoded.freeze(), answers, reader }
    }

    /// Answers a frame, which has been written whole.
    fn answer(&mut self, frame: &[u8]) -> io::Result<()> {
        if !self.greeted {
            self.greeted = true;
            encode_frame(&greeting(), &mut self.answers);
            return Ok(());
        }
        let head = Bytes::copy_from_slice(frame.get(..8).unwrap_or_default());
        let mut reader = Reader::new(&head);
        let xid = Xid::decode(&mut reader).map_err(io::Error::other)?;
        let op = OpCode::decode(&mut reader).map_err(io::Error::other)?;
        encode_frame_with(&mut self.answers, |out| {
            ReplyHeader { xid, zxid: Zxid(1), err: ErrorCode::OK }.encode(out);
            if op == OpCode::GET_DATA {
                out.extend_from_slice(&self.body);
            }
        });
        Ok(())
    }
}

impl AsyncWrite for Echo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut left = bytes;
        while left.remaining() >= 4 {
            let len = left.get_u32() as usize;
            // The client writes whole frames, and all of what is written is taken.
            let frame = left.get(..len).ok_or(io::ErrorKind::InvalidData)?;
            self.answer(frame)?;
            left.advance(len);
        }
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Echo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.answers.is_empty() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let len = self.answers.len().min(buf.remaining());
        buf.put_slice(&self.answers[..len]);
        self.answers.advance(len);
        Poll::Ready(Ok(()))
    }
}

/// A client, and a runtime that it works on as long as somebody waits for something.
fn connected() -> (Runtime, Client) {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime needs nothing here");
    let options = ConnectOptions::new("zk1:2181").expect("it is a server's name");
    let connecting = options.connector(Alone).clock(Still).connect();
    let client = runtime.block_on(connecting).expect("whoever is asked answers");
    (runtime, client)
}

async fn reads(client: &Client) -> Result<(), ReadError> {
    let gets: Vec<_> = (0..IN_FLIGHT).map(|_| client.get("/a").submit()).collect();
    for get in gets {
        get.await?;
    }
    Ok(())
}

pub(crate) fn piece() -> Piece {
    Piece::new("client: a get, of 256 in flight", IN_FLIGHT, || {
        let (runtime, client) = connected();
        // Buffers have the room that they will need from now on.
        runtime.block_on(reads(&client)).expect("whoever is asked answers");
        move || runtime.block_on(reads(&client)).expect("whoever is asked answers")
    })
}
