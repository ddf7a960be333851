//! What servers say, with good reason or without.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode, EventType, KeeperState, Secret, SessionId, Text, Xid, Zxid,
    frame::{ReplyHeader, encode_frame, encode_frame_with},
    jute::Encode,
    request::{ConnectResponse, TrailingFlag, WatcherEvent},
};

use super::{
    link::{CLOSE, Link, What},
    oracle::Oracle,
};
use crate::input::Input;

#[derive(Clone, Debug)]
pub(crate) enum Message {
    Handshake(Handshake),
    /// To so many of the requests that it has received.
    Answers(usize, ErrorCode),
    Pong(ErrorCode),
    Judgement(ErrorCode),
    Event(EventType, &'static str),
    /// An answer to nothing.
    Stray(Xid),
    /// A frame of no meaning.
    Nonsense(Vec<u8>),
    /// Not even a frame.
    Noise(Vec<u8>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Handshake {
    Welcome { timeout: Duration, read_only: bool },
    Expired,
    AnotherSession,
    ReadOnlyRefusal,
}

/// A node that watches and events are about.
pub(crate) const fn any_path(choice: u8) -> &'static str {
    ["/", "/a", "/a/b", "/ab"][choice as usize % 4]
}

fn code(input: &mut Input<'_>) -> ErrorCode {
    match input.byte() {
        0..=127 => ErrorCode::OK,
        128..=159 => ErrorCode::NO_NODE,
        160..=239 => input.pick(ErrorCode::KNOWN),
        _ => ErrorCode(input.number()),
    }
}

impl Handshake {
    fn read(input: &mut Input<'_>) -> Self {
        match input.byte() {
            0..=15 => Self::Expired,
            16..=31 => Self::AnotherSession,
            32..=47 => Self::ReadOnlyRefusal,
            what => Self::Welcome {
                timeout: input.time().max(Duration::from_millis(1)),
                read_only: what & 7 == 0,
            },
        }
    }
}

impl Message {
    pub(crate) fn read(input: &mut Input<'_>) -> Self {
        match input.byte() {
            0..=29 => Self::Handshake(Handshake::read(input)),
            30..=109 => Self::Answers(usize::from(input.byte() & 7), code(input)),
            110..=129 => Self::Pong(code(input)),
            130..=149 => Self::Judgement(code(input)),
            150..=189 => {
                let what = input.byte();
                let kind = match what & 7 {
                    0 => EventType(i32::from(input.byte())),
                    1 => EventType::NODE_DELETED,
                    2 => EventType::NODE_DATA_CHANGED,
                    3 => EventType::NODE_CHILDREN_CHANGED,
                    _ => EventType::NODE_CREATED,
                };
                Self::Event(kind, any_path(what >> 3))
            }
            // No request has ever one of these.
            190..=199 => Self::Stray(Xid(match input.byte() {
                0 => 0,
                1 => -3,
                other => -4 - i32::from(other),
            })),
            200..=227 => Self::Nonsense(input.bytes().into()),
            _ => Self::Noise(input.bytes().into()),
        }
    }

    /// Puts a message behind what comes from the server already, if there is an occasion for it.
    ///
    /// Whatever has a transaction has one of its own: they number the server's side of the conversation.
    pub(crate) fn say(self, link: &mut Link, number: &mut i64, oracle: &mut Oracle) {
        match self {
            Self::Nonsense(bytes) => {
                link.is_insane = true;
                oracle.is_lied_to = true;
                encode_frame_with(&mut link.coming, |out| out.extend_from_slice(&bytes));
            }
            Self::Noise(bytes) => {
                link.is_insane = true;
                oracle.is_lied_to = true;
                link.coming.extend_from_slice(&bytes);
            }
            Self::Handshake(handshake) => greet(handshake, link, number),
            // Servers do not speak before they are greeted.
            _ if !link.is_answered => {}
            Self::Answers(count, err) => {
                for what in link.arrived.drain(..count.min(link.arrived.len())) {
                    let Some(xid) = what.xid() else { continue };
                    *number += 1;
                    if !link.is_read_only {
                        oracle.answered_zxids.insert(*number);
                    }
                    match what {
                        What::Request { token, .. } if err == ErrorCode::SESSION_MOVED => {
                            oracle.refused(&token);
                        }
                        What::Close { .. } if err == ErrorCode::SESSION_MOVED => {
                            oracle.refused(CLOSE)
                        }
                        _ => {}
                    }
                    header(xid, *number, err, &mut link.coming);
                }
            }
            Self::Pong(err) => header(Xid::PING, 1, err, &mut link.coming),
            Self::Judgement(err) => {
                if let Some(left) = link.unjudged.checked_sub(1) {
                    link.unjudged = left;
                    header(Xid::AUTH, 0, err, &mut link.coming);
                }
            }
            Self::Stray(xid) => {
                link.is_insane = true;
                header(xid, 1, ErrorCode::OK, &mut link.coming);
            }
            Self::Event(kind, path) => {
                *number += 1;
                let path = Text::from(path);
                let event = WatcherEvent { kind, state: KeeperState::SYNC_CONNECTED, path };
                encode_frame_with(&mut link.coming, |out| {
                    let (xid, zxid, err) = (Xid::NOTIFICATION, Zxid(*number), ErrorCode::OK);
                    ReplyHeader { xid, zxid, err }.encode(out);
                    event.encode(out);
                });
            }
        }
    }
}

fn header(xid: Xid, zxid: i64, err: ErrorCode, out: &mut BytesMut) {
    encode_frame(&ReplyHeader { xid, zxid: Zxid(zxid), err }, out);
}

/// Answers to a handshake that has arrived and was not answered.
fn greet(handshake: Handshake, link: &mut Link, number: &mut i64) {
    let Some(shown) = link.shown.filter(|_| !link.is_answered) else { return };
    link.is_answered = true;
    *number += 1;
    let id = if shown == 0 { *number } else { shown };
    let (id, timeout, read_only) = match handshake {
        Handshake::Welcome { timeout, read_only } => (id, timeout, read_only),
        Handshake::Expired => (0, Duration::ZERO, false),
        Handshake::AnotherSession => (*number, Duration::from_secs(9), false),
        Handshake::ReadOnlyRefusal => {
            header(Xid(0), 0, ErrorCode::NOT_READ_ONLY, &mut link.coming);
            return;
        }
    };
    link.is_read_only = read_only;
    let response = ConnectResponse {
        protocol_version: 0,
        time_out: i32::try_from(timeout.as_millis()).expect("timeouts are short"),
        session_id: SessionId(id),
        passwd: Secret(Some(Bytes::from_static(&[7; 16]))),
        read_only: TrailingFlag(Some(read_only)),
    };
    encode_frame(&response, &mut link.coming);
}
