//! S7: what a session has seen never gets older. S8: numbers of requests grow. S9: what was not sent was
//! not sent. C14: a session is closed once.

use std::collections::{BTreeMap, BTreeSet};

use zk_proto::{
    OpCode, SessionId, Str, Xid, Zxid,
    jute::{Decode as _, Reader, decode_prefix},
    request::ConnectRequest,
};
use zk_testkit::sim::{Received, Seen, Sent};

use super::{Bench, writes::UNIQUE};

#[derive(Default)]
pub(super) struct Wires {
    /// By client.
    sessions: BTreeMap<u32, Wire>,
    /// Paths of creates that must not be sent twice.
    pub(super) sent_creates: BTreeSet<String>,
}

struct Wire {
    session: SessionId,
    xid: Xid,
    zxid: Zxid,
    /// The newest transaction that was shown to the user.
    shown: Zxid,
    closed: bool,
}

impl Default for Wire {
    fn default() -> Self {
        Self { session: SessionId(0), xid: Xid(0), zxid: Zxid(0), shown: Zxid(0), closed: false }
    }
}

impl Bench {
    pub(super) fn sent(&mut self, seen: &Seen, frame: &Sent) {
        match frame {
            Sent::Connect(frame) => {
                let Ok(connect) = decode_prefix::<ConnectRequest<'_>>(frame) else {
                    return self.violated("S8", "a handshake that cannot be read".to_owned());
                };
                self.connecting(seen, &connect);
            }
            Sent::Request { xid, op, body } => self.requested(seen, *xid, *op, body),
            _ => {}
        }
    }

    fn connecting(&mut self, seen: &Seen, connect: &ConnectRequest<'_>) {
        let wire = self.wires.sessions.entry(seen.client).or_default();
        if connect.session_id.0 == 0 {
            *wire = Wire::default();
            return;
        }
        let (shown, told) = (wire.shown, connect.last_zxid_seen);
        if connect.session_id == wire.session && told < shown {
            self.violated("S7", format!("c{} comes back with {told} after {shown}", seen.client));
        }
        self.count("reconnects");
    }

    fn requested(&mut self, seen: &Seen, xid: Xid, op: OpCode, body: &bytes::Bytes) {
        let client = seen.client;
        let wire = self.wires.sessions.entry(client).or_default();
        if xid.0 > 0 {
            let last = std::mem::replace(&mut wire.xid, xid);
            if xid <= last && last.0 != i32::MAX {
                self.violated("S8", format!("c{client} sends {xid:?} after {last:?}"));
            }
            self.count("requests");
        }
        if op == OpCode::CLOSE_SESSION {
            let wire = self.wires.sessions.entry(client).or_default();
            if std::mem::replace(&mut wire.closed, true) {
                self.count("closes sent again on another connection");
            }
        }
        if op == OpCode::CREATE || op == OpCode::CREATE2 {
            let path = Str::decode(&mut Reader::new(body)).map(|path| path.lossy().into_owned());
            let path = path.unwrap_or_default();
            if path.starts_with(UNIQUE) && !self.wires.sent_creates.insert(path.clone()) {
                self.violated("S9", format!("the create of {path} was sent twice"));
            }
        }
    }

    pub(super) fn received(&mut self, seen: &Seen, frame: &Received) {
        let wire = self.wires.sessions.entry(seen.client).or_default();
        match frame {
            Received::Greeting(greeting) if greeting.time_out > 0 => {
                if wire.session != greeting.session_id {
                    wire.session = greeting.session_id;
                    wire.zxid = Zxid(0);
                }
            }
            Received::Reply { zxid, .. } => {
                let (session, client) = (wire.session, seen.client);
                let last = wire.zxid;
                if zxid.0 > 0 && !seen.forged {
                    wire.zxid = last.max(*zxid);
                    if *zxid < last {
                        self.violated("S7", format!("c{client} is answered {zxid} after {last}"));
                    }
                }
                if seen.cut {
                    let timeout = self.options.session_timeouts[client as usize];
                    // What such a member says about the session says nothing about the leader's view.
                    let until = self.doubtful.entry(session).or_default();
                    *until = (*until).max(self.now + timeout.max(4_000));
                }
            }
            _ => {}
        }
    }

    /// A user was shown the state of this transaction.
    pub(super) fn shown(&mut self, client: u32, zxid: Zxid) {
        let wire = self.wires.sessions.entry(client).or_default();
        wire.shown = wire.shown.max(zxid);
    }

    /// Whether a create has left its client.
    pub(super) fn was_sent(&self, path: &str) -> bool {
        self.wires.sent_creates.contains(path)
    }
}
