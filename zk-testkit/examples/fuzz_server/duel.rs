//! The same conversation with a server and with the model, answer by answer.

use std::{cell::Cell, fmt, io, net::SocketAddr};

use bytes::{Bytes, BytesMut};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use zk_proto::{
    OpCode, Text, Xid,
    frame::{ReplyHeader, split_frame},
    jute::{Decode, Reader, decode_prefix},
    path::join,
    request::{GetChildrenResponse, Ping},
    strategy::{Frame, OwnedAnyRequest, OwnedDeleteRequest, OwnedGetChildrenRequest},
    traffic::{Received, Traffic},
};

use zk_testkit::server;

use super::{
    peer::{Ended, Model, Server},
    play::{Play, frame_of, play},
    show,
};

/// Tries at making a failing play shorter.
const SHRINKS_MAX: u32 = 2000;

/// Plays between two lines of progress.
const PROGRESS: u32 = 200;

/// What was done without finding anything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Answers that were compared, shrinking included.
    pub(crate) compared: u64,
}

/// The shortest play that was found to differ, and how.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) play: Play,
    pub(crate) how: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&transcript(&self.play, &self.how))
    }
}

/// A play, frame by frame, and how it ended.
fn transcript(play: &Play, how: &str) -> String {
    let frames = play.frames.iter();
    let shown = frames.map(|it| format!("> {}\n  {}\n", show::said(it), hex(&it.bytes)));
    shown.chain([how.to_owned()]).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Plays so many conversations with a server, and with a model that is set up in the same way.
///
/// # Errors
/// [`Found`], once something differs.
pub(crate) fn fight(
    server: SocketAddr,
    model: &server::Config,
    plays: u32,
    seed: u64,
) -> Result<Tally, Box<Found>> {
    let config = Config {
        cases: plays,
        max_shrink_iters: SHRINKS_MAX,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(seed.to_string().bytes()).for_each(|(byte, digit)| *byte = digit);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let (compared, played, is_found) = (Cell::new(0), Cell::new(0), Cell::new(false));
    let outcome = TestRunner::new_with_rng(config, rng).run(&play(), |play| {
        played.set(played.get() + 1);
        let fought = duel(server, model, &play, &compared);
        if let Err(how) = &fought {
            // Making it shorter can take minutes, and be interrupted.
            if !is_found.replace(true) {
                eprintln!("found in play {}:\n{}\n", played.get(), transcript(&play, how));
                eprintln!("now it is made shorter, in up to {SHRINKS_MAX} tries");
            }
        } else if !is_found.get() && played.get() % PROGRESS == 0 {
            eprintln!("{} of {plays} plays, {} answers compared", played.get(), compared.get());
        }
        fought.map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => Ok(Tally { compared: compared.get() }),
        Err(TestError::Fail(reason, play)) => {
            Err(Box::new(Found { play, how: reason.message().to_owned() }))
        }
        Err(TestError::Abort(reason)) => {
            let play = Play { frames: Vec::new() };
            Err(Box::new(Found { play, how: reason.message().to_owned() }))
        }
    }
}

/// Plays one conversation. Says what differs.
pub(crate) fn duel(
    addr: SocketAddr,
    model: &server::Config,
    play: &Play,
    compared: &Cell<u64>,
) -> Result<(), String> {
    wipe(addr).map_err(|error| format!("before it the server is in disorder: {error}"))?;
    let mut server = Server::connect(addr).map_err(|error| error.to_string())?;
    let mut model = Model::connect(model);
    let mut asked = Asked::default();
    let mut greeted = false;
    // What was said too much shows at the latest in front of this.
    let last = OwnedAnyRequest::Ping(Ping).frame(Xid::PING);
    for frame in play.frames.iter().chain([&last]) {
        let (expected, closed) = model.answers(&frame.bytes);
        server.send(&frame.bytes);
        asked.sent(&frame.bytes);
        // A length that is not true can hide several requests. If one of them ends the connection, real
        // servers answer it ahead of the others, or without them.
        let race = closed && expected.len() > 1;
        for expected in expected.into_iter().filter(|_| !race) {
            let op = asked.answered(&expected);
            let show = |frame: &Bytes| {
                if greeted { show::answer(op, frame) } else { show::welcome(frame) }
            };
            let expected = show(&expected);
            compared.set(compared.get() + 1);
            let found = match server.frame() {
                Ok(found) => show(&found),
                // Answers that are on their way to a connection that ends can be lost with it.
                Err(Ended::Closed) if closed => return Ok(()),
                Err(ended) => format!("{ended:?}"),
            };
            if found != expected {
                return Err(differs(frame, &expected, &found));
            }
            greeted = true;
        }
        if closed {
            return ends(&mut server).map_err(|ended| {
                differs(frame, "the end of the connection", &format!("{ended:?}"))
            });
        }
    }
    Ok(())
}

/// Waits for the end of a connection, behind whatever answers still overtake it.
fn ends(server: &mut Server) -> Result<(), Ended> {
    loop {
        match server.frame() {
            Ok(_) => {}
            Err(Ended::Closed) => return Ok(()),
            Err(ended) => return Err(ended),
        }
    }
}

fn differs(frame: &Frame, expected: &str, found: &str) -> String {
    format!("after {}\nexpected {expected}\nfound    {found}", show::said(frame))
}

/// What is asked for, as servers read it: a length that is not true makes other frames of the bytes than
/// were meant.
#[derive(Debug, Default)]
struct Asked {
    stream: BytesMut,
    traffic: Traffic,
}

impl Asked {
    fn sent(&mut self, bytes: &[u8]) {
        self.stream.extend_from_slice(bytes);
        while let Ok(Some(frame)) = split_frame(&mut self.stream, usize::MAX) {
            // Others are not answered.
            let _ = self.traffic.sent(&frame);
        }
    }

    /// The operation that is answered; an unknown one for what answers nothing.
    fn answered(&mut self, frame: &Bytes) -> OpCode {
        match self.traffic.received(frame) {
            Ok(Received::Reply(reply)) => reply.op().unwrap_or(OpCode::ERROR),
            _ => OpCode::ERROR,
        }
    }
}

/// Whether the server has no nodes but its own.
pub(crate) fn is_empty(addr: SocketAddr) -> io::Result<bool> {
    let mut admin = Admin::connect(addr)?;
    Ok(admin.children("/")?.is_empty())
}

/// Deletes all nodes but the server's own.
fn wipe(addr: SocketAddr) -> io::Result<()> {
    let mut admin = Admin::connect(addr)?;
    for child in admin.children("/")? {
        admin.delete(&join("/", &child))?;
    }
    Ok(())
}

/// A session of our own, to look and to tidy up.
struct Admin {
    server: Server,
    xid: Xid,
}

impl Admin {
    fn connect(addr: SocketAddr) -> io::Result<Self> {
        let mut server = Server::connect(addr)?;
        server.send(&super::play::greeting());
        server.frame().map_err(|ended| io::Error::other(format!("no session: {ended:?}")))?;
        Ok(Self { server, xid: Xid::FIRST })
    }

    fn ask(&mut self, request: &OwnedAnyRequest) -> io::Result<(ReplyHeader, Bytes)> {
        self.server.send(&frame_of(request, self.xid));
        self.xid = self.xid.next();
        let frame = self.server.frame();
        let frame = frame.map_err(|ended| io::Error::other(format!("no answer: {ended:?}")))?;
        let mut reader = Reader::new(&frame);
        let header = ReplyHeader::decode(&mut reader).map_err(io::Error::other)?;
        Ok((header, frame.slice(reader.offset()..)))
    }

    fn children(&mut self, path: &str) -> io::Result<Vec<String>> {
        let path = Text::from(path);
        let list = OwnedGetChildrenRequest { path, watch: false };
        let (header, body) = self.ask(&OwnedAnyRequest::GetChildren(list))?;
        if !header.err.is_ok() {
            return Ok(Vec::new());
        }
        let listed: GetChildrenResponse = decode_prefix(&body).map_err(io::Error::other)?;
        let names = listed.children.strs().map(|name| name.into_owned());
        Ok(names.filter(|name| name != "zookeeper").collect())
    }

    /// A node and all below it; it may have gone meanwhile, with its session.
    fn delete(&mut self, path: &str) -> io::Result<()> {
        for child in self.children(path)? {
            self.delete(&join(path, &child))?;
        }
        let delete = OwnedDeleteRequest { path: Text::from(path), version: -1 };
        self.ask(&OwnedAnyRequest::Delete(delete)).map(drop)
    }
}
