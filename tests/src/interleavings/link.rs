//! One client's connection, frame by frame.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher as _},
    pin::Pin,
    task::{Context, Poll, Waker},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead as _, AsyncWrite as _, DuplexStream, ReadBuf};
use zk_proto::{
    List, OpCode, Text, Zxid,
    frame::{LEN_REPLY_MAX, encode_frame_with, split_frame},
    jute::decode_prefix,
    request::{GetChildren2Response, GetChildrenResponse},
    traffic::{Received, Reply, Traffic},
};
use zk_testkit::server::Conn;

use super::names::Names;

/// One client's connection, if it has one.
#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) line: Option<Line>,
    /// What the client has been told so far, and what was done to it.
    pub(super) history: u64,
    /// The same since the last list of names.
    since_listing: u64,
    /// The last transaction that it has heard of.
    pub(super) heard: Zxid,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) conn: Conn,
    end: DuplexStream,
    inbound: BytesMut,
    /// Requests that the server has not taken.
    pub(super) up: VecDeque<Bytes>,
    traffic: Traffic,
}

impl Line {
    pub(super) fn new(conn: Conn, end: DuplexStream) -> Self {
        Self {
            conn,
            end,
            inbound: BytesMut::new(),
            up: VecDeque::new(),
            traffic: Traffic::default(),
        }
    }

    /// Takes what the client has written. Returns whether the client has left.
    pub(super) fn read(&mut self) -> bool {
        let mut space = [0; 8192];
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let mut buffer = ReadBuf::new(&mut space);
            match Pin::new(&mut self.end).poll_read(&mut context, &mut buffer) {
                Poll::Pending => break,
                Poll::Ready(Err(_)) => return true,
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return true,
                Poll::Ready(Ok(())) => self.inbound.extend_from_slice(buffer.filled()),
            }
        }
        while let Ok(Some(frame)) = split_frame(&mut self.inbound, LEN_REPLY_MAX) {
            self.up.push_back(frame);
        }
        false
    }

    /// Whether the client waits for no answer.
    fn is_answered(&self) -> bool {
        self.traffic.pending().next().is_none()
    }

    /// What kinds of requests the server has not taken.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Option<i32>> {
        // The operation stands behind the number of the request.
        self.up.iter().map(|frame| frame.get(4..8)?.try_get_i32().ok())
    }

    /// The next request, with its length.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let frame = self.up.pop_front()?;
        // What is no request is answered as the server sees fit.
        let _ = self.traffic.sent(&frame);
        Some(framed(&frame))
    }

    /// Sends one frame to the client.
    pub(super) fn write(&mut self, frame: &Bytes) {
        let mut context = Context::from_waker(Waker::noop());
        let written = Pin::new(&mut self.end).poll_write(&mut context, &framed(frame));
        assert!(
            matches!(written, Poll::Ready(Ok(len)) if len == frame.len() + 4)
                || matches!(written, Poll::Ready(Err(_))),
            "a frame that does not fit",
        );
    }

    /// What a frame means to the client.
    pub(super) fn understand(&mut self, frame: &Bytes) -> Option<Received> {
        self.traffic.received(frame).ok()
    }
}

impl Link {
    /// Something has been told to the client, or done to it.
    pub(super) fn note(&mut self, what: impl Hash) {
        let what = hash(what);
        self.history = hash((self.history, what));
        self.since_listing = hash((self.since_listing, what));
    }

    /// The client waits for an event, and has not asked for anything else.
    pub(super) fn is_asleep(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.up.is_empty() && line.is_answered())
    }

    /// Of what was before, nothing but this matters any more.
    pub(super) fn forget(&mut self, all_but: impl Hash) {
        self.history = hash(all_but);
    }

    /// Of what was before the last list of names, nothing matters any more.
    pub(super) fn forget_before_listing(&mut self) {
        self.history = self.since_listing;
    }

    /// A frame has been told to the client.
    pub(super) fn told(&mut self, client: usize, received: &Received, names: &Names) {
        let reply = match received {
            Received::Connect(response) => {
                return self.note(("connected", response.session_id.0 != 0));
            }
            Received::Refused(header) => return self.note(("refused", header.err.0)),
            Received::Event { event, .. } => {
                let label = names.label(&event.path.lossy());
                return self.note(("event", event.kind.0, label));
            }
            Received::Reply(reply) => reply,
        };
        self.heard = self.heard.max(reply.header.zxid);
        let path = reply.request.as_ref().and_then(|it| Some(it.path()?.to_owned_lossy()));
        let about = path.as_deref().and_then(|path| names.label(path));
        let (op, err) = (reply.op().map(|op| op.0), reply.header.err.0);
        match listed(reply) {
            Some(listed) => {
                let seen = names.ahead_of(client, path.as_deref().unwrap_or_default(), &listed);
                self.note(("list", op, err));
                self.since_listing = 0;
                self.note(seen);
            }
            None => self.note(("reply", op, err, about, reply.body.len())),
        }
    }
}

/// The names in a reply that has names.
fn listed(reply: &Reply) -> Option<List<Text>> {
    match reply.op()? {
        OpCode::GET_CHILDREN2 => {
            Some(decode_prefix::<GetChildren2Response>(&reply.body).ok()?.children)
        }
        OpCode::GET_CHILDREN => {
            Some(decode_prefix::<GetChildrenResponse>(&reply.body).ok()?.children)
        }
        _ => None,
    }
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

fn framed(contents: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    encode_frame_with(&mut frame, |out| out.extend_from_slice(contents));
    frame.freeze()
}
