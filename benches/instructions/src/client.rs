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
use zk_client::{
    BoxFuture, Client, Connect, ConnectOptions, ReadError, Transport, Watch, WriteError,
};
use zk_proto::{
    ErrorCode, EventType, OpCode, Stat, Text, Xid, Zxid,
    frame::{ReplyHeader, encode_frame, encode_frame_with},
    jute::{Decode as _, Encode, Reader},
    request::{Create2Response, MultiResponse, MultiResult, SetDataResponse},
};

use crate::{
    Piece,
    session::{body, events, greeting, path},
};

/// Reads that are under way together.
const IN_FLIGHT: usize = 256;

/// A node that is created and deleted.
const NODE: &str = "/nodes/a";

/// Writes in one request.
const MULTI: usize = 16;

/// Writes the body of the answer to a request.
pub(crate) type Answer = Box<dyn FnMut(OpCode, Reader<'_>, &mut BytesMut) + Send>;

/// Connects to no server, but to what answers like this.
struct Alone<F>(F);

impl<F: Fn() -> Answer + Send + Sync + 'static> Connect for Alone<F> {
    fn connect(&self, _: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let echo = Echo::new((self.0)());
        Box::pin(async { Ok(Box::new(echo) as Box<dyn Transport>) })
    }

    /// Frames come whole.
    fn fails_whole(&self) -> bool {
        true
    }
}

/// A connection that has the answer to all that is written to it.
struct Echo {
    greeted: bool,
    answer: Answer,
    answers: BytesMut,
    /// What there is to tell by the time of a sync; made for the first one.
    events: BytesMut,
    reader: Option<Waker>,
}

impl Echo {
    fn new(answer: Answer) -> Self {
        let (answers, events) = (BytesMut::with_capacity(1 << 20), BytesMut::new());
        Self { greeted: false, answer, answers, events, reader: None }
    }

    /// Answers a frame, which has been written whole.
    fn answer(&mut self, frame: &[u8]) -> io::Result<()> {
        if !self.greeted {
            self.greeted = true;
            encode_frame(&greeting(), &mut self.answers);
            return Ok(());
        }
        let frame = Bytes::copy_from_slice(frame);
        let mut reader = Reader::new(&frame);
        let xid = Xid::decode(&mut reader).map_err(io::Error::other)?;
        let op = OpCode::decode(&mut reader).map_err(io::Error::other)?;
        if op == OpCode::SYNC {
            if self.events.is_empty() {
                self.events = events(IN_FLIGHT);
            }
            self.answers.extend_from_slice(&self.events);
        }
        encode_frame_with(&mut self.answers, |out| {
            ReplyHeader { xid, zxid: Zxid(1), err: ErrorCode::OK }.encode(out);
            (self.answer)(op, reader, out);
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

/// A client, and a runtime that it works on as long as a future is being awaited.
pub(crate) fn connected(answers: impl Fn() -> Answer + Send + Sync + 'static) -> (Runtime, Client) {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime needs nothing here");
    let client = runtime.block_on(connect(answers));
    (runtime, client)
}

async fn connect(answers: impl Fn() -> Answer + Send + Sync + 'static) -> Client {
    let options = ConnectOptions::new("zk1:2181").expect("it is a server's name");
    // Time does not pass: nothing is done because of it. The clock for production is none for valgrind, which does not
    // map the pages that it is read from.
    let options = options.connector(Alone(answers)).clock(|| Duration::ZERO);
    options.reply_len_max(1 << 24).connect().await.expect("whoever is asked answers")
}

async fn reads(client: &Client) -> Result<(), ReadError> {
    let gets: Vec<_> = (0..IN_FLIGHT).map(|_| client.get("/a").submit()).collect();
    for get in gets {
        get.await?;
    }
    Ok(())
}

/// Watches as many nodes.
async fn watches(client: &Client) -> Result<Vec<Watch>, ReadError> {
    let mut watches = Vec::new();
    for number in 0..IN_FLIGHT {
        watches.push(client.get(&path(number)).watch().await?.1);
    }
    Ok(watches)
}

/// Hears of a change of each.
async fn hear(client: &Client, watches: Vec<Watch>) -> Result<(), ReadError> {
    client.sync("/a").await?;
    for watch in watches {
        assert_eq!(watch.await.expect("the session goes on").kind, EventType::NODE_DATA_CHANGED);
    }
    Ok(())
}

/// Creates and deletes a node, each under way together with others.
async fn creates_and_deletes(client: &Client) -> Result<(), WriteError> {
    let creates: Vec<_> = (0..IN_FLIGHT).map(|_| client.create(NODE, b"data").submit()).collect();
    for create in creates {
        assert_eq!(create.await?.path, NODE);
    }
    let deletes: Vec<_> = (0..IN_FLIGHT).map(|_| client.delete(NODE).submit()).collect();
    for delete in deletes {
        delete.await?;
    }
    Ok(())
}

/// Answers creates with this node, and deletes.
fn created() -> Answer {
    let mut created = BytesMut::new();
    Create2Response { path: Text::from(NODE), stat: Stat::default() }.encode(&mut created);
    Box::new(move |op, _, out| {
        if op == OpCode::CREATE2 {
            out.extend_from_slice(&created);
        }
    })
}

/// Answers reads with data, writes of several nodes with as many metadata, and a sync.
fn answers() -> Answer {
    let (mut data, mut results) = (BytesMut::new(), BytesMut::new());
    body().encode(&mut data);
    let set = || MultiResult::SetData(SetDataResponse { stat: Stat::default() });
    MultiResponse::from_iter((0..MULTI).map(|_| set())).encode(&mut results);
    Box::new(move |op, _, out| match op {
        OpCode::GET_DATA => out.extend_from_slice(&data),
        OpCode::MULTI => out.extend_from_slice(&results),
        OpCode::SYNC => Text::from("/a").encode(out),
        _ => {}
    })
}

async fn writes(client: &Client) -> Result<(), WriteError> {
    let write = || (0..MULTI).fold(client.multi(), |multi, _| multi.set("/a", b"data"));
    let writes: Vec<_> = (0..IN_FLIGHT).map(|_| write().submit()).collect();
    for write in writes {
        assert!(write.await?.is_ok(), "nothing is refused");
    }
    Ok(())
}

pub(crate) fn pieces() -> Vec<Piece> {
    let gets = Piece::new("client: a get, of 256 in flight", IN_FLIGHT, || {
        let (runtime, client) = connected(|| {
            let mut encoded = BytesMut::new();
            body().encode(&mut encoded);
            Box::new(move |op, _, out| {
                if op == OpCode::GET_DATA {
                    out.extend_from_slice(&encoded);
                }
            })
        });
        // Buffers have the room that they will need from now on.
        runtime.block_on(reads(&client)).expect("whoever is asked answers");
        move || runtime.block_on(reads(&client)).expect("whoever is asked answers")
    });
    let fired = Piece::new("client: an event of a watch, of 256", IN_FLIGHT, || {
        let (runtime, client) = connected(answers);
        let watches = || runtime.block_on(watches(&client)).expect("whoever is asked answers");
        runtime.block_on(hear(&client, watches())).expect("whoever is asked answers");
        let mut watched = Some(watches());
        move || {
            let watched = watched.take().expect("it is done once");
            runtime.block_on(hear(&client, watched)).expect("whoever is asked answers");
        }
    });
    let multis = Piece::new("client: a multi of 16 setData, of 256 in flight", IN_FLIGHT, || {
        let (runtime, client) = connected(answers);
        runtime.block_on(writes(&client)).expect("whoever is asked answers");
        move || runtime.block_on(writes(&client)).expect("whoever is asked answers")
    });
    let creates = "client: a create and its delete, of 256 in flight";
    let creates = Piece::new(creates, IN_FLIGHT, || {
        let (runtime, client) = connected(created);
        runtime.block_on(creates_and_deletes(&client)).expect("whoever is asked answers");
        move || runtime.block_on(creates_and_deletes(&client)).expect("whoever is asked answers")
    });
    let connects = Piece::new("client: connecting, until a get is answered", 1, || {
        let (runtime, _) = connected(answers);
        let mut clients = Vec::with_capacity(1);
        move || {
            clients.push(runtime.block_on(async {
                let client = connect(answers).await;
                client.get("/a").await.expect("whoever is asked answers");
                client
            }));
        }
    });
    vec![gets, fired, multis, creates, connects]
}
