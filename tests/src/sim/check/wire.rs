//! S7: what a session has seen never gets older. S8: numbers of requests grow. S9: what was not sent was
//! not sent.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use zk_client::Lease;
use zk_proto::{
    ErrorCode, OpCode, SessionId, Xid, Zxid,
    frame::{ReplyHeader, RequestHeader},
    request::ConnectRequest,
    traffic::{Received, Sent, SentRequest},
};
use zk_testkit::{
    real::Release,
    sim::{LinkId, Seen},
};

use super::{Checker, doubt::Doubt, writes::UNIQUE};
use crate::sim::workload::{REGISTER, SOLO};

#[derive(Default)]
pub(super) struct Wires {
    links: BTreeMap<LinkId, SessionId>,
    sessions: BTreeMap<SessionId, Wire>,
    /// When something came to each client last.
    heard: BTreeMap<u32, Heard>,
    /// The session that is shown in a handshake under way.
    dialing: BTreeMap<LinkId, SessionId>,
    /// When a server has said that there is no such session.
    refused: BTreeMap<SessionId, u64>,
    /// Sessions that their clients have asked to be closed.
    closing: BTreeSet<SessionId>,
    /// Clients whose last handshake was answered wrongly.
    disowned: BTreeSet<u32>,
    /// Paths of creates that must not be sent twice.
    sent_creates: BTreeSet<String>,
    /// Paths of creates that a server does not know, and refuses if they reach it.
    unknown_creates: BTreeSet<String>,
    /// Clients that have written the beginning of a frame, and the end of none since; when others had last.
    beginnings: BTreeMap<u32, Beginning>,
    /// When each client was throttled last.
    throttled: BTreeMap<u32, u64>,
    /// How much clients have asked for.
    asked: BTreeMap<u32, u64>,
    /// Writes that no client makes twice.
    sent_writes: BTreeSet<Bytes>,
    /// Clients that have had to ask again since a server had let go of their session.
    moved: BTreeSet<u32>,
    /// How much clients have asked for below paths that they use alone.
    asked_alone: BTreeMap<u32, u64>,
}

/// Behind this number of a request a small one may follow: those between had their numbers, and were not sent.
const XIDS_BEGIN_ANEW: i32 = i32::MAX - 1_000;

/// The beginning of a frame that a client has written.
#[derive(Clone, Copy)]
enum Beginning {
    /// Nothing has come behind it.
    Alone,
    /// The rest came then.
    Ended(u64),
}

/// When something came to a client.
#[derive(Default)]
struct Heard {
    /// The last time.
    at: u64,
    /// The same of a part of a frame, which may take long to come.
    part: u64,
    link: Option<LinkId>,
    /// The last time that it has certainly read it: a reset takes along what waits to be read.
    read: u64,
    /// The same before the last time.
    read_before: u64,
}

/// What is known of a session.
struct Wire {
    xid: Xid,
    /// The newest transaction in any reply on this connection, or that its client said there it had seen: what
    /// a reset took along before it was read, it does not know of.
    zxid: Zxid,
    /// The same before the last moment at which something came, and that moment.
    before: (Zxid, u64),
    /// The newest transaction that was shown to the user.
    shown: Zxid,
}

impl Default for Wire {
    fn default() -> Self {
        Self { xid: Xid(0), zxid: Zxid(0), before: (Zxid(0), 0), shown: Zxid(0) }
    }
}

impl Checker {
    pub(super) fn sent(&mut self, seen: &Seen, frame: &Sent<'_>) {
        self.sent_at(seen, frame);
        match frame {
            Sent::Connect(connect) => {
                self.begins(seen, connect);
                self.connecting(seen, connect);
            }
            Sent::Request(request) => {
                self.speaks(seen, request);
                self.requested(seen, request);
            }
        }
    }

    fn connecting(&mut self, seen: &Seen, connect: &ConnectRequest<'_>) {
        self.opens(seen);
        let session = connect.session_id;
        if session.0 == 0 {
            return;
        }
        self.count("reconnects");
        self.wires.dialing.insert(seen.link, session);
        let told = connect.last_zxid_seen;
        let wire = self.wires.sessions.entry(session).or_default();
        wire.zxid = told;
        let shown = wire.shown;
        if told < shown {
            self.violated("S7", format!("c{} comes back with {told} after {shown}", seen.client));
        }
    }

    fn requested(&mut self, seen: &Seen, request: &SentRequest) {
        let (client, RequestHeader { xid, op }) = (seen.client, request.header);
        self.acts_on(client, seen.link, false);
        self.takes_room(seen, request);
        if let Err(error) = request.decode() {
            self.violated("S8", format!("c{client} sends {op:?} that nobody can read: {error}"));
        }
        if xid.0 > 0 {
            self.count("requests");
            let session = self.wires.links.get(&seen.link).copied().unwrap_or(SessionId(0));
            let wire = self.wires.sessions.entry(session).or_default();
            let last = std::mem::replace(&mut wire.xid, xid);
            if xid <= last && last.0 < XIDS_BEGIN_ANEW {
                self.violated("S8", format!("c{client} sends {xid:?} after {last:?}"));
            }
        }
        let is_alone = |path: &str| path.starts_with(SOLO);
        if self.options.draws_settings && request.path().is_some_and(|it| is_alone(&it.lossy())) {
            *self.wires.asked_alone.entry(client).or_default() += 1;
        }
        *self.wires.asked.entry(client).or_default() += 1;
        let is_register = |path: &str| path.starts_with(REGISTER);
        let changes = matches!(op, OpCode::SET_DATA | OpCode::MULTI)
            && request.path().is_some_and(|it| is_register(&it.lossy()));
        if changes && !self.wires.sent_writes.insert(request.body.clone()) {
            // What certainly was not carried out may be asked for again.
            if !self.was_throttled(client) && !self.wires.moved.contains(&client) {
                self.violated("S9", format!("c{client} sends {op:?} {xid:?} of a register twice"));
            }
        }
        if matches!(op, OpCode::SET_WATCHES | OpCode::SET_WATCHES2) {
            if let Some(&session) = self.wires.links.get(&seen.link) {
                self.restores(seen, session, request);
            }
        }
        if op == OpCode::CLOSE_SESSION {
            self.wires.closing.extend(self.wires.links.get(&seen.link));
        }
        // An older server refuses what it does not know, and carries nothing out.
        let is_unknown = op == OpCode::CREATE2 && self.options.release < Release::V3_5;
        let path = || request.path().unwrap_or_default().lossy().into_owned();
        if is_unknown {
            self.wires.unknown_creates.insert(path());
        } else if matches!(op, OpCode::CREATE | OpCode::CREATE2) {
            let path = path();
            self.makes(client, &path);
            if path.starts_with(UNIQUE) && !self.wires.sent_creates.insert(path.clone()) {
                self.violated("S9", format!("the create of {path} was sent twice"));
            }
        }
    }

    pub(super) fn wrote(&mut self, client: u32, ends_frame: bool) {
        if !ends_frame {
            self.wires.beginnings.insert(client, Beginning::Alone);
        } else if let Some(beginning) = self.wires.beginnings.get_mut(&client) {
            if matches!(beginning, Beginning::Alone) {
                *beginning = Beginning::Ended(self.now);
            }
        }
    }

    /// Whether a client may have written a part of a request since then, and no more of it.
    pub(super) fn may_have_begun(&self, client: u32, since: u64) -> bool {
        self.wires.beginnings.get(&client).is_some_and(|beginning| match beginning {
            Beginning::Alone => true,
            Beginning::Ended(at) => *at >= since,
        })
    }

    /// Whether a request of a client may still be on its way that was throttled: the pause before it is sent again is
    /// not that long.
    pub(crate) fn was_throttled(&self, client: u32) -> bool {
        self.wires.throttled.get(&client).is_some_and(|at| self.now < at + 10_000)
    }

    /// How much a client has asked for.
    pub(crate) fn asked(&self, client: u32) -> u64 {
        self.wires.asked.get(&client).copied().unwrap_or_default()
    }

    /// How much a client has asked for below paths that it uses alone.
    pub(crate) fn asked_alone(&self, client: u32) -> u64 {
        self.wires.asked_alone.get(&client).copied().unwrap_or_default()
    }

    /// A client says that its session has expired, and the servers have it still.
    pub(crate) fn given_up(&mut self, client: u32, session: SessionId) {
        if let Some(heard) = self.should_believe(client) {
            self.violated("L1", format!("c{client} gives up {session}, heard of at {heard}"));
        }
    }

    /// A client has been told that its session is closed, and the servers have it still.
    pub(crate) fn closed_in_vain(&mut self, client: u32, session: SessionId) {
        let is_misled = self.wires.disowned.contains(&client);
        if !is_misled && !self.was_doubtful(session) {
            self.violated("S4", format!("c{client} is told that {session} is closed"));
        }
    }

    /// When it last heard of its session, if it has neither been disowned nor heard nothing for too long.
    fn should_believe(&self, client: u32) -> Option<u64> {
        let heard = self.wires.heard.get(&client).map(|heard| heard.read).unwrap_or_default();
        let patience = self.options.session_timeouts[client as usize];
        let believes = !self.wires.disowned.contains(&client) && self.now < heard + patience;
        believes.then_some(heard)
    }

    /// Whatever comes to a client meanwhile, it reads when it goes on.
    pub(crate) fn stands_still(&mut self, client: u32) {
        let heard = self.wires.heard.entry(client).or_default();
        heard.at = heard.at.max(self.now);
        let link = heard.link;
        let session = link.and_then(|link| self.wires.links.get(&link).copied());
        session.into_iter().for_each(|session| self.loses_news(session));
        self.forget_turn(client);
        self.reads_nothing(client);
        self.hears_nothing(client);
    }

    /// A client without a connection gives its session up when it must have expired, and at once if a server says
    /// that it has.
    pub(super) fn check_given_up(&mut self, client: u32, session: SessionId) {
        let timeout = self.options.session_timeouts[client as usize];
        // A third more, as long as the slowest clock takes for it.
        let patience = timeout * 7 / 5 + 2_000;
        let now = self.now;
        // Damaged frames, which are not counted here, keep hope alive as well.
        let damaged = self.was_doubtful(session);
        let last = self.wires.heard.entry(client).or_default();
        let heard = last.at.max(last.part);
        if now > heard + patience && !damaged {
            last.at = now;
            let text = format!("c{client} hopes for {session}, heard of at {heard}");
            self.violated("L4", text);
        }
        if self.wires.refused.get(&session).is_some_and(|at| self.now > at + 1_000) {
            self.wires.refused.remove(&session);
            let text = format!("c{client} hopes for {session}, which has expired");
            self.violated("L4", text);
        }
    }

    /// A part of a frame has come.
    pub(super) fn hears_a_part(&mut self, client: u32) {
        self.wires.heard.entry(client).or_default().part = self.now;
    }

    pub(super) fn received(&mut self, seen: &Seen, frame: &Received) {
        self.proved_at(seen, frame);
        self.is_told(seen, frame);
        let heard = self.wires.heard.entry(seen.client).or_default();
        if heard.at < seen.at {
            heard.read_before = heard.read;
        }
        (heard.at, heard.read, heard.link) = (seen.at, seen.at, Some(seen.link));
        if let Received::Connect(greeting) = frame {
            let willing = self.options.reads_alone(seen.client) || seen.forged;
            let alone = greeting.time_out > 0 && greeting.read_only.0 == Some(true);
            if alone && !willing {
                let text = format!("c{} is served by a minority, unasked", seen.client);
                self.violated("S7", text);
            }
            if seen.forged {
                self.wires.disowned.insert(seen.client);
            } else {
                self.wires.disowned.remove(&seen.client);
            }
            let session = self.wires.dialing.remove(&seen.link);
            if alone {
                self.reads_from_minority(session == Some(greeting.session_id));
            }
            // What a member without a quorum has ended by itself lives on.
            let says_so = greeting.time_out <= 0 && greeting.read_only.0 != Some(true);
            if let Some(session) = session.filter(|_| says_so && !seen.forged) {
                self.wires.refused.insert(session, seen.at);
            }
        }
        match frame {
            Received::Connect(greeting) if greeting.time_out > 0 => {
                self.wires.links.insert(seen.link, greeting.session_id);
                self.answers_alone(seen, greeting.session_id);
                let by_minority = greeting.read_only.0 == Some(true);
                self.is_named(seen.connector, greeting.session_id, by_minority);
                if by_minority && !seen.forged {
                    self.served_by_minority(seen, greeting.session_id);
                }
            }
            Received::Event { event, .. } => {
                self.hears(seen.client, event);
                if let Some(&session) = self.wires.links.get(&seen.link) {
                    self.fires(seen, session, event);
                }
            }
            Received::Reply(reply) => {
                let ReplyHeader { zxid, xid, err } = &reply.header;
                let client = seen.client;
                self.leaves_room(seen.link, *xid);
                if *err == ErrorCode::SESSION_MOVED {
                    self.wires.moved.insert(client);
                }
                if *err == ErrorCode::THROTTLED_OP {
                    self.wires.throttled.insert(client, seen.at);
                }
                let Some(&session) = self.wires.links.get(&seen.link) else { return };
                self.arms(seen, session, reply);
                // What a ping shows, clients do not hold against other servers.
                if zxid.0 > 0 && xid.0 > 0 && !seen.forged {
                    let wire = self.wires.sessions.entry(session).or_default();
                    let last = wire.zxid;
                    if wire.before.1 < seen.at {
                        wire.before = (last, seen.at);
                    }
                    wire.zxid = last.max(*zxid);
                    if *zxid < last && !self.is_doubtful(session) {
                        self.violated("S7", format!("c{client} is answered {zxid} after {last}"));
                    }
                }
                self.answers_alone(seen, session);
            }
            _ => {}
        }
    }

    /// A session is answered: if by a member that is cut off, that says nothing about the leader's view; if by another,
    /// its lease counts from there again.
    fn answers_alone(&mut self, seen: &Seen, session: SessionId) {
        if !seen.cut {
            return self.doubt_ends(session, Doubt::CutOff);
        }
        let timeout = self.options.session_timeouts[seen.client as usize];
        let until = self.now + timeout.max(4_000);
        let misled = self.misled.entry(session).or_default();
        *misled = until.max(*misled);
        // A client that counts on the leader alone is not misled.
        if self.options.lease == Lease::Connection {
            self.doubt(session, Doubt::CutOff, until);
        }
    }

    /// A client lets go of a connection, perhaps without having read what has just come.
    pub(super) fn left(&mut self, at: u64, client: u32, link: LinkId) {
        self.acts_on(client, link, true);
        self.closes_lane(link);
        self.leaves_lane(link);
        self.hangs_up(link);
        let heard = self.wires.heard.entry(client).or_default();
        if heard.link == Some(link) && heard.at == at {
            heard.read = heard.read_before;
        }
        let session = self.wires.links.get(&link).copied();
        if let Some(session) = session {
            self.leaves_damage(session);
            self.takes_news_along(at, session, link);
        }
        let wire = session.and_then(|session| self.wires.sessions.get_mut(&session));
        if let Some(wire) = wire.filter(|wire| wire.before.1 == at) {
            wire.zxid = wire.before.0;
        }
    }

    /// A user was shown the state of this transaction.
    pub(super) fn shown(&mut self, session: SessionId, zxid: Zxid) {
        let wire = self.wires.sessions.entry(session).or_default();
        wire.shown = wire.shown.max(zxid);
    }

    /// What a session has been answered from at least.
    pub(crate) fn answered_from(&self, session: SessionId) -> Zxid {
        self.wires.sessions.get(&session).map_or(Zxid(0), |wire| wire.zxid)
    }

    /// Whether a client has asked for the end of its session.
    pub(super) fn was_closed(&self, session: SessionId) -> bool {
        self.wires.closing.contains(&session)
    }

    /// Whether a create has left its client.
    pub(super) fn was_sent(&self, path: &str) -> bool {
        self.wires.sent_creates.contains(path)
    }

    /// Whether one has that its client cannot know the end of without an answer.
    pub(super) fn was_tried(&self, path: &str) -> bool {
        self.was_sent(path) || self.wires.unknown_creates.contains(path)
    }
}
