//! A server that answers at once, from memory: what is left is the client.
//!
//! It keeps no nodes. Data are as long as the name of their node says (`/anything-128`), every create and every
//! write succeeds. It tracks which session watches what, since the cost of notifying watchers is measured too.
//!
//! One thread, one read and one write for whatever has come. An answer that was given before to the same question
//! is copied, with the question's xid.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    future::poll_fn,
    io,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf},
    net::{TcpListener, TcpStream},
    task::LocalSet,
};
use zk_proto::{
    ErrorCode, EventType, KeeperState, List, OpCode, Secret, SessionId, Stat, Text, Xid, Zxid,
    frame::{ReplyHeader, encode_frame, encode_frame_with},
    jute::{Decode, DecodeError, Encode, Reader},
    request::{
        AddWatchRequest, ConnectRequest, ConnectResponse, Create2Response, CreateRequest,
        CreateResponse, DeleteRequest, ExistsResponse, GetChildren2Response, GetChildrenResponse,
        GetDataRequest, GetDataResponse, MultiOp, MultiRequest, MultiResponse, MultiResult,
        SetDataRequest, SetDataResponse, SyncRequest, SyncResponse, TrailingFlag, WatcherEvent,
    },
};

use crate::client::Failure;

/// Most that is read at once.
const READ_LEN: usize = 256 << 10;

/// What connections share.
struct World {
    buffer: RefCell<Vec<u8>>,
    requests: Cell<u64>,
    sessions: Cell<i64>,
    longest_silence: Cell<Duration>,
    /// When each connection that has a session was heard of.
    heard: RefCell<Vec<Weak<Cell<Instant>>>>,
    /// Watches of a path: one-shot ones; and then the persistent connections that receive every write.
    watchers: RefCell<HashMap<Bytes, Vec<Watcher>>>,
}

struct Watcher {
    mailbox: Rc<Mailbox>,
    persistent: bool,
}

/// What other connections have for one.
#[derive(Default)]
struct Mailbox {
    events: RefCell<BytesMut>,
    waker: RefCell<Option<Waker>>,
}

struct Connection {
    world: Rc<World>,
    mailbox: Rc<Mailbox>,
    /// The beginning of a frame.
    partial: BytesMut,
    out: BytesMut,
    /// For each operation, by its number, the last question from that number on, and the answer to it.
    known: Vec<(Vec<u8>, Vec<u8>)>,
    greeted: bool,
    over: bool,
    heard: Rc<Cell<Instant>>,
}

impl World {
    fn note_silence(&self, silence: Duration) {
        self.longest_silence.set(self.longest_silence.get().max(silence));
    }

    /// Clients that are still silent.
    fn note_silences(&self) {
        let mut heard = self.heard.borrow_mut();
        heard.retain(|it| it.strong_count() > 0);
        heard.iter().filter_map(Weak::upgrade).for_each(|it| self.note_silence(it.get().elapsed()));
    }
}

/// Serves until the input ends.
pub(crate) fn serve(announce: fn(&str)) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = listen()?;
        announce(&listener.local_addr()?.to_string());
        let world = Rc::new(World {
            buffer: RefCell::new(vec![0; READ_LEN]),
            requests: Cell::new(0),
            sessions: Cell::new(0),
            longest_silence: Cell::new(Duration::ZERO),
            heard: RefCell::default(),
            watchers: RefCell::default(),
        });
        tokio::task::spawn_local(async move {
            // A client that cannot be accepted has gone.
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::task::spawn_local(Connection::new(world.clone()).serve(stream));
                }
            }
        });
        tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
        Ok(())
    })
}

fn listen() -> io::Result<TcpListener> {
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    socket.listen(4096)
}

impl Connection {
    fn new(world: Rc<World>) -> Self {
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

    async fn serve(mut self, mut stream: TcpStream) {
        // A socket that cannot be notified is as slow as one.
        let _ = stream.set_nodelay(true);
        while !self.over && poll_fn(|cx| self.poll_heard(cx, &mut stream)).await.is_ok() {
            if stream.write_all(&self.out).await.is_err() {
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
    fn poll_heard(&mut self, cx: &mut Context<'_>, stream: &mut TcpStream) -> Poll<io::Result<()>> {
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
            if !self.greeted && (prefix == b"srvr" || prefix == b"srst") {
                self.say(prefix == b"srst");
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

    /// The figures that are asked for without a session, or that they begin anew.
    fn say(&mut self, anew: bool) {
        let world = &self.world;
        world.requests.set(world.requests.get() + 1);
        world.note_silences();
        if anew {
            world.longest_silence.set(Duration::ZERO);
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

    /// Writes an answer's body. Returns whether the same question may have another effect the next time.
    fn carry_out(
        &self,
        op: OpCode,
        reader: &mut Reader<'_>,
        out: &mut BytesMut,
    ) -> Result<bool, DecodeError> {
        let stat = Stat::default();
        match op {
            OpCode::GET_DATA => {
                let GetDataRequest { path, watch } = Decode::decode(reader)?;
                let data = Some(data_of(&path.lossy()));
                GetDataResponse { data, stat }.encode(out);
                self.watch(&path.lossy(), watch, false);
                return Ok(watch);
            }
            OpCode::EXISTS | OpCode::GET_CHILDREN | OpCode::GET_CHILDREN2 => {
                let GetDataRequest { path, watch } = Decode::decode(reader)?;
                match op {
                    OpCode::EXISTS => ExistsResponse { stat }.encode(out),
                    OpCode::GET_CHILDREN => no_children().encode(out),
                    _ => {
                        let GetChildrenResponse { children } = no_children();
                        GetChildren2Response { children, stat }.encode(out);
                    }
                }
                self.watch(&path.lossy(), watch, false);
                return Ok(watch);
            }
            OpCode::SET_DATA => {
                let SetDataRequest { path, .. } = Decode::decode(reader)?;
                SetDataResponse { stat }.encode(out);
                self.fire(&path.lossy(), EventType::NODE_DATA_CHANGED);
            }
            OpCode::CREATE => {
                let CreateRequest { path, .. } = Decode::decode(reader)?;
                CreateResponse { path: Text::from(&*path.lossy()) }.encode(out);
            }
            OpCode::CREATE2 | OpCode::CREATE_CONTAINER => {
                let CreateRequest { path, .. } = Decode::decode(reader)?;
                Create2Response { path: Text::from(&*path.lossy()), stat }.encode(out);
            }
            OpCode::DELETE => {
                let DeleteRequest { path, .. } = Decode::decode(reader)?;
                self.fire(&path.lossy(), EventType::NODE_DELETED);
            }
            OpCode::MULTI => {
                let ops = MultiRequest::decode(reader)?;
                let results = ops.iter().map(|(_, op)| result_of(&op));
                results.collect::<MultiResponse>().encode(out);
            }
            OpCode::SYNC => {
                let SyncRequest { path } = Decode::decode(reader)?;
                SyncResponse { path: Text::from(&*path.lossy()) }.encode(out);
            }
            OpCode::ADD_WATCH => {
                let AddWatchRequest { path, .. } = Decode::decode(reader)?;
                ErrorCode::OK.encode(out);
                self.watch(&path.lossy(), true, true);
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    fn watch(&self, path: &str, wanted: bool, persistent: bool) {
        if wanted {
            let mut watchers = self.world.watchers.borrow_mut();
            let all = watchers.entry(Bytes::copy_from_slice(path.as_bytes())).or_default();
            all.push(Watcher { mailbox: self.mailbox.clone(), persistent });
        }
    }

    /// Notifies all watchers of this path.
    fn fire(&self, path: &str, kind: EventType) {
        let mut watchers = self.world.watchers.borrow_mut();
        let Some(all) = watchers.get_mut(path.as_bytes()) else { return };
        let event =
            WatcherEvent { kind, state: KeeperState::SYNC_CONNECTED, path: Text::from(path) };
        all.retain(|Watcher { mailbox, persistent }| {
            encode_frame_with(&mut mailbox.events.borrow_mut(), |out| {
                let (zxid, err) = (Zxid(1), ErrorCode::OK);
                ReplyHeader { xid: Xid::NOTIFICATION, zxid, err }.encode(out);
                event.encode(out);
            });
            if let Some(waker) = mailbox.waker.take() {
                waker.wake();
            }
            *persistent
        });
        if all.is_empty() {
            watchers.remove(path.as_bytes());
        }
    }
}

/// The number of the operation that a question begins with, if it is one of the small ones.
fn number(question: &[u8]) -> Option<usize> {
    match question {
        [0, 0, 0, op, ..] => Some(usize::from(*op)),
        _ => None,
    }
}

/// As long as the node's name says.
fn data_of(path: &str) -> Bytes {
    let len = path.rsplit('-').next().and_then(|len| len.parse().ok());
    vec![7; len.unwrap_or_default()].into()
}

fn no_children() -> GetChildrenResponse {
    GetChildrenResponse { children: List::of_strs([]) }
}

fn result_of(op: &MultiOp<'_>) -> MultiResult {
    let stat = Stat::default();
    match op {
        MultiOp::Create(create) => {
            MultiResult::Create(CreateResponse { path: Text::from(&*create.path.lossy()) })
        }
        MultiOp::SetData(_) => MultiResult::SetData(SetDataResponse { stat }),
        MultiOp::Delete(_) => MultiResult::Delete,
        _ => MultiResult::Check,
    }
}
