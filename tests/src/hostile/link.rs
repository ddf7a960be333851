//! One connection as both of its ends see it: what was written, and what a server makes of it.

use std::collections::VecDeque;

use bytes::BytesMut;
use zk_proto::{
    Xid,
    frame::LEN_PREFIX,
    request::AnyRequest,
    traffic::{Sent, Traffic},
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
    traffic: Traffic,
    /// What the driver has not taken in full yet.
    unwritten: VecDeque<Pending>,
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
struct Pending {
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

    fn of(sent: &Sent<'_>) -> Self {
        let request = match sent {
            Sent::Connect(it) => {
                return Self::Handshake { id: it.session_id.0, zxid: it.last_zxid_seen.0 };
            }
            Sent::Request(request) => request,
        };
        let xid = request.header.xid;
        match request.decode().expect("the world makes good requests") {
            AnyRequest::Ping(_) => {
                assert_eq!(xid, Xid::PING);
                Self::Ping
            }
            AnyRequest::Auth(packet) => {
                assert_eq!(xid, Xid::AUTH);
                let secret = packet.auth.0.unwrap_or_default();
                Self::Auth { token: String::from_utf8_lossy(secret).into_owned() }
            }
            AnyRequest::SetWatches(_) | AnyRequest::SetWatches2(_) => Self::SetWatches { xid },
            AnyRequest::AddWatch(_) | AnyRequest::RemoveWatches(_) => Self::Upkeep { xid },
            AnyRequest::CloseSession(_) => Self::Close { xid },
            AnyRequest::GetData(get) => Self::Request { xid, token: get.path.to_owned_lossy() },
            other => panic!("nobody has asked for {other:?}"),
        }
    }
}

impl Link {
    /// Takes note of bytes that the session has put behind the others. Returns their frames.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Vec<What> {
        let mut sent = Vec::new();
        for frame in frames(bytes) {
            let start = self.appended;
            let seen = self.traffic.sent(&frame).expect("what a session sends can be read");
            let what = What::of(&seen);
            self.appended += LEN_PREFIX + frame.len();
            self.unwritten.push_back(Pending { start, end: self.appended, what: what.clone() });
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
