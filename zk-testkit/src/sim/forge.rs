//! Replies that no honest server sends.
//!
//! Only what a client can see through is forged: lengths and numbers, not contents.

use bytes::{BufMut as _, Bytes, BytesMut};
use zk_proto::{
    ErrorCode, EventType, Secret, SessionId, Str, Xid, Zxid,
    frame::{ReplyHeader, encode_frame, encode_frame_with},
    jute::{Decode as _, Encode as _, Reader},
    request::{ConnectResponse, TrailingFlag},
};

use super::Fault;

/// Bytes of the length in front of a frame.
const PREFIX: usize = 4;

/// Events in a storm.
const STORM: usize = 1000;

/// Damages the frame at the end of what a server sends. `None`: not this one.
pub(super) fn forge(fault: Fault, chance: u64, is_greeting: bool, frame: &Bytes) -> Option<Bytes> {
    let header = ReplyHeader::decode(&mut Reader::new(&frame.slice(PREFIX..))).ok();
    let reply = header.filter(|header| !is_greeting && header.xid.0 > 0);
    let mut out = BytesMut::from(&frame[..]);
    match fault {
        Fault::Disown if is_greeting => {
            out.clear();
            encode_frame(&disowned(), &mut out);
        }
        Fault::Flip => {
            let end = if is_greeting { PREFIX } else { PREFIX + 4 };
            let bit = (chance % (end as u64 * 8)) as usize;
            out[bit / 8] ^= 1 << (bit % 8);
        }
        Fault::Insert => {
            let at = (chance % 8) as usize;
            out = BytesMut::from(&frame[..at]);
            out.put_u8((chance >> 8) as u8);
            out.extend_from_slice(&frame[at..]);
        }
        Fault::Remove => {
            let at = (chance % 8) as usize;
            out = BytesMut::from(&frame[..at]);
            out.extend_from_slice(&frame[at + 1..]);
        }
        Fault::BadLength => {
            let length = [-1, i32::MIN, i32::MAX, 3][(chance % 4) as usize];
            out.clear();
            out.put_i32(length);
            out.extend_from_slice(&frame[PREFIX..]);
        }
        Fault::WrongXid => {
            reply?;
            out[PREFIX + 3] ^= 0x40;
        }
        Fault::Twice => {
            reply?;
            out.extend_from_slice(frame);
        }
        Fault::Unsolicited => {
            let ReplyHeader { zxid, .. } = reply?;
            let header = ReplyHeader { xid: Xid(i32::MAX - 7), zxid, err: ErrorCode::OK };
            encode_frame(&header, &mut out);
        }
        Fault::Swallow => {
            reply?;
            out.clear();
        }
        Fault::Storm => {
            reply?;
            for number in 0..STORM {
                event(&format!("/nobody/watches/{number}"), &mut out);
            }
        }
        _ => return None,
    }
    Some(out.freeze())
}

fn disowned() -> ConnectResponse {
    ConnectResponse {
        protocol_version: 0,
        time_out: 0,
        session_id: SessionId(0),
        passwd: Secret(Some(Bytes::from_static(&[0; 16]))),
        read_only: TrailingFlag(Some(false)),
    }
}

fn event(path: &str, out: &mut BytesMut) {
    encode_frame_with(out, |out| {
        ReplyHeader { xid: Xid::NOTIFICATION, zxid: Zxid(-1), err: ErrorCode::OK }.encode(out);
        EventType::NODE_DATA_CHANGED.encode(out);
        out.put_i32(3);
        Str::from(path).encode(out);
    });
}
