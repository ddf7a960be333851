//! Bytes, frames, and what is asked without a session.

use std::{
    cell::Cell,
    future::poll_fn,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use zk_proto::{
    ErrorCode, OpCode, Secret, SessionId, Xid, Zxid,
    frame::{ReplyHeader, encode_frame, encode_frame_with},
    jute::{Decode, DecodeError, Encode, Reader},
    request::{ConnectRequest, ConnectResponse, TrailingFlag},
};

use super::{Mailbox, World};

/// What is understood instead of a session's first frame.
const WORDS: [&[u8]; 3] = [b"srvr", b"srst", b"down"];

pub(super) struct Connection {
    pub(super) world: Rc<World>,
    pub(super) mailbox: Rc<Mailbox>,
    /// The beginning of a frame.
    partial: BytesMut,
    out: BytesMut,
    /// For each operation, by its number, the last question from that number on, and the answer to it.
    known: Vec<(Vec<u8>, Vec<u8>)>,
    greeted: bool,
    over: bool,
    heard: Rc<Cell<Instant>>,
}

impl Connection {
    pub(super) fn new(world: Rc<World>) -> Self {
        Self {
            world,
            mailbox: Rc::default(),
            partial: BytesMut::new(),
            out: BytesMut::new(),
            known: Vec::new(),
            greeted: false,
            over: false,
            heard: Rc::new(Cell::new(Instant::now())),
        }
    }

    pub(super) async fn serve(mut self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        while !self.over && poll_fn(|cx| self.poll_heard(cx, &mut stream)).await.is_ok() {
            let written = async {
                stream.write_all(&self.out).await?;
                stream.flush().await
            };
            if written.await.is_err() {
                break;
            }
            self.out.clear();
        }
        let mut watchers = self.world.watchers.borrow_mut();
        watchers.values_mut().for_each(|all| {
            all.retain(|watcher| !Rc::ptr_eq(&watcher.mailbox, &self.mailbox));
        });
        watchers.retain(|_, all| !all.is_empty());
    }

    /// Something has come, and has been answered; or others have something for this one.
    fn poll_heard(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Poll<io::Result<()>> {
        let world = self.world.clone();
        let mut buffer = world.buffer.borrow_mut();
        let mut buffer = ReadBuf::new(&mut buffer);
        if let Poll::Ready(outcome) = Pin::new(stream).poll_read(cx, &mut buffer) {
            outcome?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            self.note_silence();
            return Poll::Ready(self.heard(buffer.filled()));
        }
        let mut events = self.mailbox.events.borrow_mut();
        if events.is_empty() {
            self.mailbox.waker.replace(Some(cx.waker().clone()));
            return Poll::Pending;
        }
        self.out.extend_from_slice(&events.split());
        Poll::Ready(Ok(()))
    }

    fn note_silence(&self) {
        let now = Instant::now();
        let silence = now - self.heard.replace(now);
        if self.greeted {
            self.world.note_silence(silence);
        }
    }

    fn heard(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut partial = std::mem::take(&mut self.partial);
        if partial.is_empty() {
            self.frames(&mut bytes)?;
            self.partial.extend_from_slice(bytes);
        } else {
            partial.extend_from_slice(bytes);
            let mut left = &partial[..];
            self.frames(&mut left)?;
            let used = partial.len() - left.len();
            partial.advance(used);
            self.partial = partial;
        }
        Ok(())
    }

    /// Answers all that is whole.
    fn frames(&mut self, bytes: &mut &[u8]) -> io::Result<()> {
        while let Some(mut prefix) = bytes.get(..4) {
            if !self.greeted && WORDS.contains(&prefix) {
                self.say(prefix);
                return Ok(());
            }
            let len = prefix.get_u32() as usize;
            let Some(frame) = bytes.get(4..4 + len) else { return Ok(()) };
            self.world.requests.set(self.world.requests.get() + 1);
            self.frame(frame).map_err(|error| io::Error::other(error.to_string()))?;
            bytes.advance(4 + len);
        }
        Ok(())
    }

    /// The figures; that they begin anew, or that the server is to go down for a while, is asked in the same way.
    fn say(&mut self, word: &[u8]) {
        let world = &self.world;
        world.requests.set(world.requests.get() + 1);
        world.note_silences();
        match word {
            b"srst" => world.longest_silence.set(Duration::ZERO),
            b"down" => world.cut.notify_one(),
            _ => {}
        }
        let text = format!(
            "Zookeeper version: instant\nReceived: {}\nLongest silence: {}\nMode: standalone\n",
            world.requests.get(),
            world.longest_silence.get().as_millis(),
        );
        self.out.extend_from_slice(text.as_bytes());
        self.over = true;
    }

    fn frame(&mut self, frame: &[u8]) -> Result<(), DecodeError> {
        if !self.greeted {
            return self.greet(&Bytes::copy_from_slice(frame));
        }
        let (Some(xid), Some(question)) = (frame.get(..4), frame.get(4..)) else { return Ok(()) };
        let nobody_watches = self.world.watchers.borrow().is_empty();
        if let Some((same, answer)) = number(question).and_then(|op| self.known.get(op)) {
            if same == question && nobody_watches {
                let begin = self.out.len() + 4;
                self.out.extend_from_slice(answer);
                self.out[begin..begin + 4].copy_from_slice(xid);
                return Ok(());
            }
        }
        self.answer(&Bytes::copy_from_slice(frame))
    }

    fn greet(&mut self, frame: &Bytes) -> Result<(), DecodeError> {
        let request = ConnectRequest::decode(&mut Reader::new(frame))?;
        let world = &self.world;
        world.sessions.set(world.sessions.get() + 1);
        let session_id = match request.session_id {
            SessionId(0) => SessionId(world.sessions.get()),
            resumed => resumed,
        };
        let response = ConnectResponse {
            protocol_version: 0,
            time_out: request.time_out,
            session_id,
            passwd: Secret(Some(Bytes::from_static(&[1; 16]))),
            read_only: TrailingFlag(request.read_only.0.map(|_| false)),
        };
        encode_frame(&response, &mut self.out);
        self.greeted = true;
        world.heard.borrow_mut().push(Rc::downgrade(&self.heard));
        Ok(())
    }

    /// Answers a question for the first time.
    fn answer(&mut self, frame: &Bytes) -> Result<(), DecodeError> {
        let mut reader = Reader::new(frame);
        let (xid, op) = (Xid::decode(&mut reader)?, OpCode::decode(&mut reader)?);
        let mut body = BytesMut::new();
        let fleeting = self.carry_out(op, &mut reader, &mut body)?;
        // Events that this has caused come before its answer.
        self.out.extend_from_slice(&self.mailbox.events.borrow_mut().split());
        let begin = self.out.len();
        encode_frame_with(&mut self.out, |out| {
            ReplyHeader { xid, zxid: Zxid(1), err: ErrorCode::OK }.encode(out);
            out.extend_from_slice(&body);
        });
        if !fleeting {
            let question = frame[4..].to_vec();
            if let Some(op) = number(&question) {
                if self.known.len() <= op {
                    self.known.resize_with(op + 1, Default::default);
                }
                self.known[op] = (question, self.out[begin..].to_vec());
            }
        }
        self.over |= op == OpCode::CLOSE_SESSION;
        Ok(())
    }
}

/// The number of the operation that a question begins with, if it is one of the small ones.
fn number(question: &[u8]) -> Option<usize> {
    match question {
        [0, 0, 0, op, ..] => Some(usize::from(*op)),
        _ => None,
    }
}
