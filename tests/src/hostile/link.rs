//! One connection as both of its ends see it: what was written, and what a server makes of it.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    OpCode, Xid,
    frame::{LEN_PREFIX, RequestHeader},
    jute::{Decode, Reader},
    request::{AuthPacket, ConnectRequest, GetDataRequest},
};

use crate::wire::frames;

/// The token of the one request that ends the session.
pub(crate) const CLOSE: &str = "close";

/// A connection, from the first byte on.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// Bytes that the session has put in front of the driver.
    pub(crate) appended: usize,
    /// Bytes that the driver has taken.
    pub(crate) written: usize,
    /// Whether the session has taken the server's answer to the handshake for a good one.
    pub(crate) greeted: bool,
    /// What the driver has not taken in full yet.
    unwritten: VecDeque<Sent>,
    /// The session that the server was shown.
    pub(crate) shown: Option<i64>,
    /// Whether the server has answered to that.
    pub(crate) is_answered: bool,
    pub(crate) is_read_only: bool,
    /// Ordinary requests that have arrived at the server and were not answered.
    pub(crate) arrived: VecDeque<What>,
    /// Credentials that have arrived and were not judged.
    pub(crate) unjudged: usize,
    /// Whether the server has said something that makes no sense.
    pub(crate) is_insane: bool,
    /// Bytes from the server that have not arrived.
    pub(crate) coming: BytesMut,
}

/// A frame of the session, and its place among the connection's bytes.
#[derive(Debug)]
struct Sent {
    start: usize,
    end: usize,
    what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Handshake {
        id: i64,
        zxid: i64,
    },
    Ping,
    /// Credentials; their secret is their token.
    Auth {
        token: String,
    },
    SetWatches {
        xid: Xid,
    },
    /// What the session tells the server of watches that come and go.
    Upkeep {
        xid: Xid,
    },
    Close {
        xid: Xid,
    },
    /// A request of the user's; its path is its token.
    Request {
        xid: Xid,
        token: String,
    },
}

impl What {
    /// The number of an ordinary frame.
    pub(crate) const fn xid(&self) -> Option<Xid> {
        match self {
            Self::Handshake { .. } | Self::Ping | Self::Auth { .. } => None,
            Self::SetWatches { xid }
            | Self::Upkeep { xid }
            | Self::Close { xid }
            | Self::Request { xid, .. } => Some(*xid),
        }
    }

    fn decode(frame: &Bytes, is_first: bool) -> Self {
        let mut reader = Reader::new(frame);
        if is_first {
            let ConnectRequest { session_id, last_zxid_seen, .. } =
                Decode::decode(&mut reader).expect("the first frame is a handshake");
            return Self::Handshake { id: session_id.0, zxid: last_zxid_seen.0 };
        }
        let RequestHeader { xid, op } = Decode::decode(&mut reader).expect("frames have headers");
        match op {
            OpCode::PING => {
                assert_eq!(xid, Xid::PING);
                Self::Ping
            }
            OpCode::AUTH => {
                assert_eq!(xid, Xid::AUTH);
                let AuthPacket { auth, .. } =
                    Decode::decode(&mut reader).expect("credentials can be read");
                let token = String::from_utf8_lossy(auth.0.unwrap_or_default()).into_owned();
                Self::Auth { token }
            }
            OpCode::SET_WATCHES | OpCode::SET_WATCHES2 => Self::SetWatches { xid },
            OpCode::ADD_WATCH | OpCode::REMOVE_WATCHES => Self::Upkeep { xid },
            OpCode::CLOSE_SESSION => Self::Close { xid },
            OpCode::GET_DATA => {
                let GetDataRequest { path, .. } =
                    Decode::decode(&mut reader).expect("the world makes good requests");
                Self::Request { xid, token: path.to_owned_lossy() }
            }
            _ => panic!("nobody has asked for {op}"),
        }
    }
}

impl Link {
    /// Takes note of bytes that the session has put behind the others. Returns their frames.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Vec<What> {
        let mut sent = Vec::new();
        for frame in frames(bytes) {
            let start = self.appended;
            let what = What::decode(&frame, start == 0);
            self.appended += LEN_PREFIX + frame.len();
            self.unwritten.push_back(Sent { start, end: self.appended, what: what.clone() });
            sent.push(what);
        }
        sent
    }

    /// The driver takes bytes off the front. Returns the requests that it has begun to write.
    pub(crate) fn write(&mut self, count: usize) -> Vec<String> {
        let (from, to) = (self.written, self.written + count);
        self.written = to;
        let begun = self.unwritten.iter().filter(|sent| (from..to).contains(&sent.start));
        let begun = begun.filter_map(|sent| match &sent.what {
            What::Request { token, .. } | What::Auth { token } => Some(token.clone()),
            What::Close { .. } => Some(CLOSE.into()),
            _ => None,
        });
        let begun = begun.collect();
        let whole = self.unwritten.partition_point(|sent| sent.end <= to);
        for sent in self.unwritten.drain(..whole) {
            match sent.what {
                What::Handshake { id, .. } => self.shown = Some(id),
                What::Auth { .. } => self.unjudged += 1,
                What::Ping => {}
                what => self.arrived.push_back(what),
            }
        }
        begun
    }
}
