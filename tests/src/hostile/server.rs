//! What servers say, with good reason or without.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode, KeeperState, Secret, SessionId, Text, Xid, Zxid,
    frame::{ReplyHeader, encode_frame, encode_frame_with},
    jute::Encode,
    request::{ConnectResponse, TrailingFlag, WatcherEvent},
};

use super::{
    link::{CLOSE, Link, What},
    oracle::Oracle,
    step::{Greeting, Message, PATHS},
};

/// Puts a message behind what comes from the server already, if there is an occasion for it.
///
/// Whatever has a transaction has one of its own: they number the server's side of the conversation.
pub(crate) fn say(message: Message, link: &mut Link, number: &mut i64, oracle: &mut Oracle) {
    match message {
        Message::Nonsense(bytes) => {
            link.is_insane = true;
            oracle.is_lied_to = true;
            encode_frame_with(&mut link.coming, |out| out.extend_from_slice(&bytes));
        }
        Message::Noise(bytes) => {
            link.is_insane = true;
            oracle.is_lied_to = true;
            link.coming.extend_from_slice(&bytes);
        }
        Message::Greeting(greeting) => greet(greeting, link, number),
        // Servers do not speak before they are greeted.
        _ if !link.is_answered => {}
        Message::Answers(count, err) => {
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
                    What::Close { .. } if err == ErrorCode::SESSION_MOVED => oracle.refused(CLOSE),
                    _ => {}
                }
                header(xid, *number, err, &mut link.coming);
            }
        }
        Message::Pong(err) => header(Xid::PING, 1, err, &mut link.coming),
        Message::Judgement(err) => {
            if let Some(left) = link.unjudged.checked_sub(1) {
                link.unjudged = left;
                header(Xid::AUTH, 0, err, &mut link.coming);
            }
        }
        Message::Stray(xid) => {
            link.is_insane = true;
            header(xid, 1, ErrorCode::OK, &mut link.coming);
        }
        Message::Event(kind, path) => {
            *number += 1;
            let path = Text::from(PATHS[path]);
            let event = WatcherEvent { kind, state: KeeperState::SYNC_CONNECTED, path };
            encode_frame_with(&mut link.coming, |out| {
                let (xid, zxid, err) = (Xid::NOTIFICATION, Zxid(*number), ErrorCode::OK);
                ReplyHeader { xid, zxid, err }.encode(out);
                event.encode(out);
            });
        }
    }
}

fn header(xid: Xid, zxid: i64, err: ErrorCode, out: &mut BytesMut) {
    encode_frame(&ReplyHeader { xid, zxid: Zxid(zxid), err }, out);
}

/// Answers to a handshake that has arrived and was not answered.
fn greet(greeting: Greeting, link: &mut Link, number: &mut i64) {
    let Some(shown) = link.shown.filter(|_| !link.is_answered) else { return };
    link.is_answered = true;
    *number += 1;
    let id = if shown == 0 { *number } else { shown };
    let (id, timeout, read_only) = match greeting {
        Greeting::Welcome { timeout, read_only } => (id, timeout, read_only),
        Greeting::Expired => (0, Duration::ZERO, false),
        Greeting::AnotherSession => (*number, Duration::from_secs(9), false),
        Greeting::ReadOnlyRefusal => {
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
