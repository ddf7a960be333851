//! The session alone, without any I/O: requests out, replies in, watches fired and restored.

use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use zk_proto::{
    ErrorCode, EventType, KeeperState, Secret, SessionId, Stat, Text, Time, Xid, Zxid,
    frame::{ReplyHeader, RequestFrame, encode_frame, encode_frame_with},
    jute::Encode,
    request::{ConnectResponse, GetDataRequest, GetDataResponse, TrailingFlag, WatcherEvent},
    session::{
        Config, LinkError, OnLoss, Outgoing, Output, Patience, Session, WatchBy, WatchIntent,
        Watcher,
    },
};

use crate::Piece;

/// The only moment that there is.
pub const NOW: Time = Time::ZERO;

/// Requests that are under way together.
pub const IN_FLIGHT: i32 = 256;

const WATCHES: usize = 10_000;

/// The watcher.
#[derive(Clone, Copy, Debug)]
pub struct Listener;

impl Watcher for Listener {}

/// A session whose requests are known by number.
pub type Core = Session<u64, Listener>;

/// A session with a connection.
#[must_use]
pub fn connected() -> Core {
    let mut session = Core::new(Config::new(["zk1:2181"]), 7, NOW);
    greet(&mut session);
    session
}

/// Brings a session that dials to where it can be used.
pub fn greet(session: &mut Core) {
    drain(session);
    session.dialed(NOW, Ok(()));
    session.outbound().take_all();
    encode_frame(&greeting(), session.inbound());
    session.received(NOW);
}

/// What a server says first.
pub(crate) fn greeting() -> ConnectResponse {
    ConnectResponse {
        protocol_version: 0,
        time_out: 10_000,
        session_id: SessionId(1),
        passwd: Secret(Some(Bytes::from_static(&[1; 16]))),
        read_only: TrailingFlag(Some(false)),
    }
}

/// Takes what has come of it, and says how much that was.
pub fn drain(session: &mut Core) -> usize {
    std::iter::from_fn(|| session.poll()).filter(|it| !matches!(it, Output::State(_))).count()
}

/// A read, with a watch or without.
#[must_use]
pub fn get(path: &str, watched: bool) -> Outgoing<u64, Listener> {
    let (frame, token) =
        (RequestFrame::of(&GetDataRequest { path: path.into(), watch: watched }), 0);
    let intent =
        || Box::new(WatchIntent { path: Arc::from(path), by: WatchBy::Data, watcher: Listener });
    Outgoing {
        frame,
        token,
        watch: watched.then(intent),
        on_loss: OnLoss::Resend,
        patience: Patience::Connections,
    }
}

/// The body of an answer to a read.
pub(crate) fn body() -> GetDataResponse {
    GetDataResponse { data: Some(Bytes::from_static(&[7; 128])), stat: Stat::default() }
}

/// Replies to all these requests, in one piece.
pub fn replies(xids: impl Iterator<Item = i32>) -> BytesMut {
    let body = body();
    let mut out = BytesMut::new();
    for xid in xids {
        encode_frame_with(&mut out, |out| {
            ReplyHeader { xid: Xid(xid), zxid: Zxid(1), err: ErrorCode::OK }.encode(out);
            body.encode(out);
        });
    }
    out
}

/// A session that watches so many nodes.
///
/// # Panics
/// It does not watch them.
#[must_use]
pub fn watching(count: usize) -> Core {
    let mut session = connected();
    for number in 0..count {
        session.submit(NOW, get(&path(number), true));
    }
    let written = session.outbound().len();
    session.outbound().advance(written);
    let answers = replies((1..).take(count));
    session.inbound().extend_from_slice(&answers);
    session.received(NOW);
    assert_eq!(drain(&mut session), count);
    session
}

/// The node that is watched as that one of many.
#[must_use]
pub fn path(number: usize) -> String {
    format!("/services/report/node-{number:06}")
}

/// So many watched nodes have been written.
#[must_use]
pub fn events(count: usize) -> BytesMut {
    let mut events = BytesMut::new();
    for number in 0..count {
        encode_frame_with(&mut events, |out| {
            let (xid, zxid) = (Xid::NOTIFICATION, Zxid(2));
            ReplyHeader { xid, zxid, err: ErrorCode::OK }.encode(out);
            let (kind, state) = (EventType::NODE_DATA_CHANGED, KeeperState::SYNC_CONNECTED);
            WatcherEvent { kind, state, path: Text::from(&*path(number)) }.encode(out);
        });
    }
    events
}

/// Its connection is lost, and the next one is to be made.
pub fn cut(session: &mut Core) {
    session.hung_up(NOW, LinkError::Reset);
    drain(session);
    // The pause before the next attempt.
    while session.server().is_none() {
        session.elapsed(session.deadline().unwrap_or(NOW));
    }
}

pub(crate) fn pieces() -> [Piece; 3] {
    [
        Piece::new("session: a get, of 256 in flight", IN_FLIGHT as usize, || {
            let mut session = connected();
            let mut gets: Vec<_> = (0..IN_FLIGHT).map(|_| get("/a", false)).collect();
            let answers = replies(1..=IN_FLIGHT);
            move || {
                for get in gets.drain(..) {
                    session.submit(NOW, get);
                }
                let written = session.outbound().len();
                session.outbound().advance(written);
                session.inbound().extend_from_slice(&answers);
                session.received(NOW);
                assert_eq!(drain(&mut session), IN_FLIGHT as usize);
            }
        }),
        Piece::new("session: a watch fired, of 10 000", WATCHES, || {
            let mut session = watching(WATCHES);
            let events = events(WATCHES);
            move || {
                session.inbound().extend_from_slice(&events);
                session.received(NOW);
                assert_eq!(drain(&mut session), WATCHES);
            }
        }),
        Piece::new("session: a watch restored, of 10 000", WATCHES, || {
            let mut session = watching(WATCHES);
            cut(&mut session);
            move || {
                greet(&mut session);
                assert!(session.outbound().len() > WATCHES * path(0).len());
            }
        }),
    ]
}
