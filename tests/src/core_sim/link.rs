//! One connection: when what is sent arrives, and what a tap on it shows.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    OpCode, Time, Xid, Zxid,
    frame::{LEN_PREFIX, ReplyHeader, RequestHeader, split_frame},
    jute::{Decode, Reader, decode_prefix},
    request::{Create2Request, MultiOp, MultiRequest, SetDataRequest, SetWatches, SetWatches2},
};
use zk_testkit::server::{Conn, Member};

use super::{
    truth::mark_of,
    watching::{Armed, Rearmed},
};

/// A connection, from the attempt at it until both sides have forgotten it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) client: usize,
    pub(crate) member: Member,
    /// The server's side.
    pub(crate) conn: Option<Conn>,
    /// Whether the client has been told that it is connected.
    pub(crate) is_made: bool,
    /// Whether the client still has its side.
    pub(crate) is_held: bool,
    /// Whether it was reset: nothing arrives any more.
    pub(crate) is_dead: bool,
    /// How many more deliveries reach the client before it breaks.
    pub(crate) frail: Option<u64>,
    /// Whether the client's socket is full.
    pub(crate) is_full: bool,
    pub(crate) up: Lane,
    pub(crate) down: Lane,
    pub(crate) tap: Tap,
}

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// When the last of what was sent arrives.
    pub(crate) last: Time,
    /// Nothing arrives.
    pub(crate) is_hole: bool,
    /// Nothing arrives before.
    pub(crate) stalled: Time,
}

impl Lane {
    /// When something arrives that is sent to arrive at `at`: never before what was sent earlier.
    pub(crate) fn arrival(&mut self, at: Time) -> Time {
        self.last = at.max(self.last).max(self.stalled);
        self.last
    }
}

impl Link {
    pub(crate) fn new(client: usize, member: Member) -> Self {
        Self {
            client,
            member,
            conn: None,
            is_made: false,
            is_held: true,
            is_dead: false,
            frail: None,
            is_full: false,
            up: Lane::default(),
            down: Lane::default(),
            tap: Tap::default(),
        }
    }
}

/// What is seen of a connection at the client's end.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    /// Bytes that the session has put in front of the driver.
    appended: usize,
    /// Bytes that the driver has taken.
    taken: usize,
    /// Marks of writes, with the places where their frames begin.
    untaken: VecDeque<(usize, u64)>,
    /// The requests that arm watches again and are not answered, in order, with what they arm.
    restores: VecDeque<(Xid, Vec<Rearmed>)>,
    /// Marks of requests that were taken, by their numbers, in order.
    open: VecDeque<(Xid, u64)>,
    inbound: BytesMut,
    is_greeted: bool,
}

/// What a tap has seen of a server's bytes.
#[derive(Debug)]
pub(crate) enum Heard {
    /// These watches are armed again, at this state.
    Restored(Zxid, Vec<Rearmed>),
    /// A write was refused without being carried out.
    Refused(u64),
}

impl Tap {
    /// Sees what the session wants written; `outbound` is all of it that was not taken.
    pub(crate) fn sees(&mut self, outbound: &[u8]) {
        let mut new = BytesMut::from(&outbound[self.appended - self.taken..]);
        while let Some(frame) = split_frame(&mut new, usize::MAX).expect("lengths are in range") {
            if self.appended > 0 {
                self.request(&frame);
            }
            self.appended += LEN_PREFIX + frame.len();
        }
        assert!(new.is_empty(), "only whole frames are put in front of the driver");
    }

    fn request(&mut self, frame: &Bytes) {
        let mut reader = Reader::new(frame);
        let RequestHeader { xid, op } = Decode::decode(&mut reader).expect("frames have headers");
        let body = frame.slice(reader.offset()..);
        if let Some(rearmed) = rearmed_by(op, &body) {
            self.restores.push_back((xid, rearmed));
        }
        if let Some(mark) = mark_in(op, &body) {
            self.untaken.push_back((self.appended, mark));
            self.open.push_back((xid, mark));
        }
    }

    /// The driver takes so many bytes. Returns the marks of the writes that it has begun to write.
    pub(crate) fn takes(&mut self, count: usize) -> Vec<u64> {
        self.taken += count;
        let begun = self.untaken.partition_point(|(start, _)| *start < self.taken);
        self.untaken.drain(..begun).map(|(_, mark)| mark).collect()
    }

    /// Sees bytes of the server that the session is about to be given.
    pub(crate) fn hears(&mut self, bytes: &[u8]) -> Vec<Heard> {
        self.inbound.extend_from_slice(bytes);
        let mut heard = Vec::new();
        while let Ok(Some(frame)) = split_frame(&mut self.inbound, usize::MAX) {
            if !std::mem::replace(&mut self.is_greeted, true) {
                continue;
            }
            let Ok(header) = decode_prefix::<ReplyHeader>(&frame) else { continue };
            if self.restores.front().is_some_and(|(xid, _)| *xid == header.xid) {
                let rearmed = self.restores.pop_front().filter(|_| header.err.is_ok());
                heard.extend(rearmed.map(|(_, rearmed)| Heard::Restored(header.zxid, rearmed)));
            }
            if self.open.front().is_some_and(|(xid, _)| *xid == header.xid) {
                let mark = self.open.pop_front().map(|(_, mark)| mark);
                let is_moved = header.err == zk_proto::ErrorCode::SESSION_MOVED;
                heard.extend(mark.filter(|_| is_moved).map(Heard::Refused));
            }
        }
        heard
    }
}

/// What a request arms again, if it is one that does.
fn rearmed_by(op: OpCode, body: &Bytes) -> Option<Vec<Rearmed>> {
    let lists = match op {
        OpCode::SET_WATCHES => {
            let it: SetWatches = decode_prefix(body).ok()?;
            vec![
                (Armed::Data, it.data_watches),
                (Armed::Missing, it.exist_watches),
                (Armed::Children, it.child_watches),
            ]
        }
        OpCode::SET_WATCHES2 => {
            let it: SetWatches2 = decode_prefix(body).ok()?;
            vec![
                (Armed::Data, it.data_watches),
                (Armed::Missing, it.exist_watches),
                (Armed::Children, it.child_watches),
                (Armed::Persistent, it.persistent_watches),
                (Armed::Recursive, it.persistent_recursive_watches),
            ]
        }
        _ => return None,
    };
    let each =
        lists.iter().flat_map(|(armed, paths)| paths.strs().map(|path| (*armed, path.into())));
    Some(each.collect())
}

/// The mark of a write on its way to the server.
fn mark_in(op: OpCode, body: &Bytes) -> Option<u64> {
    match op {
        OpCode::CREATE2 => {
            let create: Create2Request<'_> = decode_prefix(body).ok()?;
            mark_of(create.0.data?)
        }
        OpCode::SET_DATA => mark_of(decode_prefix::<SetDataRequest<'_>>(body).ok()?.data?),
        OpCode::MULTI => {
            let multi: MultiRequest = decode_prefix(body).ok()?;
            multi.iter().find_map(|(_, op)| match op {
                MultiOp::SetData(set) => mark_of(set.data?),
                _ => None,
            })
        }
        _ => None,
    }
}
