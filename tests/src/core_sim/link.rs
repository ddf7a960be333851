//! One connection: when what is sent arrives, and what a tap on it shows.

use std::collections::VecDeque;

use bytes::BytesMut;
use zk_proto::{
    ErrorCode, Time, Zxid,
    frame::{LEN_PREFIX, split_frame},
    request::{AnyRequest, MultiOp},
    traffic::{Received, Reply, Sent, SentRequest, Traffic},
};
use zk_testkit::server::{Conn, Member};

use super::{
    change_log::mark_of,
    watching::{Armed, Rearmed},
};

/// A connection, from the attempt at it until both sides have forgotten it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) client: usize,
    pub(crate) member: Member,
    /// The server's side.
    pub(crate) conn: Option<Conn>,
    /// Whether the client knows that it is connected.
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
    traffic: Traffic,
    inbound: BytesMut,
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
            let sent = self.traffic.sent(&frame).expect("what a session sends can be read");
            if let Sent::Request(request) = sent {
                let mark = mark_in(&request);
                self.untaken.extend(mark.map(|mark| (self.appended, mark)));
            }
            self.appended += LEN_PREFIX + frame.len();
        }
        assert!(new.is_empty(), "only whole frames are put in front of the driver");
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
            let Ok(Received::Reply(Reply { header, request: Some(request), .. })) =
                self.traffic.received(&frame)
            else {
                continue;
            };
            heard.extend(match header.err {
                ErrorCode::OK => {
                    rearmed_by(&request).map(|rearmed| Heard::Restored(header.zxid, rearmed))
                }
                ErrorCode::SESSION_MOVED => mark_in(&request).map(Heard::Refused),
                _ => None,
            });
        }
        heard
    }
}

/// What a request arms again, if it is one that does.
fn rearmed_by(request: &SentRequest) -> Option<Vec<Rearmed>> {
    let lists = match request.decode().ok()? {
        AnyRequest::SetWatches(it) => vec![
            (Armed::Data, it.data_watches),
            (Armed::Missing, it.exist_watches),
            (Armed::Children, it.child_watches),
        ],
        AnyRequest::SetWatches2(it) => vec![
            (Armed::Data, it.data_watches),
            (Armed::Missing, it.exist_watches),
            (Armed::Children, it.child_watches),
            (Armed::Persistent, it.persistent_watches),
            (Armed::Recursive, it.persistent_recursive_watches),
        ],
        _ => return None,
    };
    let each =
        lists.iter().flat_map(|(armed, paths)| paths.strs().map(|path| (*armed, path.into())));
    Some(each.collect())
}

/// The mark of a write on its way to the server.
fn mark_in(request: &SentRequest) -> Option<u64> {
    match request.decode().ok()? {
        AnyRequest::Create2(create) => mark_of(create.0.data?),
        AnyRequest::SetData(set) => mark_of(set.data?),
        AnyRequest::Multi(multi) => multi.iter().find_map(|(_, op)| match op {
            MultiOp::SetData(set) => mark_of(set.data?),
            _ => None,
        }),
        _ => None,
    }
}
